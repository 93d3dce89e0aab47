// Rules C1 to C4: an extension counts only if it is certain, and a failed one takes nothing away.
#include "fronts.hpp"

namespace redlock::test::extend_test {
namespace {

/// A lock with a ttl of 10 s (drift: 102 ms) on five nodes, acquired six seconds ago.
struct Extend : testing::TestWithParam<Front> {
    Extend() {
        world.pass(6s);
        world.forget_events();
    }

    AnyWorld world{GetParam()};
    AnyLock lock = world.held({.ttl = 10s});
};
INSTANTIATE_TEST_SUITE_P(Each, Extend, each_front, testing::PrintToStringParamName());

// C2, A1, S31. The new validity counts from the start of the extension, so the duration of the round is
// subtracted as in an acquisition. The owner stays the same, because it is the same acquisition.
TEST_P(Extend, ResetsTheRemainingTimeToTheFullTtl) {
    const std::string owner{lock.owner()};
    world.slow(3, 40ms);
    const auto result = lock.extend();
    EXPECT_THAT(result, Succeeds());
    EXPECT_THAT(lock.remaining(), Lasts(10s - 102ms - 40ms));
    EXPECT_THAT(result.validity(), Lasts(lock.remaining()));
    EXPECT_EQ(result.attempts(), 1);
    EXPECT_EQ(lock.owner(), owner);
}

// The ttl is longer than that of the options, and has its own drift.
TEST_P(Extend, AcceptsAnotherTtl) {
    EXPECT_THAT(lock.extend(100s), Succeeds());
    EXPECT_THAT(lock.remaining(), Lasts(100s - 1002ms));
    EXPECT_THAT(world.events(), ElementsAre("expire #1 in 100000 ms"));
}

// ---- A ttl shorter than the remaining time.

// The Result reports the validity of the lock.
TEST_P(Extend, NeverShortensTheValidity) {
    const auto result = lock.extend(1s);
    EXPECT_THAT(result, Succeeds());
    EXPECT_THAT(result.validity(), Lasts(lock.remaining()));
    EXPECT_THAT(lock.remaining(), Lasts(4s - 102ms));
    EXPECT_THAT(world.ttl_on(0), Lasts(4s));
}

// This process was stalled during the round for longer than the shorter ttl. So the extension has no use, and
// the old validity stands.
TEST_P(Extend, FailsIfTheRoundUsesUpAShorterTtl) {
    world.slow(0, 40ms);
    world.after(40ms, [&] { world.pass(1s); });
    EXPECT_THAT(lock.extend(1s), FailsWith(Errc::validity_exhausted));
    EXPECT_THAT(lock.remaining(), Lasts(4s - 102ms - 1040ms));
}

// ---- Failures (C2: valid_until is neither moved nor reset).

// C2, S32. If too few nodes reply, the old validity stands, and another attempt may follow while there is
// time.
TEST_P(Extend, KeepsTheOldValidityIfTheNodesDoNotAnswer) {
    world.cut(0, 1, 2);
    EXPECT_THAT(lock.extend(), FailsWith(Errc::no_quorum));
    EXPECT_TRUE(lock.valid());
    EXPECT_THAT(lock.remaining(), Lasts(4s - 102ms));
    world.heal(0, 1, 2);
    world.pass(1s);
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(lock.remaining(), Lasts(10s - 102ms));
}

// C2, B1. The nodes lengthened the keys, but their replies were lost. The release still deletes the keys.
TEST_P(Extend, DoesNotPreventTheReleaseIfItFails) {
    world.lose_replies_of(0, 1, 2);
    EXPECT_THAT(lock.extend(), FailsWith(Errc::no_quorum));
    EXPECT_THAT(lock.remaining(), Lasts(4s - 102ms - 50ms));
    world.heal(0, 1, 2);
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

// A12, C1. The result reports the vote of each node. A missing key is a refusal.
TEST_P(Extend, ReportsEachNode) {
    world.forget(1);
    world.cut(2);
    const auto result = lock.extend();
    EXPECT_THAT(result, Succeeds());
    EXPECT_EQ(result.nodes()[0].vote, Vote::granted);
    EXPECT_EQ(result.nodes()[1].vote, Vote::refused);
    EXPECT_EQ(result.nodes()[2].cause, Errc::connection_failed);
}

// ---- Keys that are no longer ours (C1).

// C1, C2. If a majority no longer has our key, the lock is lost before the end of its validity. It does not
// become valid again when the nodes recover.
TEST_P(Extend, ReportsALossIfAMajorityNoLongerHasOurKey) {
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

// C2. A node on which the resource is a key of another type has lost our key, and says why.
TEST_P(Extend, ReportsALossIfAMajorityHasAKeyOfAnotherType) {
    world.replace_by_a_list(0, 1, 2);
    const auto result = lock.extend();
    EXPECT_THAT(result, FailsWith(Errc::lost));
    EXPECT_THAT(result.message(), HasSubstr("lost on 3 of 5 nodes; node0 wrong type of key; node1 wrong"));
    EXPECT_FALSE(lock.valid());
}

// C2. The same for a lock of several resources, of which one is enough, and for a reader, whose owner is in a
// key beside the resource.
TEST_P(Extend, ReportsALossIfAMajorityHasAnotherKeyOfAnotherType) {
    const auto expect_loss = [this](AnyLock held, const std::string& key) {
        for (const int node : {0, 1, 2}) {
            world.command(node, {"DEL", key});
            world.command(node, {"RPUSH", key, "x"});
        }
        EXPECT_THAT(held.extend(), FailsWith(Errc::lost));
        EXPECT_FALSE(held.valid());
    };
    expect_loss(world.held({"a", "b"}, {.ttl = 10s}), "b");
    expect_loss(world.held("read", {.ttl = 10s, .shared = true}),
                detail::key_of(detail::KeyKind::readers, "read").text());
}

// C1. A few refusals and a few missing replies do not prove the loss of a majority, so another attempt may
// follow.
TEST_P(Extend, CanBeRepeatedIfOnlyAMinorityHasLostTheKey) {
    world.forget(0);
    world.cut(1, 2);
    EXPECT_THAT(lock.extend(), FailsWith(Errc::no_quorum));
    world.heal(1, 2);
    EXPECT_THAT(lock.extend(), Succeeds());
}

// C1. Only nodes that may have our key are asked. A node that was down at the acquisition cannot have the
// key, and cannot get it later. With one more node that lost it, no majority can have it any more.
TEST_P(Extend, AsksOnlyTheNodesThatMayHaveOurKey) {
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

// S32, C3. A confirmation after the end of the old validity does not count, because another client may have
// held the lock since.
TEST_P(Extend, IgnoresAConfirmationAfterTheOldValidity) {
    for (const bool in_time : {true, false}) {
        AnyWorld late_world{GetParam()};
        late_world.overrun_deadlines();
        auto late = late_world.held({.ttl = 10s});
        late_world.pass(late.remaining() - 10ms);
        late_world.slow(2, in_time ? 10ms - 1ns : 10ms);
        EXPECT_EQ(late.extend().error(), in_time ? std::error_code{} : Errc::lost);
        EXPECT_EQ(late.valid(), in_time);
    }
}

// S32. The round also ends with the validity, and does not wait any longer.
TEST_P(Extend, DoesNotWaitBeyondTheOldValidity) {
    world.pass(lock.remaining() - 10ms);
    world.silence(0, 1, 2);
    EXPECT_THAT(time_taken(world, [&] { EXPECT_THAT(lock.extend(), FailsWith(Errc::lost)); }), Lasts(10ms));
}

// ---- Incorrect use (A10).

// A10. An impossible ttl throws before any I/O. PEXPIRE with 0 would delete the key.
TEST_P(Extend, RejectsAnImpossibleTtl) {
    for (const auto ttl : {0ms, -1ms, 1ms, 52ms, milliseconds{1LL << 60}})
        EXPECT_THAT(refusal([&] { (void)lock.extend(ttl); }), HasSubstr("ttl")) << text(ttl);
    EXPECT_THAT(world.events(), IsEmpty());
    EXPECT_TRUE(lock.valid());
}

}  // namespace
}  // namespace redlock::test::extend_test
