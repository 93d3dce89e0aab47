// query() and LockOptions::holder on real servers.
#include "live_world.hpp"

#include <redlock/query.hpp>

namespace redlock::test {
namespace {

using Kind = LockStatus::Kind;

TEST(Query, ShowsTheHolderTheCountAndTheWaiters) {
    LiveWorld world{3};
    ASSERT_TRUE(world.warm_up());
    auto lock = world.lock(LockOptions{.ttl = 1min, .fencing = true, .holder = "host=web1"});
    ASSERT_THAT(lock.acquire(), Succeeds());
    ASSERT_EQ(world[1].command({"ZADD", "{orders:42}:queue", "1", "redlock:wake:a|1"}), "1");
    LockStatus status;
    ASSERT_TRUE(wait_until([&] {
        status = query(world.nodes, the_resource);
        return std::ranges::all_of(status.nodes, [](const auto& it) { return it.holder == "host=web1"; });
    })) << "the note is not waited for";
    EXPECT_EQ(status.kind, Kind::held);
    EXPECT_EQ(status.owner, lock.owner());
    EXPECT_EQ(status.held_on, 3U);
    EXPECT_LE(status.expires_in, 1min);
    EXPECT_GT(status.expires_in, 30s);
    EXPECT_EQ(status.holder, "host=web1");
    EXPECT_EQ(status.nodes[1].waiters, 1U);
    EXPECT_EQ(status.nodes[2].fencing_count, lock.fencing_token());
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(wait_until([&] {
        return std::ranges::all_of(world, [](auto& it) {
            return it.command({"EXISTS", "{orders:42}:holder"}) == "0";
        });
    }));
    EXPECT_EQ(query(world.nodes, the_resource).kind, Kind::free);
}

// A query asks all nodes at once.
TEST(Query, WaitsOneNodeTimeoutForFiveHangingNodes) {
    LiveWorld world{5, {.node_timeout = 500ms}};
    ASSERT_TRUE(world.warm_up());
    for (auto& node : world) node.freeze();
    EXPECT_THAT(time_taken([&] {
                    const auto status = query(world.nodes, the_resource);
                    EXPECT_EQ(status.kind, Kind::no_quorum);
                    for (const auto& node : status.nodes) EXPECT_EQ(node.cause, Errc::timed_out);
                }),
                LastsAtMost(2s));
    for (auto& node : world) node.thaw();
}

// A holder description uses existing connections, and delays no round.
TEST(HolderDescription, NeedsNoAdditionalConnections) {
    LiveWorld world{1};
    Lock lock{world.nodes, the_resource, {.holder = "me"}};
    for (int i = 0; i < 200; ++i) {
        ASSERT_THAT(lock.acquire(), Succeeds());
        if (i % 3 == 0) {
            ASSERT_THAT(lock.extend(), Succeeds());
        }
        i % 2 == 0 ? lock.unlock() : (void)lock.release();
    }
    const auto info = world[0].command({"INFO", "stats"});
    const std::string words = "total_connections_received:";
    EXPECT_LE(std::stoi(info.substr(info.find(words) + words.size())), 5);
}

}  // namespace
}  // namespace redlock::test
