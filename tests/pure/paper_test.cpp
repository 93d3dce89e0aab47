// The page "Distributed Locks with Redis" in its order: the model, one instance, the algorithm, retrying and
// release, performance and crash recovery, extension. The comments paraphrase the requirement under its
// number in docs/requirements.md; where a file of its own tests it, they name that.
#include "world.hpp"

namespace redlock::test {
namespace {

// ---- The model.

// S1. Mutual exclusion: at any moment only one client holds the lock.
TEST(ThePage, HasOneHolderAtAnyMoment) {
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

// S2, S25. No deadlock: the lock can be taken again though its holder crashed or was cut off before it could
// release. That costs one ttl of availability, and no more.
TEST(ThePage, LetsALockBeTakenAgainATtlAfterItsHolderWasCutOff) {
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

// S3. Fault tolerance: while a majority of nodes is up, clients acquire and release: quorum_test.cpp.

// S4. A promoted replica lacks the lock. With N independent masters one such loss lets nobody in:
// EveryMinority.MayForgetTheKey.

// ---- One instance, and the same on N of them.

// S5. Acquiring on a node is one atomic SET resource owner NX PX ttl.
// S11. N masters, 5 being reasonable, with the same key and the same owner on each.
// S27. Many operations per second: one round to acquire, one to release, and nothing else on the wire.
TEST(ThePage, AcquiresWithOneSetThatCarriesTheTtl) {
    World world;
    auto lock = world.held({.ttl = 30s});
    EXPECT_EQ(world.held_by(lock.owner()), 5U);
    EXPECT_THAT(world.ttl_on(0), Lasts(30s));
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_THAT(world.events(), ElementsAre("set #1 for 30000 ms", "delete #1"));
}

// S6, S7. The owner is unique over all clients and all requests: 20 random bytes: entropy_test.cpp.

// S8, B3. Release deletes only what is still ours: after a stall a bare DEL would remove another's lock.
TEST(ThePage, NeverRemovesALockCreatedByAnotherClient) {
    World world;
    auto stalled = world.held({.ttl = 10s});
    world.pass(11s);
    const auto theirs = world.held();
    EXPECT_THAT(stalled.release(), FailsWith(Errc::lost));
    EXPECT_EQ(world.held_by(theirs.owner()), 5U);
    EXPECT_TRUE(theirs.valid());
}

// S9. The ttl is both the auto-release time and the time the holder has: Validity.EndsBeforeTheKeysDo.
// S10. Release as soon as the work is done: Release.FreesTheResourceOnAllNodes.

// ---- The algorithm.

// S13. Step 2: all N are tried in turn, each with a timeout small against the ttl; a node that is down is
// passed over at once.
TEST(ThePage, GivesEachNodeAShortBudgetAndGoesOn) {
    World world{5, 50ms};
    world.silence(1);
    world.cut(3);
    auto lock = world.lock();
    EXPECT_THAT(time_taken(world, [&] { EXPECT_THAT(lock.try_acquire(), Succeeds()); }), Lasts(50ms));
    EXPECT_EQ(world.held_by(lock.owner()), 3U);
}

// S14. Step 3: the lock is held only with N/2 + 1 grants (quorum_test.cpp), and only if less than the
// validity has elapsed: here 1 s less a drift of 12 ms. S18. A majority that was won too late is no lock, and
// is released.
TEST(ThePage, NeedsTimeLeft) {
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

// S12, S15, S16. Steps 1 and 4: MIN_VALIDITY = ttl − (T2 − T1) − CLOCK_DRIFT, where T1 is read before
// anything is sent. The worked example: of 5 minutes, 2 spent and 1 for the drift, 2 are left. More:
// validity_test.cpp.
TEST(ThePage, WorksOutItsOwnExample) {
    World world{5, 3min};
    world.slow(2, 2min);
    constexpr double one_minute_less_2_ms = 59'998.0 / 300'000.0;
    ASSERT_THAT(drift(5min, one_minute_less_2_ms), LastsAbout(1min));
    EXPECT_THAT(world.held({.ttl = 5min, .drift_factor = one_minute_less_2_ms}).remaining(),
                LastsAbout(2min));
}

// S17. Step 5: a client that failed releases all nodes, also where it does not believe that it holds:
// acquire_test.cpp.
// S19. Clocks need only run at about the same rate: Validity.AllowsForClocksThatRunFaster.

// ---- Retry on failure, release.

// S20, S21, S22. A client that failed tries again after a random delay, clearly longer than a majority takes,
// and not for ever; S24. it releases partial locks before: retry_test.cpp.
// S26. Release goes to all nodes, whatever they answered: Releasing.GoesWhereTheSetMayHaveGone.

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
    world.pass(10s + 1ms);
    EXPECT_FALSE(ours.valid());
    world.heal(1);
    EXPECT_THAT(theirs.try_acquire(), Succeeds());
}

// ---- Making the algorithm more reliable: extending the lock.

// S31, S32. A script raises the ttl where the key still holds our owner; the lock is extended only by a
// majority and within the validity: extend_test.cpp. S33. Extensions are limited, or one client could hold
// for ever: none happens unless the holder asks for it: Validity.RunsOut; a watchdog has a limit:
// renewal_queue_test.cpp. S34. The ttl exceeds the work plus the time to acquire plus the drift; what is
// checked is that some is left: options_test.cpp.

}  // namespace
}  // namespace redlock::test
