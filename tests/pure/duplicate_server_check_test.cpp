// A server that answers for two nodes has one vote (rule D8).
#include <redlock/detail/duplicate_server_check.hpp>

#include <gtest/gtest.h>

namespace redlock::detail {
namespace {

TEST(DuplicateServerCheck, FindsTheOtherNodeOfAServer) {
    DuplicateServerCheck servers{3};
    EXPECT_EQ(servers.other_node_of(0, "run-1"), std::nullopt);
    EXPECT_EQ(servers.other_node_of(1, "run-2"), std::nullopt);
    EXPECT_EQ(servers.other_node_of(2, "run-1"), 0u);
    EXPECT_EQ(servers.other_node_of(2, "run-2"), 1u);
    EXPECT_EQ(servers.other_node_of(2, "run-3"), std::nullopt);
}

// The first of the two keeps the vote, whoever asks next.
TEST(DuplicateServerCheck, NotesNothingOfADuplicate) {
    DuplicateServerCheck servers{2};
    EXPECT_EQ(servers.other_node_of(0, "run-1"), std::nullopt);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(servers.other_node_of(1, "run-1"), 0u);
    EXPECT_EQ(servers.other_node_of(0, "run-1"), std::nullopt);
}

// Servers are restarted, and addresses move to other servers.
TEST(DuplicateServerCheck, BelievesTheLatestAnswer) {
    DuplicateServerCheck servers{2};
    EXPECT_EQ(servers.other_node_of(0, "run-1"), std::nullopt);
    EXPECT_EQ(servers.other_node_of(0, "run-2"), std::nullopt);
    EXPECT_EQ(servers.other_node_of(1, "run-1"), std::nullopt) << "node 0 is another server by now";
    EXPECT_EQ(servers.other_node_of(0, "run-1"), 1u);
}

// What a node answered before it was another server says nothing any more.
TEST(DuplicateServerCheck, LetsTwoNodesSwapTheirServers) {
    DuplicateServerCheck servers{2};
    EXPECT_EQ(servers.other_node_of(0, "run-1"), std::nullopt);
    EXPECT_EQ(servers.other_node_of(1, "run-2"), std::nullopt);
    EXPECT_EQ(servers.other_node_of(0, "run-2"), 1u);
    EXPECT_EQ(servers.other_node_of(1, "run-1"), std::nullopt);
    EXPECT_EQ(servers.other_node_of(0, "run-2"), std::nullopt);
}

}  // namespace
}  // namespace redlock::detail
