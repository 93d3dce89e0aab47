// Which shared connection a command uses, and when it is written: each row of the tables.

#include <gtest/gtest.h>

#include <initializer_list>

#include "round/connection_choice.hpp"
#include "round/write_choice.hpp"

namespace redlock::detail::connection_choice_test {
namespace {

using namespace std::chrono_literals;
using enum KeyEffect;
using Current = ConnectionSituation::Current;
using Connection = ConnectionChoice::Connection;

constexpr auto every_effect = {none, acquires, extends, releases, enqueues, describes};
constexpr auto every_state = {Current::none, Current::in_the_making, Current::overdue, Current::ready,
                              Current::outdated};

/// Calls `check` for each effect except a release.
template <class Check>
void for_other_commands(Check check) {
    for (const auto effect : every_effect)
        if (effect != releases) check(effect);
}

TEST(ConnectionChoice, AReleaseFollowsADrainingConnection) {
    for (const auto state : every_state)
        for (const bool trusted : {true, false})
            EXPECT_EQ(choose_connection({releases, true, state, trusted, false}),
                      (ConnectionChoice{Connection::draining, trusted}));
}

TEST(ConnectionChoice, AnUntrustedNodeIsAskedOnlyByAProbeOrARelease) {
    for (const auto state : every_state) {
        for_other_commands([&](auto effect) {
            EXPECT_EQ(choose_connection({effect, false, state, false, false}),
                      (ConnectionChoice{Connection::none, false}));
            EXPECT_GE(choose_connection({effect, false, state, false, true}).connection, Connection::current);
        });
        EXPECT_GE(choose_connection({releases, false, state, false, false}).connection, Connection::current);
    }
}

TEST(ConnectionChoice, WithoutACurrentConnectionAFreshOneIsBegun) {
    for (const auto effect : every_effect)
        for (const bool trusted : {true, false})
            EXPECT_EQ(choose_connection({effect, false, Current::none, trusted, true}),
                      (ConnectionChoice{Connection::fresh, trusted || effect == releases}));
}

TEST(ConnectionChoice, AnOverdueOrOutdatedConnectionIsReplacedUnlessForARelease) {
    for (const auto state : {Current::overdue, Current::outdated})
        for (const bool trusted : {true, false}) {
            for_other_commands([&](auto effect) {
                EXPECT_EQ(choose_connection({effect, false, state, trusted, true}),
                          (ConnectionChoice{Connection::fresh, trusted}));
            });
            EXPECT_EQ(choose_connection({releases, false, state, trusted, true}),
                      (ConnectionChoice{Connection::current, trusted && state == Current::outdated}));
        }
}

TEST(ConnectionChoice, AConnectionThatIsMadeSlowlyIsNotWorthWaitingForWithARelease) {
    for (const auto effect : every_effect)
        EXPECT_EQ(choose_connection({effect, false, Current::made_slowly, true, true}),
                  (ConnectionChoice{Connection::current, effect != releases}));
}

TEST(ConnectionChoice, OtherwiseTheCurrentConnectionIsShared) {
    for (const auto effect : every_effect)
        for (const auto state : {Current::in_the_making, Current::ready})
            for (const bool trusted : {true, false})
                EXPECT_EQ(choose_connection({effect, false, state, trusted, true}),
                          (ConnectionChoice{Connection::current, trusted}));
}

// It counts as a release, but makes no connection to a node that has failed.
TEST(ConnectionChoice, TheDeletionOfADescriptionUsesAConnectionThatExists) {
    for (const auto state : every_state)
        for (const bool trusted : {true, false}) {
            EXPECT_EQ(choose_connection({undescribes, true, state, trusted, true}).connection,
                      Connection::draining);
            if (state == Current::none) continue;
            EXPECT_EQ(choose_connection({undescribes, false, state, trusted, false}).connection,
                      Connection::current);
        }
    EXPECT_EQ(choose_connection({undescribes, false, Current::none, true, false}).connection,
              Connection::fresh);
    EXPECT_EQ(choose_connection({undescribes, false, Current::none, false, true}).connection,
              Connection::none);
}

// ---- When a command may be written

constexpr SendSituation open{.established = true, .ready = true};

SendSituation but(auto SendSituation::*member, auto value, SendSituation in = open) {
    in.*member = value;
    return in;
}

TEST(MayWrite, ACommandNeedsAReadyConnectionWithRoomAndItsTurn) {
    EXPECT_TRUE(may_send(open));
    EXPECT_FALSE(may_send(but(&SendSituation::ready, false)));
    EXPECT_FALSE(may_send(but(&SendSituation::drains, true)));
    EXPECT_FALSE(may_send(but(&SendSituation::others_wait, true)));
    EXPECT_TRUE(may_send(but(&SendSituation::pending, max_shared_pending - 1)));
    EXPECT_FALSE(may_send(but(&SendSituation::pending, max_shared_pending)));
    EXPECT_TRUE(may_send(but(&SendSituation::outstanding, std::size_t{1}))) << "behind another command";
    EXPECT_TRUE(may_send(but(&SendSituation::silence, 10s)));
}

TEST(MayWrite, AReleaseOrTheDeletionOfADescriptionOnlyNeedsAnEstablishedConnection) {
    for (const auto effect : {releases, undescribes}) {
        SendSituation worst{.effect = effect,
                            .established = true,
                            .drains = true,
                            .others_wait = true,
                            .pending = 2 * max_shared_pending,
                            .outstanding = max_shared_pending,
                            .has_sentinels = true,
                            .silence = 10s};
        EXPECT_TRUE(may_send(worst));
        EXPECT_FALSE(may_send(but(&SendSituation::established, false, worst)));
    }
}

TEST(MayWrite, ADescriptionDoesNotWaitForItsTurn) {
    const SendSituation late{.effect = describes,
                             .established = true,
                             .ready = true,
                             .others_wait = true,
                             .pending = max_shared_pending - 1,
                             .outstanding = 1,
                             .has_sentinels = true,
                             .silence = 10s};
    EXPECT_TRUE(may_send(late));
    EXPECT_FALSE(may_send(but(&SendSituation::ready, false, late)));
    EXPECT_FALSE(may_send(but(&SendSituation::drains, true, late)));
    EXPECT_FALSE(may_send(but(&SendSituation::pending, max_shared_pending, late)));
}

TEST(MayWrite, WithSentinelsNothingIsWrittenBehindAnOutstandingCommandOrAfterASecondOfSilence) {
    const auto sentinels = but(&SendSituation::has_sentinels, true);
    EXPECT_TRUE(may_send(sentinels));
    EXPECT_TRUE(may_send(but(&SendSituation::pending, std::size_t{5}, sentinels))) << "in the same write";
    EXPECT_FALSE(may_send(but(&SendSituation::outstanding, std::size_t{1}, sentinels)));
    EXPECT_TRUE(may_send(but(&SendSituation::silence, 999ms, sentinels)));
    EXPECT_FALSE(may_send(but(&SendSituation::silence, 1s, sentinels)));
}

TEST(Collecting, EndsWithoutOutstandingRepliesWithAReplyOrAfterAMillisecond) {
    EXPECT_TRUE(writes_now(0, false, 0s, false));
    EXPECT_FALSE(writes_now(1, false, 0s, false));
    EXPECT_TRUE(writes_now(1, true, 0s, false));
    EXPECT_FALSE(writes_now(1, false, max_collecting - 1ns, false));
    EXPECT_TRUE(writes_now(1, false, max_collecting, false));
    EXPECT_TRUE(writes_now(1, false, 0s, true)) << "it drains";
}

}  // namespace
}  // namespace redlock::detail::connection_choice_test
