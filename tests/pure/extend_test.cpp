// Rules C1 to C4: extending counts only where it is certain, and its failure takes nothing away.
#include "world.hpp"

namespace redlock::test {
namespace {

/// A lock with a ttl of 10 s (drift: 102 ms) on five nodes, six seconds old.
struct Extend : testing::Test {
    Extend() {
        world.pass(6s);
        world.forget_events();
    }

    World world;
    Lock lock = world.held({.ttl = 10s});
};

// C2, A1, S31. The new validity counts from the extension's own start: what the round takes is lost, as when
// acquiring. The owner stays: it is the same acquisition.
TEST_F(Extend, PutsTheTimeLeftBackToTheWholeTtl) {
    const std::string owner{lock.owner()};
    world.slow(3, 40ms);
    const auto result = lock.extend();
    EXPECT_THAT(result, Succeeds());
    EXPECT_THAT(lock.remaining(), Lasts(10s - 102ms - 40ms));
    EXPECT_THAT(result.validity(), Lasts(lock.remaining()));
    EXPECT_EQ(result.attempts(), 1);
    EXPECT_EQ(lock.owner(), owner);
}

// A longer ttl than the option's, with its own drift.
TEST_F(Extend, TakesAnotherTtl) {
    EXPECT_THAT(lock.extend(100s), Succeeds());
    EXPECT_THAT(lock.remaining(), Lasts(100s - 1002ms));
    EXPECT_THAT(world.events(), ElementsAre("expire #1 in 100000 ms"));
}

// ---- Shorter than what is left.

// What the Result says is what the lock says.
TEST_F(Extend, NeverShortens) {
    const auto result = lock.extend(1s);
    EXPECT_THAT(result, Succeeds());
    EXPECT_THAT(result.validity(), Lasts(lock.remaining()));
    EXPECT_THAT(lock.remaining(), Lasts(4s - 102ms));
    EXPECT_THAT(world.ttl_on(0), Lasts(4s));
}

// We were stalled in the round for longer than the shorter ttl: that one was of no use, the old instant
// stands.
TEST_F(Extend, MayUseUpAShorterTtl) {
    world.slow(0, 40ms);
    world.after(40ms, [&] { world.pass(1s); });
    EXPECT_THAT(lock.extend(1s), FailsWith(Errc::validity_exhausted));
    EXPECT_THAT(lock.remaining(), Lasts(4s - 102ms - 1040ms));
}

// ---- Failure (C2: neither moved nor zeroed).

// C2, S32. Too few answers: the old instant stands, and it may be tried again while there is time.
TEST_F(Extend, LeavesTheOldInstantWhenTheNodesDoNotAnswer) {
    world.cut(0, 1, 2);
    EXPECT_THAT(lock.extend(), FailsWith(Errc::no_quorum));
    EXPECT_TRUE(lock.valid());
    EXPECT_THAT(lock.remaining(), Lasts(4s - 102ms));
    world.heal(0, 1, 2);
    world.pass(1s);
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(lock.remaining(), Lasts(10s - 102ms));
}

// C2, B1. The nodes lengthened the keys, but we never heard of it: the release deletes them all the same.
TEST_F(Extend, LeavesNothingBehindAfterAFailure) {
    world.lose_replies_of(0, 1, 2);
    EXPECT_THAT(lock.extend(), FailsWith(Errc::no_quorum));
    EXPECT_THAT(lock.remaining(), Lasts(4s - 102ms - 50ms));
    world.heal(0, 1, 2);
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

// A12, C1. It reports why, node by node: a missing key is a refusal.
TEST_F(Extend, ReportsEachNode) {
    world.forget(1);
    world.cut(2);
    const auto result = lock.extend();
    EXPECT_THAT(result, Succeeds());
    EXPECT_EQ(result.nodes()[0].vote, Vote::granted);
    EXPECT_EQ(result.nodes()[1].vote, Vote::refused);
    EXPECT_EQ(result.nodes()[2].cause, Errc::connection_failed);
}

// ---- What no longer is ours (C1).

// C1, C2. When a majority no longer has our key the lock is lost, though its instant has not come, and it is
// not valid again when the nodes are.
TEST_F(Extend, TellsThatAMajorityNoLongerHasOurKey) {
    world.forget(0, 1);
    world.occupy(5s, 2);
    EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
    EXPECT_FALSE(lock.valid());
    EXPECT_THAT(lock.remaining(), Lasts(0ns));
    world.forget_events();
    EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
    EXPECT_THAT(world.events(), IsEmpty());
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
}

// C1. A few refusals and a few silences are not the loss of a majority: it may be tried again.
TEST_F(Extend, MayBeTriedAgainWhereOnlyAFewHaveLostTheKey) {
    world.forget(0);
    world.cut(1, 2);
    EXPECT_THAT(lock.extend(), FailsWith(Errc::no_quorum));
    world.heal(1, 2);
    EXPECT_THAT(lock.extend(), Succeeds());
}

// C1. Only nodes that may have our key are asked: one that was down then cannot have it. Nor can it get the
// key later: with the one that lost it, no majority can have it any more.
TEST_F(Extend, AsksTheNodesThatMayHaveOurKey) {
    (void)lock.release();
    world.cut(1, 4);
    ASSERT_THAT(lock.acquire(), Succeeds());
    world.heal(1, 4);
    world.forget_events();
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(world.events(), ElementsAre("expire #2 in 10000 ms on 0 2 3"));
    world.forget(0);
    EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
}

// ---- The end of the validity (C3).

// S32, C3. A confirmation that came after the old validity had ended does not count: another may have held
// since.
TEST_F(Extend, IgnoresAConfirmationAfterTheOldValidity) {
    for (const bool in_time : {true, false}) {
        World late_world;
        late_world.overrun_deadlines();
        auto late = late_world.held({.ttl = 10s});
        late_world.pass(late.remaining() - 10ms);
        late_world.slow(2, in_time ? 10ms - 1ns : 10ms);
        EXPECT_EQ(late.extend().error(), in_time ? std::error_code{} : Errc::lost);
        EXPECT_EQ(late.valid(), in_time);
    }
}

// S32. Nor is it waited for: the round ends with the validity.
TEST_F(Extend, DoesNotWaitBeyondTheOldValidity) {
    world.pass(lock.remaining() - 10ms);
    world.silence(0, 1, 2);
    EXPECT_THAT(time_taken(world, [&] { EXPECT_THAT(lock.extend(), FailsWith(Errc::lost)); }), Lasts(10ms));
}

// ---- Wrong use (A10).

// A10. A ttl that cannot work throws before any I/O; PEXPIRE k 0 would delete the key.
TEST_F(Extend, RefusesATtlThatCannotWork) {
    for (const auto ttl : {0ms, -1ms, 1ms, 52ms, milliseconds{1LL << 60}})
        EXPECT_THAT(refusal([&] { (void)lock.extend(ttl); }), HasSubstr("ttl")) << text(ttl);
    EXPECT_THAT(world.events(), IsEmpty());
    EXPECT_TRUE(lock.valid());
}

}  // namespace
}  // namespace redlock::test
