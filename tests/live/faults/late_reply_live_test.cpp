// Rule D1 with replies that come late, for which the link holds them back as long as the test likes, and with
// replies that come twice.
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

    /// From now on the late replies are in the library's sockets, unread.
    void deliver() {
        for (const std::size_t node : {1U, 2U}) world.link(node).release();
        ASSERT_TRUE(wait_until([&] { return quiet(world.link(1)) && quiet(world.link(2)); }));
    }

    FaultWorld world{3, {.node_timeout = 300ms, .round = GetParam()}};
    Lock first = world.lock(no_retry());
    Lock second = world.lock(no_retry());
};
INSTANTIATE_TEST_SUITE_P(Asking, LateReplies, each_round(), by_round);

// D1. The late OK of one acquire does not acquire the next.
TEST_P(LateReplies, ALateGrantDoesNotGrantTheNextAcquire) {
    EXPECT_THAT(first.acquire(), FailsWith(Errc::no_quorum));
    ASSERT_TRUE(wait_until([&] { return held_back() && world.clean(); }));
    ASSERT_EQ(occupy(world[1]), "OK");
    ASSERT_EQ(occupy(world[2]), "OK");
    deliver();
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
    deliver();
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
    for (const std::size_t node : {1U, 2U})  // extended, and then deleted by another client
        ASSERT_TRUE(wait_until([&] { return world.link(node).traffic().waiting_bytes >= 4; }));
    for (const std::size_t node : {1U, 2U}) world[node].command({"DEL", the_resource});
    deliver();
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
    deliver();
    EXPECT_THAT(second.acquire(), Succeeds());
    EXPECT_EQ(connections(), before);
}

class RepeatedReplies : public InEachRound {
protected:
    RepeatedReplies() { world.warm_up(); }

    FaultWorld world{3, {.node_timeout = 2s, .round = GetParam()}};
    TcpProxy& link = world.link(1);
    Lock lock = world.lock(no_retry(60s));
};
INSTANTIATE_TEST_SUITE_P(Asking, RepeatedReplies, each_round(), by_round);

// D1. The second copy of a reply answers nothing: the connection it came by is not used again.
TEST_P(RepeatedReplies, AtOnceEndTheConnection) {
    const auto before = link.traffic().reply_bytes;
    link.record();
    link.duplicate_replies();
    (void)lock.acquire();  // which may be over before this node has answered
    ASSERT_TRUE(wait_until([&] { return link.traffic().reply_bytes >= before + 10; }));  // "+OK", "+OK"
    link.heal();
    const auto suspect = commands(link, "SET").front().connection;
    (void)lock.release();
    world.warm_up();
    for (const auto& command : commands(link, "SET")) {
        if (command.words.at(1) == the_resource) continue;
        EXPECT_NE(command.connection, suspect);
    }
}

// D1. The OK of one acquire comes again later, when the connection is idle: it grants the next one nothing.
TEST_P(RepeatedReplies, LaterGrantNobodyAnything) {
    for (int i = 0; i < 10; ++i) {
        const auto before = link.traffic().reply_bytes;
        link.duplicate_replies(1ms);
        const auto resource = "orders:" + std::to_string(i);
        auto first = world.lock(resource, no_retry(60s));
        const auto acquired = first.acquire();
        ASSERT_THAT(acquired, Succeeds());
        ASSERT_TRUE(wait_until([&] { return link.traffic().reply_bytes >= before + 10; }));  // "+OK", "+OK"
        auto second = world.lock(resource, no_retry(60s));
        const auto refused = second.acquire();
        EXPECT_FALSE(refused);
        EXPECT_EQ(count(refused, Vote::granted), 0U) << refused.message();
        link.heal();
        (void)first.release();
        world.warm_up();
    }
}

}  // namespace
}  // namespace redlock::test
