// The page "Distributed Locks with Redis" in its order, as far as a single client's decisions go: the model,
// one instance, the algorithm. paper_safety_test.cpp goes on with retries, performance, crash recovery and
// extension. The comments paraphrase the requirement under its number in docs/requirements.md.
#include "world.hpp"

#include <redlock/redis_nodes.hpp>

namespace redlock::test {
namespace {

// ---- The model.

// S1. Mutual exclusion: at any moment only one client holds the lock.
TEST(ThePage, HasOneHolderAtAnyMoment) {
    World world;
    auto ours = world.lock(), theirs = world.lock();
    EXPECT_THAT(ours.try_acquire(), Succeeds());
    EXPECT_THAT(theirs.try_acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(ours.release(), Succeeds());
    EXPECT_THAT(theirs.try_acquire(), Succeeds());
    EXPECT_FALSE(ours.valid());
}

// S2. No deadlock: the lock can be taken again though its holder crashed or was cut off.
TEST(ThePage, LetsALockBeTakenAgainATtlAfterItsHolderCrashed) {
    World world;
    auto theirs = world.lock({.ttl = 10s});
    ASSERT_THAT(theirs.try_acquire(), Succeeds());
    world.crash(std::move(theirs));

    auto ours = world.lock();
    world.pass(10s - 1ns);
    EXPECT_THAT(ours.try_acquire(), FailsWith(Errc::held_by_other));
    world.pass(1ns);
    EXPECT_THAT(ours.try_acquire(), Succeeds());
}

// S3. Fault tolerance: while a majority of nodes is up, clients acquire and release.
TEST(ThePage, WorksWhileAMajorityIsUp) {
    World world;
    auto lock = world.lock();
    world.cut(1, 3);
    EXPECT_THAT(lock.try_acquire(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(world.clean());

    world.cut(4);
    EXPECT_THAT(lock.try_acquire(), FailsWith(Errc::no_quorum));
}

// S4. A promoted replica lacks the lock. With N independent masters one such loss lets nobody in.
TEST(ThePage, SurvivesTheLossOfOneNodesKeys) {
    World world;
    auto ours = world.lock(), theirs = world.lock();
    ASSERT_THAT(ours.try_acquire(), Succeeds());
    world.forget(0);
    EXPECT_THAT(theirs.try_acquire(), FailsWith(Errc::held_by_other));
}

// ---- One instance.

// S5. Acquiring on a node is one atomic SET resource owner NX PX ttl.
TEST(ThePage, AcquiresWithOneSetThatCarriesTheTtl) {
    World world{1};
    auto lock = world.lock({.ttl = 30s});
    ASSERT_THAT(lock.try_acquire(), Succeeds());
    EXPECT_THAT(world.events(), ElementsAre("set #1 for 30000 ms"));
    EXPECT_EQ(world.owner_on(0), lock.owner());
    EXPECT_THAT(world.ttl_on(0), Lasts(30s));
}

// S6, S7. The owner is unique over all clients and all requests: 20 random bytes, here in hex.
TEST(ThePage, SignsEveryRequestWithARandomOwner) {
    World world;
    auto lock = world.lock();
    std::vector<std::string> owners;
    for (int request = 0; request < 3; ++request) {
        ASSERT_THAT(lock.try_acquire(), Succeeds());
        owners.emplace_back(lock.owner());
        (void)lock.release();
    }
    EXPECT_THAT(owners, Each(SizeIs(40)));
    EXPECT_EQ(world.log.owners_met(), 3U);
}

// S8. Release deletes only what is still ours: after a stall a bare DEL would remove another's lock.
TEST(ThePage, NeverRemovesALockCreatedByAnotherClient) {
    World world;
    auto stalled = world.lock({.ttl = 10s}), theirs = world.lock({.ttl = 10s});
    ASSERT_THAT(stalled.try_acquire(), Succeeds());
    world.pass(11s);
    ASSERT_THAT(theirs.try_acquire(), Succeeds());

    EXPECT_THAT(stalled.release(), FailsWith(Errc::lost));
    EXPECT_EQ(world.held_by(theirs.owner()), 5U);
    EXPECT_TRUE(theirs.valid());
}

// S9. The ttl is both the auto-release time and the time the holder has.
TEST(ThePage, GivesTheHolderNoMoreTimeThanTheNodesDo) {
    World world;
    auto lock = world.lock({.ttl = 10s});
    ASSERT_THAT(lock.try_acquire(), Succeeds());
    world.pass(lock.remaining());
    EXPECT_FALSE(lock.valid());
    EXPECT_EQ(world.held_by(lock.owner()), 5U) << "our validity ends first";
    world.pass(10s);
    EXPECT_TRUE(world.clean());
}

// S10. Release as soon as the work is done: the next client need not wait for the ttl.
TEST(ThePage, FreesTheResourceAtOnceOnRelease) {
    World world;
    auto ours = world.lock({.ttl = 1h}), theirs = world.lock();
    ASSERT_THAT(ours.try_acquire(), Succeeds());
    ASSERT_THAT(ours.release(), Succeeds());
    EXPECT_THAT(time_taken(world, [&] { EXPECT_THAT(theirs.acquire(), Succeeds()); }), Lasts(0ns));
}

// ---- The algorithm.

// S11. N masters, 5 being reasonable, with the same key and the same owner on each.
TEST(ThePage, SetsTheSameKeyAndOwnerOnAllNodes) {
    World world;
    auto lock = world.lock();
    ASSERT_THAT(lock.try_acquire(), Succeeds());
    EXPECT_EQ(world.held_by(lock.owner()), 5U);
}

// S12. Step 1: the client reads the time before it sends anything; what the round takes is its own loss.
TEST(ThePage, CountsTheValidityFromBeforeTheFirstByte) {
    World world{5, 4s};
    world.slow(0, 3s);
    auto lock = world.lock({.ttl = 10s});
    const auto start = world.clock.now();
    ASSERT_THAT(lock.try_acquire(), Succeeds());
    world.clock.advance_to(start + 10s - drift(10s, 0.01) - 1ns);
    EXPECT_TRUE(lock.valid());
    world.pass(1ns);
    EXPECT_FALSE(lock.valid());
}

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

// S13. 5 to 50 ms where the ttl is 10 s.
TEST(ThePage, SuggestsTheDefaults) {
    EXPECT_EQ(LockOptions{}.ttl, 10s);
    EXPECT_GE(NodesOptions{}.node_timeout, 5ms);
    EXPECT_LE(NodesOptions{}.node_timeout, 50ms);
}

// S14. Step 3: the lock is held only with N/2 + 1 grants ...
TEST(ThePage, NeedsAMajorityOfGrants) {
    World world;
    auto lock = world.lock();
    world.occupy(1min, 0, 1);
    EXPECT_THAT(lock.try_acquire(), Succeeds());
    (void)lock.release();
    world.occupy(1min, 2);
    EXPECT_THAT(lock.try_acquire(), FailsWith(Errc::held_by_other));
}

// S14. ... and only if less than the validity has elapsed: here 1 s less a drift of 12 ms.
TEST(ThePage, NeedsTimeLeft) {
    for (const auto second_node : {499ms, 500ms}) {
        World world{2, 500ms};
        world.slow(0, 488ms);
        world.slow(1, second_node);
        auto lock = world.lock(no_retry(1s));
        EXPECT_EQ(static_cast<bool>(lock.try_acquire()), 488ms + second_node < 988ms);
    }
}

// S15. Step 4: the validity is the ttl less the time elapsed.
TEST(ThePage, TakesTheTimeElapsedOffTheValidity) {
    World world;
    for (std::size_t node = 0; node < 5; ++node) world.slow(node, 20ms);
    auto lock = world.lock({.ttl = 10s, .drift_factor = 0});
    const auto result = lock.try_acquire();
    ASSERT_THAT(result, Succeeds());
    EXPECT_THAT(result.validity(), Lasts(10s - 5 * 20ms - 2ms));
    EXPECT_THAT(lock.remaining(), Lasts(result.validity()));
}

// S16. MIN_VALIDITY = ttl − (T2 − T1) − CLOCK_DRIFT. The worked example: of 5 minutes, 2 spent and 1 for the
// drift, 2 are left.
TEST(ThePage, WorksOutItsOwnExample) {
    World world{5, 3min};
    world.slow(2, 2min);
    constexpr double one_minute_less_2_ms = 59'998.0 / 300'000.0;
    ASSERT_THAT(drift(5min, one_minute_less_2_ms), LastsAbout(1min));

    auto lock = world.lock({.ttl = 5min, .drift_factor = one_minute_less_2_ms});
    ASSERT_THAT(lock.try_acquire(), Succeeds());
    EXPECT_THAT(lock.remaining(), LastsAbout(2min));
}

// S17. Step 5: a client that failed releases all nodes, also where it does not believe that it holds.
TEST(ThePage, ReleasesAllNodesAfterAFailure) {
    World world;
    world.occupy(1min, 0, 1, 2);
    world.lose_replies_of(3);
    auto lock = world.lock(no_retry());
    ASSERT_THAT(lock.try_acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(world.events(), ElementsAre("set #1 for 10000 ms", "delete #1"));
    EXPECT_EQ(world.held_by("somebody else"), 3U);
    EXPECT_EQ(world.held_by({}), 2U) << "node3 had executed the SET though its reply was lost";
}

// S18. A majority that was won too late is no lock.
TEST(ThePage, GivesUpAMajorityThatCameTooLate) {
    World world{5, 400ms};
    for (std::size_t node = 0; node < 5; ++node) world.slow(node, 350ms);
    auto lock = world.lock(no_retry(1s));
    const auto result = lock.try_acquire();
    EXPECT_THAT(result, FailsWith(Errc::validity_exhausted));
    EXPECT_THAT(result.validity(), Lasts(0ns));
    EXPECT_FALSE(lock.valid());
    EXPECT_TRUE(world.clean());
}

// S19. Clocks need only run at about the same rate: one within the drift factor lets nobody in early.
TEST(ThePage, StandsClocksThatRunFasterWithinTheDrift) {
    World world;
    for (std::size_t node = 0; node < 5; ++node) world.run_fast(node, 1.01);
    auto ours = world.lock(no_retry()), theirs = world.lock(no_retry());
    ASSERT_THAT(ours.try_acquire(), Succeeds());
    world.pass(ours.remaining() - 1ns);
    EXPECT_TRUE(ours.valid());
    EXPECT_THAT(theirs.try_acquire(), FailsWith(Errc::held_by_other));
}

}  // namespace
}  // namespace redlock::test
