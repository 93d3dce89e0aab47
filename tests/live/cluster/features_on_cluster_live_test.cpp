// What locks do on a node that is a Redis Cluster, besides the features in features_live_test.cpp, and what
// is refused there.
#include "cluster_world.hpp"
#include "live/forked_child.hpp"
#include "live/loop/loop_client.hpp"

#include <redlock/leader.hpp>
#include <redlock/query.hpp>
#include <redlock/watchdog.hpp>

#include <list>
#include <stdexcept>
#include <thread>

namespace redlock::test::features_on_cluster_live_test {
namespace {

using testing::ThrowsMessage;

RedisNodes nowhere() {
    return RedisNodes{{"redis+cluster://127.0.0.1:1"}};
}

TEST(ACluster, HasNeitherAQueueNorFencing) {
    auto nodes = nowhere();
    EXPECT_THAT([&] { const Lock lock(nodes, "a", LockOptions{.fair = true}); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("LockOptions::fair")));
    EXPECT_THAT([&] { const Lock lock(nodes, "a", LockOptions{.fencing = true}); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("LockOptions::fencing")));
}

TEST(ACluster, LocksResourcesOfOneSlotTogether) {
    auto nodes = nowhere();
    EXPECT_THAT(
        [&] {
            const Lock lock(nodes, std::vector<std::string>{"a", "b"});
        },
        ThrowsMessage<std::invalid_argument>(HasSubstr("{orders}:1 and {orders}:2")));
    EXPECT_THAT([&] { const Lock lock(nodes, "a}b"); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("\"a}b\"")));
    EXPECT_THAT([&] { (void)query(nodes, "a}b"); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("\"a}b\"")));
}

TEST_F(OnACluster, ALeaderIsElectedWithoutAToken) {
    Leader leader{world.nodes, "billing", {.ttl = 30s}};
    bool led = false;
    EXPECT_THAT(leader.run_once([&](const Term& term) {
        led = true;
        EXPECT_EQ(term.fencing_token(), 0U);
    }),
                Succeeds());
    EXPECT_TRUE(led);
    EXPECT_TRUE(world.clean());
}

// One turn of the watchdog extends the locks of all servers. One slot has moved meanwhile. Another is being
// moved, and only a round with one command follows ASK.
TEST_F(OnACluster, AWatchdogExtendsTheLocksOfAllServers) {
    Watchdog watchdog;
    std::list<Lock> locks;
    for (int i = 0; i < 30; ++i) {
        locks.push_back(world.lock("orders:" + std::to_string(i), {.ttl = 4s, .watchdog = &watchdog}));
        ASSERT_THAT(locks.back().acquire(), Succeeds());
    }
    RedisClusterServers::move_slot(detail::hash_slot_of(world.resource_of(0)), world[0], world[1]);
    RedisClusterServers::begin_move(detail::hash_slot_of(world.resource_of(2)), world[2], world[1]);
    RedisClusterServers::move_key(world.resource_of(2), world[2], world[1]);
    std::this_thread::sleep_for(6s);
    for (auto& lock : locks) EXPECT_TRUE(lock.valid()) << lock.resource();
    for (auto& lock : locks) EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

// D10
TEST_F(OnACluster, AChildOfForkHasConnectionsOfItsOwn) {
    auto lock = world.lock(world.resource_of(0), {.ttl = 1min});
    ASSERT_THAT(lock.acquire(), Succeeds());
    const auto moved = world.resource_of(1);
    ASSERT_THAT(world.lock(moved).acquire(), Succeeds());
    RedisClusterServers::move_slot(detail::hash_slot_of(moved), world[1], world[2]);
    const ForkedChild child{[&](auto report) {
        auto own = world.lock(moved);
        report(own.acquire() && own.release() ? "locked" : "failed");
        report(world.lock(lock.resource()).try_acquire().error() == Errc::held_by_other ? "held" : "failed");
    }};
    EXPECT_EQ(child.receive(), "locked");
    EXPECT_EQ(child.receive(), "held");
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

TEST_F(OnACluster, ALoopLocksAndItsWatchdogExtends) {
    LoopClient client{std::vector{world.uri()}, {.node_timeout = 2s}};
    std::list<AsyncLock> locks;
    for (int i = 0; i < 20; ++i) {
        auto& lock = locks.emplace_back(client.of_loop, "orders:" + std::to_string(i),
                                        LockOptions{.ttl = 4s, .watchdog = loop_watchdog()});
        ASSERT_THAT(client.acquire(lock), Succeeds());
    }
    RedisClusterServers::move_slot(detail::hash_slot_of(world.resource_of(0)), world[0], world[1]);
    const auto end = boot_clock().now() + 6s;
    ASSERT_TRUE(client.run_until([&] { return boot_clock().now() >= end; }));
    for (auto& lock : locks) EXPECT_TRUE(lock.valid());
    for (auto& lock : locks) EXPECT_THAT(client.release(lock), Succeeds());
    EXPECT_TRUE(world.clean());
}

// A majority of three nodes, one of which is a Cluster.
TEST(ACluster, IsOneOfSeveralNodes) {
    RedisClusterServers servers;
    support::Cluster others{2};
    auto uris = others.uris();
    uris.push_back(servers.uri());
    RedisNodes nodes{uris, {.node_timeout = 2s}};
    EXPECT_EQ(nodes.name(2), "cluster@" + servers[0].name());
    Lock lock{nodes, "orders:42"};
    const auto result = lock.acquire();
    ASSERT_THAT(result, Succeeds());
    EXPECT_EQ(count(result, Vote::granted), 3U);
    others[0].kill();
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(servers.clean());
}

TEST(AServerWithoutClusterSupport, IsNoCluster) {
    const RedisServer plain;
    RedisNodes nodes{{"redis+cluster://" + plain.name()}, {.node_timeout = 2s}};
    const auto result = Lock{nodes, "orders:42"}.try_acquire();
    EXPECT_THAT(result.nodes()[0].detail, HasSubstr("cluster support disabled"));
}

}  // namespace
}  // namespace redlock::test::features_on_cluster_live_test
