// Which connection a command uses, if its round has its connections for itself: each row of the table.
#include <redlock/detail/own_connection_choice.hpp>

#include <gtest/gtest.h>

#include <initializer_list>

namespace redlock::detail {
namespace {

using enum KeyEffect;
using Connection = OwnChoice::Connection;
using Follow = OwnSituation::Follow;
using Idle = OwnSituation::Idle;
using Queued = OwnSituation::Queued;

constexpr auto every_effect = {none, acquires, extends, releases, enqueues, describes};

/// There is a connection of each kind.
constexpr OwnSituation all_kinds{.follow = Follow::with_room,
                                 .behind_release = true,
                                 .unbound = true,
                                 .queued = Queued::on_new,
                                 .idle = Idle::some,
                                 .probing = true};
/// There is none to follow, and none is bound to a release of the resource.
constexpr OwnSituation unfollowed{
    .unbound = true, .queued = Queued::on_new, .idle = Idle::some, .probing = true};
constexpr OwnSituation no_connections{};

/// Calls `check` for each effect except a release.
template <class Check>
void for_other_commands(Check check) {
    for (const auto effect : every_effect)
        if (effect != releases) check(effect);
}

OwnSituation of(KeyEffect effect, OwnSituation in) {
    in.effect = effect;
    return in;
}
OwnSituation untrusted(OwnSituation in, bool due, bool replied_late = false) {
    in.trusted = false;
    in.due = due;
    in.replied_late = replied_late;
    return in;
}
OwnSituation but(auto OwnSituation::*member, auto value, OwnSituation in) {
    in.*member = value;
    return in;
}
OwnSituation with_sentinels(OwnSituation in) {
    return but(&OwnSituation::has_sentinels, true, in);
}

// ---- Commands that follow another one

// Row 1
TEST(OwnConnectionChoice, AReleaseFollowsItsSetEvenBehindTooManyReplies) {
    for (const auto follow : {Follow::with_room, Follow::full})
        for (const bool sentinels : {false, true})
            for (const bool due : {false, true}) {
                auto in = of(releases, but(&OwnSituation::follow, follow, all_kinds));
                in.has_sentinels = sentinels;
                EXPECT_EQ(choose_own_connection(in), (OwnChoice{Connection::follow, true}));
                EXPECT_EQ(choose_own_connection(untrusted(in, due, true)),
                          (OwnChoice{Connection::follow, false}));
            }
}

// Row 2
TEST(OwnConnectionChoice, AnotherCommandIsRefusedBehindTooManyReplies) {
    for_other_commands([](auto effect) {
        const auto in = of(effect, but(&OwnSituation::follow, Follow::full, all_kinds));
        EXPECT_EQ(choose_own_connection(in), (OwnChoice{Connection::refused}));
        EXPECT_EQ(choose_own_connection(untrusted(in, true, true)), (OwnChoice{Connection::refused}));
    });
}

// Row 3
TEST(OwnConnectionChoice, AnotherCommandFollowsItsSet) {
    for_other_commands([](auto effect) {
        const auto in = of(effect, all_kinds);
        EXPECT_EQ(choose_own_connection(in), (OwnChoice{Connection::follow, true}));
        EXPECT_EQ(choose_own_connection(untrusted(in, true, true)), (OwnChoice{Connection::follow, false}));
    });
}

// Row 4
TEST(OwnConnectionChoice, AnAcquisitionOrDescriptionFollowsAReleaseOfItsResource) {
    const auto behind = but(&OwnSituation::behind_release, true, unfollowed);
    for (const auto effect : every_effect) {
        const bool follows = effect == acquires || effect == describes;
        EXPECT_EQ(choose_own_connection(of(effect, behind)),
                  (OwnChoice{follows ? Connection::behind_release : Connection::idle, true}));
        EXPECT_NE(choose_own_connection(untrusted(of(effect, behind), true, true)).connection,
                  Connection::behind_release)
            << "an untrusted node";
    }
}

// Row 5
TEST(OwnConnectionChoice, ADescriptionUsesADrainingConnectionIfNoneIsIdle) {
    const auto none_idle = but(&OwnSituation::idle, Idle::none, unfollowed);
    EXPECT_EQ(choose_own_connection(of(describes, none_idle)), (OwnChoice{Connection::unbound}));
    EXPECT_EQ(choose_own_connection(untrusted(of(describes, none_idle), true, true)),
              (OwnChoice{Connection::unbound}));
    for (const auto in : {unfollowed, but(&OwnSituation::idle, Idle::all_dropped, unfollowed)})
        EXPECT_NE(choose_own_connection(of(describes, in)).connection, Connection::unbound);
    for (const auto effect : {none, acquires, extends, enqueues})
        EXPECT_EQ(choose_own_connection(of(effect, none_idle)), (OwnChoice{Connection::probing, true}));
}

TEST(OwnConnectionChoice, WithSentinelsOnlyAReleaseFollows) {
    for_other_commands([](auto effect) {
        for (const auto follow : {Follow::none, Follow::with_room, Follow::full}) {
            auto in = with_sentinels(of(effect, but(&OwnSituation::follow, follow, all_kinds)));
            EXPECT_EQ(choose_own_connection(in), (OwnChoice{Connection::idle, true}));
            in.idle = Idle::none;
            EXPECT_EQ(choose_own_connection(in), (OwnChoice{Connection::probing, true}));
        }
    });
}

// ---- A trusted node

// Row 6
TEST(OwnConnectionChoice, OfATrustedNodeIsAnIdleOne) {
    for (const auto effect : every_effect)
        for (const bool due : {false, true}) {
            const auto in = but(&OwnSituation::due, due, of(effect, unfollowed));
            EXPECT_EQ(choose_own_connection(in), (OwnChoice{Connection::idle, true, due}));
        }
}

// Row 7
TEST(OwnConnectionChoice, AReleaseIsQueuedBehindOtherReleases) {
    for (const auto idle : {Idle::none, Idle::all_dropped}) {
        auto in = but(&OwnSituation::idle, idle, unfollowed);
        EXPECT_EQ(choose_own_connection(of(releases, in)), (OwnChoice{Connection::queued, true}));
        in.queued = Queued::on_old;
        EXPECT_EQ(choose_own_connection(of(releases, in)), (OwnChoice{Connection::queued, false}));
    }
}

// Row 8
TEST(OwnConnectionChoice, OtherwiseItIsTheProbingOne) {
    auto in = but(&OwnSituation::idle, Idle::all_dropped, unfollowed);
    in.probing_hangs = true;  // has no influence
    for_other_commands([&](auto effect) {
        EXPECT_EQ(choose_own_connection(of(effect, in)), (OwnChoice{Connection::probing, true}));
    });
    in.queued = Queued::none;
    EXPECT_EQ(choose_own_connection(of(releases, in)), (OwnChoice{Connection::probing, true}));
}

// Row 9
TEST(OwnConnectionChoice, OrElseAFreshOne) {
    for (const auto effect : every_effect) {
        EXPECT_EQ(choose_own_connection(of(effect, no_connections)), (OwnChoice{Connection::fresh, true}));
        auto in = with_sentinels(no_connections);
        in.probing = in.probing_may_be_former = true;
        EXPECT_EQ(choose_own_connection(of(effect, in)), (OwnChoice{Connection::fresh, true}));
    }
}

TEST(OwnConnectionChoice, ALateReplyMakesADueNodeTrusted) {
    for (const auto effect : every_effect) {
        EXPECT_EQ(choose_own_connection(untrusted(of(effect, unfollowed), true, true)),
                  (OwnChoice{Connection::idle, true, true}));
        EXPECT_EQ(choose_own_connection(untrusted(of(effect, no_connections), true, true)),
                  (OwnChoice{Connection::fresh, true, true}));
        EXPECT_FALSE(choose_own_connection(untrusted(of(effect, unfollowed), false, true)).worth_waiting_for);
    }
}

// ---- An untrusted node

// Row 10
TEST(OwnConnectionChoice, AReleaseToAnUntrustedNodeUsesAnIdleOne) {
    for (const bool due : {false, true})
        EXPECT_EQ(choose_own_connection(untrusted(of(releases, unfollowed), due)),
                  (OwnChoice{Connection::idle, false, due}));
}

// Row 11
TEST(OwnConnectionChoice, OrADrainingOne) {
    for (const auto idle : {Idle::none, Idle::all_dropped})
        for (const bool due : {false, true})
            EXPECT_EQ(choose_own_connection(
                          untrusted(of(releases, but(&OwnSituation::idle, idle, unfollowed)), due)),
                      (OwnChoice{Connection::unbound, false, due}));
}

// Row 12
TEST(OwnConnectionChoice, OrAFreshOneThatIsAwaitedAndIsNoProbe) {
    for (const auto queued : {Queued::none, Queued::on_new, Queued::on_old})
        for (const bool due : {false, true})
            EXPECT_EQ(choose_own_connection(
                          untrusted(of(releases, but(&OwnSituation::queued, queued, no_connections)), due)),
                      (OwnChoice{Connection::fresh, true, due, false}));
}

// Row 12. A round has already waited for the node, on a connection that may be dead without a sign.
TEST(OwnConnectionChoice, OrAFreshOneThatIsNotAwaited) {
    const auto in = but(&OwnSituation::unbound_was_ready, true, no_connections);
    for (const bool due : {false, true})
        EXPECT_EQ(choose_own_connection(untrusted(of(releases, in), due)),
                  (OwnChoice{Connection::fresh, false, due, false}));
}

// Row 13
TEST(OwnConnectionChoice, AnUntrustedNodeThatIsNotDueIsLeftAlone) {
    for_other_commands([](auto effect) {
        for (const auto in : {unfollowed, no_connections})
            EXPECT_EQ(choose_own_connection(untrusted(of(effect, in), false, true)),
                      (OwnChoice{Connection::none}));
    });
}

// Row 14
TEST(OwnConnectionChoice, AProbeUsesTheProbingOne) {
    auto in = but(&OwnSituation::probing, true, no_connections);
    in.probing_may_be_former = true;  // has no influence
    for (const auto effect : every_effect)
        EXPECT_EQ(choose_own_connection(untrusted(of(effect, in), true)),
                  (OwnChoice{Connection::probing, false, true, true}));
    EXPECT_EQ(choose_own_connection(untrusted(of(releases, in), false)), (OwnChoice{Connection::probing}));
    for_other_commands([](auto effect) {
        if (effect == describes) return;  // row 5 or an idle one
        const auto others = untrusted(of(effect, unfollowed), true);
        EXPECT_EQ(choose_own_connection(others), (OwnChoice{Connection::probing, false, true, true}));
    });
}

// Row 15
TEST(OwnConnectionChoice, OrAFreshOneIfThatHangsOrThereIsNone) {
    for_other_commands([](auto effect) {
        EXPECT_EQ(choose_own_connection(untrusted(of(effect, no_connections), true)),
                  (OwnChoice{Connection::fresh, false, true, true}));
    });
    auto in = but(&OwnSituation::probing, true, no_connections);
    in.probing_hangs = true;
    for (const auto effect : every_effect)
        EXPECT_EQ(choose_own_connection(untrusted(of(effect, in), true)),
                  (OwnChoice{Connection::fresh, false, true, true}));
    EXPECT_EQ(choose_own_connection(untrusted(of(releases, in), false)), (OwnChoice{Connection::fresh}));
}

// ---- The deletion of a description: each row of the second table

TEST(OwnConnectionChoice, TheDeletionOfADescriptionTakesTheFirstConnectionOfItsTable) {
    const auto chosen = [](OwnSituation in) {
        for (const bool sentinels : {false, true}) {
            in.has_sentinels = sentinels;
            const auto choice = choose_own_connection(of(undescribes, in));
            EXPECT_EQ(choice, (OwnChoice{choice.connection})) << "not awaited, and no probe";
            if (sentinels) return choice.connection;
        }
        return Connection::refused;
    };
    auto in = but(&OwnSituation::follow, Follow::full, all_kinds);
    for (const bool trusted : {true, false}) {
        in = but(&OwnSituation::follow, Follow::full, all_kinds);
        in.trusted = trusted;
        in.due = !trusted;
        EXPECT_EQ(chosen(in), Connection::follow);
        in.follow = Follow::none;
        EXPECT_EQ(chosen(in), Connection::behind_release);
        in.behind_release = false;
        EXPECT_EQ(chosen(in), Connection::idle);
        in.idle = Idle::all_dropped;
        EXPECT_EQ(chosen(in), Connection::unbound);
        in.unbound = false;
        EXPECT_EQ(chosen(in), trusted ? Connection::probing : Connection::none);
    }
    in.trusted = in.probing_may_be_former = true;
    EXPECT_EQ(chosen(in), Connection::fresh);
    in.probing = in.probing_may_be_former = false;
    EXPECT_EQ(chosen(in), Connection::fresh);
}

// ---- Which set of connections a command must use

TEST(MustFollow, ACommandThatFollowsItsSetOrAReleaseOfItsResource) {
    const OwnSituation behind{.behind_release = true};
    for (const auto effect : every_effect) {
        EXPECT_TRUE(must_follow(of(effect, but(&OwnSituation::follow, Follow::full, no_connections))));
        EXPECT_TRUE(must_follow(untrusted(of(effect, all_kinds), false)));
        EXPECT_FALSE(must_follow(of(effect, unfollowed)));
        EXPECT_EQ(must_follow(of(effect, behind)), effect == acquires || effect == describes);
        EXPECT_FALSE(must_follow(untrusted(of(effect, behind), true, true)));
    }
    EXPECT_TRUE(must_follow(of(undescribes, behind)));
    EXPECT_TRUE(must_follow(untrusted(of(undescribes, behind), false)));
}

}  // namespace
}  // namespace redlock::detail
