// The Redlock specification, "Distributed Locks with Redis", in its order: the model, one instance, the
// algorithm, retrying and release, performance and crash recovery, extension. The comments paraphrase the
// requirements, whose numbers are those of docs/requirements.md. If another file tests a requirement, the
// comment names that file.
#include "world.hpp"

namespace redlock::test {
namespace {

// ---- The model.

// S1. Mutual exclusion: at any moment only one client holds the lock.
TEST(RedlockSpecification, HasOneHolderAtAnyMoment) {
    World world;
    auto ours = world.lock(), theirs = world.lock();
    EXPECT_THAT(ours.try_acquire(), Succeeds());
    EXPECT_THAT(theirs.try_acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(theirs.release(), FailsWith(Errc::not_held));
    EXPECT_TRUE(ours.valid());
    EXPECT_THAT(ours.release(), Succeeds());
    EXPECT_THAT(theirs.try_acquire(), Succeeds());
    EXPECT_FALSE(ours.valid());
}

// S2, S25. No deadlock: the lock can be acquired again even if its holder crashed or was cut off before it
// could release. The cost is unavailability for one ttl, and no more.
TEST(RedlockSpecification, FreesALockOneTtlAfterItsHolderWasCutOff) {
    World world;
    auto theirs = world.held({.ttl = 10s}), ours = world.lock();
    world.cut_all();
    EXPECT_THAT(theirs.release(), FailsWith(Errc::no_quorum));
    world.heal_all();
    world.pass(10s);
    EXPECT_THAT(ours.try_acquire(), FailsWith(Errc::held_by_other))
        << "Redis expires a key after its last ms";
    world.pass(1ms);
    EXPECT_THAT(ours.try_acquire(), Succeeds());
}

// S3. Fault tolerance: while a majority of nodes is up, clients acquire and release. See quorum_test.cpp.

// S4. A promoted replica lacks the lock. With N independent masters one such loss lets no other client in.
// See EveryMinority.MayForgetTheKey.

// ---- One instance, and the same on N of them.

// S5. Acquiring on a node is one atomic SET resource owner NX PX ttl.
// S11. There are N masters, for example 5, with the same key and the same owner on each.
// S27. Many operations each second: one round to acquire, one to release, and no other commands.
TEST(RedlockSpecification, AcquiresWithOneSetThatIncludesTheTtl) {
    World world;
    auto lock = world.held({.ttl = 30s});
    EXPECT_EQ(world.held_by(lock.owner()), 5U);
    EXPECT_THAT(world.ttl_on(0), Lasts(30s));
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_THAT(world.events(), ElementsAre("set #1 for 30000 ms", "delete #1"));
}

// S6, S7. The owner is unique over all clients and all requests: 20 random bytes. See entropy_test.cpp.

// S8, B3. A release deletes only keys that are still ours. After a stall a bare DEL would remove the lock of
// another client.
TEST(RedlockSpecification, NeverRemovesALockCreatedByAnotherClient) {
    World world;
    auto stalled = world.held({.ttl = 10s});
    world.pass(11s);
    const auto theirs = world.held();
    EXPECT_THAT(stalled.release(), FailsWith(Errc::lost));
    EXPECT_EQ(world.held_by(theirs.owner()), 5U);
    EXPECT_TRUE(theirs.valid());
}

// S9. The ttl is both the auto-release time and the time that the holder has:
// Validity.EndsBeforeTheKeysExpire. S10. Release as soon as the work is done:
// Release.FreesTheResourceOnAllNodes.

// ---- The algorithm.

// S13. Step 2: the client tries all N nodes in turn, each with a timeout that is small compared with the ttl.
// It skips a node that is down at once.
TEST(RedlockSpecification, GivesEachNodeAShortTimeoutAndContinues) {
    World world{5, 50ms};
    world.silence(1);
    world.cut(3);
    auto lock = world.lock();
    EXPECT_THAT(time_taken(world, [&] { EXPECT_THAT(lock.try_acquire(), Succeeds()); }), Lasts(50ms));
    EXPECT_EQ(world.held_by(lock.owner()), 3U);
}

// S14. Step 3: the lock is held only with N/2 + 1 grants (quorum_test.cpp), and only if less than the
// validity has elapsed, here 1 s less a drift of 12 ms. S18. A majority that came too late is no lock, and is
// released.
TEST(RedlockSpecification, RequiresRemainingValidity) {
    for (const auto second_node : {499ms, 500ms}) {
        World world{2, 500ms};
        world.slow(0, 488ms);
        world.slow(1, second_node);
        auto lock = world.lock(no_retry(1s));
        const bool in_time = 488ms + second_node < 988ms;
        const auto result = lock.try_acquire();
        EXPECT_EQ(result.error(), in_time ? std::error_code{} : Errc::validity_exhausted);
        EXPECT_THAT(result.validity(), Lasts(in_time ? 1ms : 0ms));
        EXPECT_EQ(lock.valid(), in_time);
        EXPECT_EQ(world.clean(), !in_time);
    }
}

// S12, S15, S16. Steps 1 and 4: MIN_VALIDITY = ttl − (T2 − T1) − CLOCK_DRIFT. T1 is read before anything is
// sent. The example: of 5 minutes, 2 were spent and 1 is the drift, so 2 remain. More tests are in
// validity_test.cpp.
TEST(RedlockSpecification, HasTheResultOfItsOwnExample) {
    World world{5, 3min};
    world.slow(2, 2min);
    constexpr double one_minute_less_2_ms = 59'998.0 / 300'000.0;
    ASSERT_THAT(drift(5min, one_minute_less_2_ms), LastsAbout(1min));
    EXPECT_THAT(world.held({.ttl = 5min, .drift_factor = one_minute_less_2_ms}).remaining(),
                LastsAbout(2min));
}

// S17. Step 5: a client that failed releases all nodes, also those that it does not seem to hold:
// acquire_test.cpp.
// S19. Clocks need only run at about the same rate: Validity.AllowsForFasterClocksOfTheNodes.

// ---- Retry on failure, release.

// S20, S21, S22. A client that failed tries again after a random delay that is clearly longer than a majority
// takes, and not for ever: retry_test.cpp.
// S24. Before that it releases partial locks: retry_test.cpp.
// S26. A release goes to all nodes, whatever they replied: Releasing.ReachesEveryNodeThatMayHaveGotTheSet.

// ---- Crash recovery.

/// We hold the lock on a bare majority of three, nodes 0 and 1. Node 2 is up again.
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

// S28. Without persistence a restarted node breaks safety. This test documents the behaviour, which is no
// guarantee.
TEST_F(BareMajority, IsNotSafeIfANodeForgetsItsKeys) {
    world.forget(1);
    EXPECT_THAT(theirs.try_acquire(), Succeeds());
    EXPECT_TRUE(ours.valid() && theirs.valid()) << "two holders";
}

// S28. With the key on disk (AOF, fsync always) a restart changes nothing.
TEST_F(BareMajority, IsSafeIfANodeRestartsWithItsData) {
    world.cut(1);
    EXPECT_THAT(theirs.try_acquire(), Not(Succeeds()));
    world.heal(1);
    EXPECT_THAT(theirs.try_acquire(), Not(Succeeds()));
    EXPECT_TRUE(ours.valid());
}

// S29, S30. A crashed node that stays away for a bit more than the longest ttl takes part in no lock that was
// active, and therefore needs no persistence.
TEST_F(BareMajority, IsSafeIfANodeForgetsItsKeysAndStaysAwayForATtl) {
    world.forget(1);
    world.cut(1);
    EXPECT_THAT(theirs.try_acquire(), Not(Succeeds()));
    world.pass(10s + 1ms);
    EXPECT_FALSE(ours.valid());
    world.heal(1);
    EXPECT_THAT(theirs.try_acquire(), Succeeds());
}

// ---- Making the algorithm more reliable: extending the lock.

// S31, S32. A script raises the ttl if the key still has our owner. The lock is extended only by a majority
// and within the validity: extend_test.cpp.
// S33. Extensions are limited, otherwise one client could hold for ever. None happens unless the holder asks
// for it: Validity.RunsOut. A watchdog has a limit: renewal_queue_test.cpp.
// S34. The ttl must exceed the work plus the time to acquire plus the drift. The library checks that some
// validity is left: options_test.cpp.

}  // namespace
}  // namespace redlock::test
