// The page "Distributed Locks with Redis", continued from paper_test.cpp: retrying, release, performance and
// crash recovery, extension.
#include "world.hpp"

#include <redlock/redis_nodes.hpp>

#include <algorithm>

namespace redlock::test {
namespace {

// ---- Retry on failure, release.

// S20. A client that failed tries again after a random delay.
TEST(ThePage, RetriesAfterARandomDelay) {
    std::vector<Clock::duration> pauses;
    for (const std::uint64_t process : {1U, 2U, 3U}) {
        World world{5, 50ms, process};
        world.occupy(1min, 0, 1, 2);
        (void)world.lock().acquire();
        for (const auto pause : world.clock.pauses()) pauses.push_back(pause);
    }
    ASSERT_THAT(pauses, SizeIs(6));
    std::ranges::sort(pauses);
    EXPECT_EQ(std::ranges::adjacent_find(pauses), pauses.end()) << "no two are alike";
}

// S21. The delay is clearly longer than the time it takes to get a majority.
TEST(ThePage, PausesLongerThanAMajorityTakes) {
    EXPECT_GT(LockOptions{}.retry.delay / 2, NodesOptions{}.node_timeout);
}

// S22. Retries are limited.
TEST(ThePage, LimitsTheRetries) {
    World world;
    world.occupy(1h, 0, 1, 2);
    auto lock = world.lock({.retry = {.attempts = 7}});
    const auto result = lock.acquire();
    EXPECT_THAT(result, FailsWith(Errc::held_by_other));
    EXPECT_EQ(result.attempts(), 7);
    EXPECT_THAT(world.clock.pauses(), SizeIs(6));
}

// S24. Partial locks are released as soon as a round has failed, so that nobody need wait for their expiry.
TEST(ThePage, ReleasesAPartialLockBeforeItPauses) {
    World world;
    world.occupy(1h, 0, 1, 2);
    (void)world.lock({.retry = {.attempts = 2}}).acquire();
    EXPECT_THAT(world.events(), ElementsAre("set #1 for 10000 ms", "delete #1", "pause",  //
                                            "set #2 for 10000 ms", "delete #2"));
}

// S25. A client cut off before it could release costs the others one ttl of availability; no more.
TEST(ThePage, PaysOneTtlForAClientThatWasCutOff) {
    World world;
    auto theirs = world.lock({.ttl = 10s}), ours = world.lock(no_retry());
    ASSERT_THAT(theirs.try_acquire(), Succeeds());
    world.cut_all();
    ASSERT_THAT(theirs.release(), FailsWith(Errc::no_quorum));
    world.heal_all();

    EXPECT_THAT(ours.try_acquire(), FailsWith(Errc::held_by_other));
    world.pass(10s);
    EXPECT_THAT(ours.try_acquire(), Succeeds());
}

// S26. Release goes to all nodes, whether the client believes to have locked them or not.
TEST(ThePage, ReleasesAllNodesWhateverTheyAnswered) {
    World world;
    world.lose_replies_of(4);
    auto lock = world.lock();
    const auto result = lock.try_acquire();
    ASSERT_THAT(result, Succeeds());
    ASSERT_EQ(result.nodes()[4].vote, Vote::unknown);
    (void)lock.release();
    EXPECT_THAT(world.events(), ElementsAre("set #1 for 10000 ms", "delete #1"));
    EXPECT_TRUE(world.clean());
}

// ---- Performance.

// S27. Many acquire and release operations per second: one round each, and nothing else on the wire.
TEST(ThePage, NeedsOneRoundToAcquireAndOneToRelease) {
    World world;
    auto lock = world.lock();
    (void)lock.try_acquire();
    EXPECT_THAT(world.events(), SizeIs(1));
    (void)lock.release();
    EXPECT_THAT(world.events(), SizeIs(2));
}

// ---- Crash recovery.

/// We hold the lock on a bare majority of three, node0 and node1; node2 is up again.
struct BareMajority : testing::Test {
    BareMajority() {
        world.cut(2);
        EXPECT_THAT(ours.try_acquire(), Succeeds());
        world.heal(2);
    }

