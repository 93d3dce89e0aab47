// A server that is reached through two nodes has one vote (rule D8).
#include "waiting_world.hpp"

#include <redlock/lock.hpp>

#include <cstddef>

namespace redlock::several_names_of_one_server_test {
namespace {

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
}  // namespace redlock::several_names_of_one_server_test
