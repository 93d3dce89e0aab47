// Fencing tokens: they grow from one holder to the next. They need one round if the counts agree, and more if
// they differ.
#include "world.hpp"

#include <array>
#include <functional>
#include <string>
#include <utility>

#include "lock/option_checks.hpp"

namespace redlock::test::fencing_test {
namespace {

constexpr std::uint64_t absurd = 8'900'000'000'000'000;  // because of a mistake or a lie

struct Fencing : testing::Test {
    World world;
    const std::uint64_t seed = world.seed();
    const std::uint64_t ahead = seed + 1'000'000;  // one second
    Lock lock = world.lock({.ttl = 10s, .retry = {.attempts = 1}, .fencing = true});

    /// Acquires, releases, and returns the token.
    std::uint64_t token_of_a_holder() {
        EXPECT_THAT(lock.acquire(), Succeeds());
        const auto token = lock.fencing_token();
        EXPECT_THAT(lock.release(), Succeeds());
        return token;
    }
};

TEST_F(Fencing, TokensGrowWhileNodesFailAndReturn) {
    std::uint64_t last = 0;
    for (std::size_t holder = 0; holder < 60; ++holder) {
        world.heal_all();
        world.cut(holder % 3);
        if (holder % 3 == 0) world.cut(4);
        if (holder % 7 == 0) world.forget(holder % 5);
        const auto token = token_of_a_holder();
        EXPECT_GT(token, last);
        last = token;
        world.pass(1ms);
    }
}

// If all nodes have the same count, the first round suffices.
TEST_F(Fencing, NeedsOneRoundIfTheCountsAgree) {
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(lock.fencing_token(), seed);
    EXPECT_THAT(world.events(), ElementsAre("set and count #1 for 10000 ms"));
}

// If the counts differ, the second round raises all nodes to the largest one.
TEST_F(Fencing, NeedsASecondRoundIfTheCountsDiffer) {
    world.count_on(3, ahead);
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(lock.fencing_token(), ahead + 1);
    EXPECT_THAT(world.events(),
                ElementsAre("set and count #1 for 10000 ms", "raise #1 to " + std::to_string(ahead + 1)));
    for (std::size_t node = 0; node < 5; ++node) EXPECT_EQ(world.counted_on(node), ahead + 1);
}

// The second round uses the commands of a reader, because the key of the resource has no owner.
TEST_F(Fencing, SendsReaderCommandsInTheSecondRoundOfAReader) {
    world.count_on(3, ahead);
    auto reader = world.lock({.ttl = 10s, .retry = {.attempts = 1}, .fencing = true, .shared = true});
    ASSERT_THAT(reader.acquire(), Succeeds());
    EXPECT_EQ(reader.fencing_token(), ahead + 1);
}

// A majority with the same count is enough.
TEST_F(Fencing, NeedsOneRoundIfAMajorityAgrees) {
    for (const std::size_t node : {0U, 2U, 4U}) world.count_on(node, ahead);
    EXPECT_EQ(token_of_a_holder(), ahead + 1);
    EXPECT_THAT(world.events(), Each(Not(HasSubstr("raise"))));
}

// Without a majority in the second round there is no token and no lock. Otherwise the next holder could get
// the same token.
TEST_F(Fencing, FailsWithoutAMajorityInTheSecondRound) {
    world.count_on(3, ahead);
    world.slow(4, 10ms);  // node 4 is last, so an event meanwhile comes between the rounds
    world.after(5ms, [&] { world.cut(0, 1, 2); });
    EXPECT_THAT(lock.acquire(), FailsWith(Errc::no_quorum));
    EXPECT_EQ(lock.fencing_token(), 0U);
    EXPECT_EQ(world.owner_on(3), "") << "given back";
    EXPECT_EQ(world.owner_on(4), "");
}

/// Node 3 is ahead, so that it alone has the token's count after the first round. In the second round two
/// nodes grant and two do not reply, so the vote of node 3 decides.
struct SecondRound : Fencing {
    SecondRound() {
        world.count_on(3, ahead);
        world.slow(4, 10ms);
    }
    void between_the_rounds(std::function<void()> event) {
        world.after(5ms, [this, event = std::move(event)] {
            world.silence(2, 4);
            event();
        });
    }
};

// The node has the token's count, so no client gets a smaller token from it.
TEST_F(SecondRound, CountsASilentNodeThatHasTheTokensCount) {
    between_the_rounds([&] { world.silence(3); });
    const auto result = lock.acquire();
    EXPECT_THAT(result, Succeeds()) << "2 raised, 1 has counted, 2 are silent";
    EXPECT_EQ(lock.fencing_token(), ahead + 1);
    EXPECT_EQ(result.nodes()[3].vote, Vote::granted);
}

// The key is gone, and the next holder of the node may have a token already.
TEST_F(SecondRound, DoesNotCountARefusingNodeThatHadTheTokensCount) {
    between_the_rounds([&] { world.occupy(1min, 3); });
    const auto result = lock.acquire();
    EXPECT_THAT(result, FailsWith(Errc::no_quorum)) << "2 raised, 1 has lost the key, 2 are silent";
    EXPECT_EQ(result.nodes()[3].vote, Vote::refused);
    EXPECT_EQ(lock.fencing_token(), 0U);
    EXPECT_THAT(result.validity(), Lasts(0ns));
}

// The address of the node leads to the server of another node by now, which votes for that one.
TEST_F(SecondRound, DoesNotCountANodeWhoseServerVotesForAnotherOne) {
    between_the_rounds([&] { world.lie(Errc::same_server, 3); });
    EXPECT_THAT(lock.acquire(), FailsWith(Errc::no_quorum)) << "2 raised, 1 has no vote, 2 are silent";
}

// The node did not have the token's count after the first round, and does not reply in the second one.
TEST_F(SecondRound, DoesNotCountASilentNodeWithASmallerCount) {
    between_the_rounds([&] { world.silence(1); });
    EXPECT_THAT(lock.acquire(), FailsWith(Errc::no_quorum)) << "1 raised, 1 has counted, 3 are silent";
}

// A node that lost our key between the rounds does not take part, and its counter stays. Its next holder may
// have a token already.
TEST_F(Fencing, RaisesNoCountOnANodeThatLostTheKey) {
    world.count_on(3, ahead);
    world.slow(4, 10ms);
    world.after(5ms, [&] { world.occupy(1min, 0); });
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(lock.fencing_token(), ahead + 1);
    EXPECT_EQ(world.counted_on(0), seed);
    EXPECT_EQ(world.counted_on(1), ahead + 1);
}

// The validity counts from the first round, and is checked after the second.
TEST_F(Fencing, SubtractsTheSecondRoundFromTheValidity) {
    world.count_on(3, ahead);
    world.slow(1, 40ms);
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_THAT(lock.remaining(), Lasts(10s - 102ms - 80ms));
}

// If the rounds use up the validity, no lock remains. There is one further round, or more for an absurd
// count.
TEST(FencingOfABriefLock, FailsIfTheSecondRoundUsesUpTheValidity) {
    for (const auto count : {World{}.seed() + 1'000'000, absurd}) {
        World world;
        auto brief = world.lock({.ttl = 100ms, .retry = {.attempts = 1}, .drift_factor = 0, .fencing = true});
        world.count_on(3, count);
        world.slow(1, 49ms);
        world.overrun_deadlines();
        EXPECT_THAT(brief.acquire(), FailsWith(Errc::validity_exhausted));
        EXPECT_EQ(brief.fencing_token(), 0U);
        EXPECT_TRUE(world.clean());
    }
}

// The counts of the other nodes agree, so no round is needed after the one that rejects the absurd count. The
// validity has ended nevertheless.
TEST(FencingOfABriefLock, FailsIfTheRejectionOfACountUsesUpTheValidity) {
    World world;
    auto brief = world.lock({.ttl = 100ms, .retry = {.attempts = 1}, .drift_factor = 0, .fencing = true});
    world.count_on(4, absurd);
    world.slow(4, 49ms);  // the last node, so the others have counted at one instant
    world.overrun_deadlines();
    EXPECT_THAT(brief.acquire(), FailsWith(Errc::validity_exhausted));
    EXPECT_FALSE(brief.valid());
    EXPECT_EQ(brief.fencing_token(), 0U);
    EXPECT_TRUE(world.clean());
}

// ---- A count far ahead of the nodes' clocks.

struct AbsurdCount : Fencing {
    AbsurdCount() { world.count_on(3, absurd); }
};

// The absurd count becomes no token, and no other node accepts it.
TEST_F(AbsurdCount, IsNotUsedAsAToken) {
    const auto result = lock.acquire();
    ASSERT_THAT(result, Succeeds());
    EXPECT_EQ(lock.fencing_token(), seed);
    EXPECT_EQ(result.nodes()[3].vote, Vote::unknown);
    EXPECT_EQ(result.nodes()[3].cause, Errc::unexpected_reply);
    EXPECT_EQ(result.nodes()[3].detail, "counts 8900000000000001, far ahead of the other nodes");
    EXPECT_EQ(result.nodes()[2].vote, Vote::granted);
    for (const std::size_t node : {0U, 1U, 2U, 4U}) EXPECT_EQ(world.counted_on(node), seed);
    EXPECT_THAT(world.events(), ElementsAre("set and count #1 for 10000 ms", "raise #1 to 8900000000000001"));
    (void)lock.release();
    EXPECT_TRUE(world.clean()) << "released like any other";
}

// The next largest count may need another round, without the rejected node.
TEST_F(AbsurdCount, IsReplacedByTheNextLargestCount) {
    world.count_on(1, ahead);
    const auto result = lock.acquire();
    ASSERT_THAT(result, Succeeds());
    EXPECT_EQ(lock.fencing_token(), ahead + 1);
    for (const std::size_t node : {0U, 1U, 2U, 4U}) EXPECT_EQ(world.counted_on(node), ahead + 1);
    EXPECT_EQ(world.counted_on(3), absurd + 1);
    EXPECT_EQ(result.nodes()[3].cause, Errc::unexpected_reply);
    EXPECT_THAT(world.events(),
                testing::Contains("raise #1 to " + std::to_string(ahead + 1) + " on 0 1 2 4"));
}

TEST_F(AbsurdCount, DoesNotSpreadToOtherNodes) {
    std::uint64_t last = 0;
    for (std::size_t holder = 0; holder < 20; ++holder) {
        world.heal_all();
        world.cut(std::array{0U, 1U, 2U, 4U}.at(holder % 4));
        const auto token = token_of_a_holder();
        EXPECT_GT(token, last);
        EXPECT_LE(token, world.seed());
        last = token;
        world.pass(1ms);
    }
    EXPECT_EQ(world.counted_on(3), absurd + 20);
}

// If the clock of one node is wrong and it rejects a count, the count still stands if a majority accepts it.
TEST_F(Fencing, AcceptsALargeCountIfAMajorityAcceptsIt) {
    world.set_clock_back(4, 72h);
    world.count_on(0, ahead);
    const auto result = lock.acquire();
    ASSERT_THAT(result, Succeeds());
    EXPECT_EQ(lock.fencing_token(), ahead + 1);
    EXPECT_EQ(result.nodes()[0].vote, Vote::granted);
    EXPECT_EQ(result.nodes()[4].vote, Vote::refused);
}

TEST_F(AbsurdCount, IsRejectedOnEachNodeThatHasOne) {
    world.count_on(0, absurd + 50);
    EXPECT_EQ(token_of_a_holder(), seed);
    EXPECT_EQ(world.counted_on(1), seed);
}

// A majority must remain whose counts are accepted.
TEST_F(AbsurdCount, PreventsTheLockIfTheOtherNodesAreNoMajority) {
    world.cut(0, 1);
    const auto result = lock.acquire();
    EXPECT_THAT(result, FailsWith(Errc::no_quorum));
    EXPECT_EQ(result.nodes()[3].cause, Errc::unexpected_reply);
    EXPECT_EQ(lock.fencing_token(), 0U);
    EXPECT_EQ(world.counted_on(2), seed);
    EXPECT_TRUE(world.clean());
}

// The token needs the counts of a majority. It is not enough that a majority can be raised to the count of
// two of five nodes.
TEST_F(AbsurdCount, PreventsTheLockIfNoMajorityHasReportedItsCount) {
    world.count_on(0, ahead);
    world.lose_replies_of(0);
    world.cut(1);
    world.after(75ms, [&] { world.heal(0); });  // after the round that rejects the absurd count
    EXPECT_THAT(lock.acquire(), FailsWith(Errc::no_quorum));
    EXPECT_EQ(world.counted_on(0), ahead + 1);
}

// A node that rejects the absurd count reports its own count, even if its grant arrived too late.
TEST_F(AbsurdCount, IsReplacedByTheCountOfALateNode) {
    world.cut(0);
    world.slow(1, 60ms);  // longer than node_timeout, so the grant is not seen
    world.slow(4, 10ms);
    world.after(55ms, [&] { world.heal(1); });
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(lock.fencing_token(), seed + 50'000)
        << "the count of nodes 2 and 4, which were asked after 50 ms";
}

// A node that has lost our key meanwhile takes no part in the following rounds.
TEST_F(AbsurdCount, IsNotReplacedByTheCountOfANodeThatLostTheKey) {
    world.cut(0);
    world.slow(4, 10ms);
    world.after(5ms, [&] { world.occupy(1min, 1); });
    const auto result = lock.acquire();
    EXPECT_THAT(result, FailsWith(Errc::no_quorum)) << "2 and 4 alone are no majority";
}

// A majority may have an absurd count if all clocks were wrong once. Then nothing has to be raised.
TEST_F(AbsurdCount, IsUsedAsATokenIfAMajorityHasIt) {
    world.count_on(1, absurd);
    world.count_on(4, absurd);
    EXPECT_EQ(token_of_a_holder(), absurd + 1);
}

// Without the option, an acquisition sends a plain SET and has no token.
TEST_F(Fencing, IsOffByDefault) {
    auto plain = world.lock();
    ASSERT_THAT(plain.acquire(), Succeeds());
    EXPECT_EQ(plain.fencing_token(), 0U);
    EXPECT_THAT(world.events(), ElementsAre("set #1 for 10000 ms"));
}

TEST_F(Fencing, KeepsTheTokenUntilTheRelease) {
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_EQ(lock.fencing_token(), seed);
    EXPECT_EQ(world.counted_on(0), seed);
    (void)lock.release();
    EXPECT_EQ(lock.fencing_token(), 0U);
    EXPECT_EQ(world.counted_on(0), seed) << "the count outlives the lock";
}

// A node without a vote keeps its counter until it has a vote again, and a day longer. This also holds for
// the longest quarantine, and for a counter that was raised.
TEST(FencingCounters, LiveLongerThanTheLongestQuarantine) {
    using Time = support::RedisModel::Time;
    const std::vector<std::string> resources{the_resource};
    const std::string owner(40, 'a');
    for (const milliseconds quarantine :
         {milliseconds{0}, milliseconds{1s}, milliseconds{24h * 30}, milliseconds{detail::longest_ttl}}) {
        support::RedisModel redis{"run"};
        Time now = 1'760'000'000s;
        const auto ask = [&](const Command& command) {
            std::string bytes;
            detail::append(bytes, command, {.quarantine = quarantine}, detail::ScriptForm::whole);
            std::string reply;
            support::CommandReader reader{std::numeric_limits<std::size_t>::max()};
            reader.take(bytes, [&](const auto& words) { reply = text_of(redis.execute(words, now)); });
            return reply;
        };
        const auto lives_for = [&](milliseconds span) {
            return redis.find(detail::key_of(detail::KeyKind::counter, the_resource).text(), now + span) !=
                   nullptr;
        };
        const Command count{.verb = Verb::set_and_count, .resources = resources, .owner = owner, .ttl = 1s};
        if (quarantine > 0ms) {
            EXPECT_THAT(ask(count), testing::StartsWith("QUARANTINED"));
        }
        now += quarantine + 1s;
        const auto fence = std::stoull(ask(count));
        EXPECT_TRUE(lives_for(quarantine + 23h)) << quarantine.count();
        now += 1h;
        const Command raise{
            .verb = Verb::raise_count, .resources = resources, .owner = owner, .fence = fence + 1};
        ask({.verb = Verb::set_if_absent, .resources = resources, .owner = owner, .ttl = 1s});
        EXPECT_EQ(ask(raise), "1");
        EXPECT_TRUE(lives_for(quarantine + 23h)) << quarantine.count();
    }
}

}  // namespace
}  // namespace redlock::test::fencing_test