    World world{3};
    Lock ours = world.lock({.ttl = 10s});
    Lock theirs = world.lock({.ttl = 10s, .retry = {.attempts = 1}});
};

// S28. Without persistence a restarted node breaks safety. This is not promised; here is how it looks.
TEST_F(BareMajority, IsNotSafeFromANodeThatForgets) {
    world.forget(1);
    EXPECT_THAT(theirs.try_acquire(), Succeeds());
    EXPECT_TRUE(ours.valid() && theirs.valid()) << "two holders";
}

// S28. With the key on disk (AOF, fsync always) a restart changes nothing.
TEST_F(BareMajority, IsSafeFromANodeThatRestartsWithItsData) {
    world.cut(1);
    EXPECT_THAT(theirs.try_acquire(), Not(Succeeds()));
    world.heal(1);
    EXPECT_THAT(theirs.try_acquire(), Not(Succeeds()));
    EXPECT_TRUE(ours.valid());
}

// S29, S30. A crashed node that stays away for a bit more than the longest ttl takes part in no lock that was
// active, and so needs no persistence.
TEST_F(BareMajority, IsSafeFromANodeThatForgetsAndStaysAwayForATtl) {
    world.forget(1);
    world.cut(1);
    EXPECT_THAT(theirs.try_acquire(), Not(Succeeds()));
    world.pass(10s);
    EXPECT_FALSE(ours.valid());
    world.heal(1);
    EXPECT_THAT(theirs.try_acquire(), Succeeds());
}

// ---- Making the algorithm more reliable: extending the lock.

// S31. A script raises the ttl where the key still holds our owner.
TEST(ThePage, ExtendsTheKeysThatStillHoldOurOwner) {
    World world;
    auto lock = world.lock({.ttl = 10s});
    ASSERT_THAT(lock.try_acquire(), Succeeds());
    world.pass(6s);
    world.forget_events();
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(world.events(), ElementsAre("expire #1 in 10000 ms"));
    for (std::size_t node = 0; node < 5; ++node) EXPECT_THAT(world.ttl_on(node), Lasts(10s));
    EXPECT_THAT(lock.remaining(), Lasts(10s - 102ms));
}

// S32. The lock is extended only by a majority ...
TEST(ThePage, CountsAnExtensionOnlyWithAMajority) {
    World world;
    auto lock = world.lock({.ttl = 10s});
    ASSERT_THAT(lock.try_acquire(), Succeeds());
    world.pass(6s);
    world.cut(0, 1, 2);
    EXPECT_THAT(lock.extend(), FailsWith(Errc::no_quorum));
    EXPECT_THAT(lock.remaining(), Lasts(4s - 102ms));
}

// S32. ... and within the validity.
TEST(ThePage, CountsAnExtensionOnlyWithinTheValidity) {
    World world;
    world.overrun_deadlines();
    auto lock = world.lock({.ttl = 10s});
    ASSERT_THAT(lock.try_acquire(), Succeeds());
    world.pass(lock.remaining() - 10ms);
    for (std::size_t node = 0; node < 5; ++node) world.slow(node, 10ms);
    EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
    EXPECT_FALSE(lock.valid());
}

// S33. Extensions are limited, or one client could hold for ever: none happens unless the holder asks for it.
TEST(ThePage, ExtendsNothingBehindTheHoldersBack) {
    World world;
    auto lock = world.lock({.ttl = 10s});
    ASSERT_THAT(lock.try_acquire(), Succeeds());
    world.pass(10s);
    EXPECT_THAT(world.events(), SizeIs(1));
    EXPECT_FALSE(lock.valid());
}

// S34. The ttl exceeds the work plus the time to acquire plus the drift; what is checked is that some is
// left.
TEST(ThePage, RefusesATtlThatTheDriftAndOneNodesBudgetUseUp) {
    World world{5, 50ms};
    EXPECT_THROW(world.lock({.ttl = 52ms, .drift_factor = 0}), std::invalid_argument);
    EXPECT_NO_THROW(world.lock({.ttl = 53ms, .drift_factor = 0}));
}

}  // namespace
}  // namespace redlock::test
