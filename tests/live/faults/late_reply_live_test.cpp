// Rule D1 with real late replies: the link holds them back for as long as the test likes.
#include "fault_world.hpp"

namespace redlock::test {
namespace {

class LateReplies : public InEachRound {
protected:
    LateReplies() {
        world.warm_up();
        for (const std::size_t node : {1U, 2U}) world.link(node).hold();
    }

    /// The servers have answered SET and release ("+OK", ":1" or "$-1", ":0") and the links have it.
    bool held_back() {
        return world.link(1).traffic().waiting_bytes >= 9 && world.link(2).traffic().waiting_bytes >= 9;
    }

    /// The late replies lie in the library's sockets, unread.
    void let_them_arrive() {
        for (const std::size_t node : {1U, 2U}) world.link(node).release();
        ASSERT_TRUE(wait_until([&] { return quiet(world.link(1)) && quiet(world.link(2)); }));
    }

    FaultWorld world{3, {.node_timeout = 300ms, .round = GetParam()}};
    Lock first = world.lock(no_retry());
    Lock second = world.lock(no_retry());
};
INSTANTIATE_TEST_SUITE_P(OfAMajority, LateReplies, testing::Values(Round::sequential, Round::all_at_once),
                         name_of_round);

// D1. The late OK of one acquire does not acquire the next.
TEST_P(LateReplies, ALateGrantDoesNotGrantTheNextAcquire) {
    EXPECT_THAT(first.acquire(), FailsWith(Errc::no_quorum));
    ASSERT_TRUE(wait_until([&] { return held_back() && world.clean(); }));
    ASSERT_EQ(occupy(world[1]), "OK");
    ASSERT_EQ(occupy(world[2]), "OK");
    let_them_arrive();
    EXPECT_TRUE(wait_until([&] {
        const auto result = second.acquire();
        EXPECT_LE(count(result, Vote::granted), 1U);
        return count(result, Vote::refused) == 2;
    }));
    EXPECT_EQ(world.keys_of("another"), 2U);
}

// D1. Nor does a late nil refuse it.
TEST_P(LateReplies, ALateRefusalDoesNotRefuseTheNextAcquire) {
    ASSERT_EQ(occupy(world[1]), "OK");
    ASSERT_EQ(occupy(world[2]), "OK");
    EXPECT_THAT(first.acquire(), FailsWith(Errc::no_quorum));
    ASSERT_TRUE(wait_until([&] { return held_back(); }));
    for (const std::size_t node : {1U, 2U}) world[node].command({"DEL", the_resource});
    let_them_arrive();
    EXPECT_THAT(second.acquire(), Succeeds());
    EXPECT_GE(world.keys_of(second.owner()), 2U);
}

// D1. The late 1 of an extension is not the answer to the release behind it.
TEST_P(LateReplies, ALateExtensionDoesNotConfirmTheRelease) {
    for (const std::size_t node : {1U, 2U}) world.link(node).release();
    ASSERT_THAT(first.acquire(), Succeeds());
    ASSERT_TRUE(wait_until([&] { return world.keys_of(first.owner()) == 3; }));
    for (const std::size_t node : {1U, 2U}) world.link(node).hold();
    EXPECT_THAT(first.extend(), FailsWith(Errc::no_quorum));
    for (const std::size_t node : {1U, 2U})  // extended, and then somebody takes it away from us
        ASSERT_TRUE(wait_until([&] { return world.link(node).traffic().waiting_bytes >= 4; }));
    for (const std::size_t node : {1U, 2U}) world[node].command({"DEL", the_resource});
    let_them_arrive();
    const auto released = first.release();
    EXPECT_THAT(released, FailsWith(Errc::lost));
    EXPECT_EQ(count(released, Vote::refused), 2U);
}

// D1, B5. Late replies are no reason to close a connection: they are drained and it is used on.
TEST_P(LateReplies, AreDrainedAndTheirConnectionIsUsedOn) {
    const auto connections = [&] {
        return std::pair{world.link(1).traffic().connections, world.link(2).traffic().connections};
    };
    const auto before = connections();
    EXPECT_THAT(first.acquire(), FailsWith(Errc::no_quorum));
    ASSERT_TRUE(wait_until([&] { return held_back(); }));
    let_them_arrive();
    EXPECT_THAT(second.acquire(), Succeeds());
    EXPECT_EQ(connections(), before);
}

// D1. No SET goes behind one that is still unanswered.
TEST_P(LateReplies, KeepFurtherSetsAway) {
    world.link(1).record();
    EXPECT_THAT(first.acquire(), FailsWith(Errc::no_quorum));
    ASSERT_TRUE(wait_until([&] { return held_back(); }));
    EXPECT_THAT(second.acquire(), FailsWith(Errc::no_quorum));
    EXPECT_THAT(second.acquire(), FailsWith(Errc::no_quorum));
    EXPECT_THAT(commands(world.link(1), "SET"), SizeIs(1));
}

}  // namespace
}  // namespace redlock::test
