// A server that is reached through two nodes has one vote (rule D8).
#include "waiting_world.hpp"

#include <redlock/lock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "round/duplicate_server_check.hpp"

namespace redlock::detail {
namespace {

using namespace std::chrono_literals;

constexpr auto lapse = 60s;
constexpr Clock::time_point start{1h};

TEST(DuplicateServerCheck, ReturnsTheOtherNodeOfAServer) {
    DuplicateServerCheck servers{3, lapse};
    EXPECT_EQ(servers.other_node_of(0, "run-1", start), std::nullopt);
    EXPECT_EQ(servers.other_node_of(1, "run-2", start), std::nullopt);
    EXPECT_EQ(servers.other_node_of(2, "run-1", start), 0u);
    EXPECT_EQ(servers.other_node_of(2, "run-2", start), 1u);
    EXPECT_EQ(servers.other_node_of(2, "run-3", start), std::nullopt);
}

// The first of the two nodes keeps the vote, whichever node asks next.
TEST(DuplicateServerCheck, DoesNotRecordTheServerOfADuplicate) {
    DuplicateServerCheck servers{2, lapse};
    EXPECT_EQ(servers.other_node_of(0, "run-1", start), std::nullopt);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(servers.other_node_of(1, "run-1", start), 0u);
    EXPECT_EQ(servers.other_node_of(0, "run-1", start), std::nullopt);
}

// Servers are restarted, and addresses move to other servers.
TEST(DuplicateServerCheck, TrustsTheLatestReply) {
    DuplicateServerCheck servers{2, lapse};
    EXPECT_EQ(servers.other_node_of(0, "run-1", start), std::nullopt);
    EXPECT_EQ(servers.other_node_of(0, "run-2", start), std::nullopt);
    EXPECT_EQ(servers.other_node_of(1, "run-1", start), std::nullopt) << "node 0 is another server by now";
    EXPECT_EQ(servers.other_node_of(0, "run-1", start), 1u);
}

// The earlier run id of a node has no meaning after its server has changed.
TEST(DuplicateServerCheck, LetsTwoNodesSwapTheirServers) {
    DuplicateServerCheck servers{2, lapse};
    EXPECT_EQ(servers.other_node_of(0, "run-1", start), std::nullopt);
    EXPECT_EQ(servers.other_node_of(1, "run-2", start), std::nullopt);
    EXPECT_EQ(servers.other_node_of(0, "run-2", start), 1u);
    EXPECT_EQ(servers.other_node_of(1, "run-1", start), std::nullopt);
    EXPECT_EQ(servers.other_node_of(0, "run-2", start), std::nullopt);
}

// The server of a node that is gone may have moved to the address of another node.
TEST(DuplicateServerCheck, FreesTheServerOfANodeThatIsGone) {
    DuplicateServerCheck servers{2, lapse};
    EXPECT_EQ(servers.other_node_of(0, "run-1", start), std::nullopt);
    EXPECT_EQ(servers.other_node_of(1, "run-1", start + lapse - 1ms), 0u);
    EXPECT_EQ(servers.other_node_of(1, "run-1", start + lapse), std::nullopt);
    EXPECT_EQ(servers.other_node_of(0, "run-1", start + lapse), 1u) << "one vote, if node 0 comes back";
}

TEST(DuplicateServerCheck, KeepsTheServerOfANodeThatAnswers) {
    DuplicateServerCheck servers{2, lapse};
    EXPECT_EQ(servers.other_node_of(0, "run-1", start), std::nullopt);
    EXPECT_EQ(servers.other_node_of(0, "run-1", start + lapse / 2), std::nullopt);
    EXPECT_EQ(servers.other_node_of(1, "run-1", start + lapse), 0u);
}

// A plain acquisition does not need to know who the servers are. The release of a failed one shows it.
TEST(SeveralNamesOfOneServer, AreReportedInPlaceOfAnotherHolder) {
    test::WaitingWorld world;
    for (const std::size_t node : {1U, 2U}) world.network.server(node).redis = world.network.server(0).redis;
    Lock lock{world.client(), "r", {.retry = {.attempts = 1}}, world.network.clock(), world.entropy};
    const auto result = lock.acquire();
    EXPECT_EQ(result.error(), Errc::no_quorum);
    EXPECT_EQ(result.nodes()[2].cause, Errc::same_server);
    EXPECT_THAT(result.message(), testing::HasSubstr("; n2 same server as another node (as n0)"));
}

TEST(SeveralNamesOfOneServer, AreNotSeenInTheKeysOfOthers) {
    test::WaitingWorld world;
    for (const std::size_t node : {1U, 2U}) world.hold(node, "another");
    Lock lock{world.client(), "r", {.retry = {.attempts = 1}}, world.network.clock(), world.entropy};
    EXPECT_EQ(lock.acquire().error(), Errc::held_by_other);
}

}  // namespace
}  // namespace redlock::detail
