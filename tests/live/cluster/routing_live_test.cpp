// A node that is a Redis Cluster: the way to the server of a slot, also while slots are moved.
#include "cluster_world.hpp"
#include "live/command_monitor.hpp"

#include <algorithm>

namespace redlock::test::routing_live_test {
namespace {

using detail::hash_slot_of;

std::vector<std::string> verbs_of(const CommandMonitor& monitor) {
    std::vector<std::string> verbs;
    for (const auto& words : monitor.commands()) verbs.push_back(words.front());
    return verbs;
}

TEST_F(OnACluster, EachResourceIsLockedAtTheServerOfItsSlot) {
    for (std::size_t i = 0; i < world.masters; ++i) {
        const auto resource = world.resource_of(i);
        auto lock = world.lock(resource);
        ASSERT_THAT(lock.acquire(), Succeeds());
        EXPECT_EQ(holder(world[i], resource), lock.owner());
        EXPECT_THAT(world.lock(resource).try_acquire(), FailsWith(Errc::held_by_other));
        EXPECT_THAT(lock.extend(), Succeeds());
        EXPECT_THAT(lock.release(), Succeeds());
    }
    EXPECT_TRUE(world.clean());
}

// Once the list of the servers is known, a Cluster costs what a server costs.
TEST_F(OnACluster, ALockSendsTheSameCommandsAsOnAServer) {
    LiveWorld plain{1};
    ASSERT_TRUE(world.warm_up());
    ASSERT_TRUE(plain.warm_up());
    const auto resource = world.resource_of(1);
    const CommandMonitor monitor{world[1]};
    const CommandMonitor other{world[0]};
    const CommandMonitor on_plain{plain[0]};
    for (auto* const nodes : {&world.nodes, &plain.nodes}) {
        Lock lock{*nodes, resource};
        ASSERT_THAT(lock.acquire(), Succeeds());
        ASSERT_THAT(lock.extend(), Succeeds());
        ASSERT_THAT(lock.release(), Succeeds());
    }
    EXPECT_EQ(verbs_of(monitor), verbs_of(on_plain));
    EXPECT_THAT(verbs_of(other), testing::IsEmpty());
}

TEST_F(OnACluster, TheListComesFromAnySeedThatAnswers) {
    world[0].kill();
    auto lock = world.lock(world.resource_of(1));
    const auto result = lock.try_acquire();
    EXPECT_THAT(result, Succeeds()) << result.nodes()[0].detail;
}

TEST_F(OnACluster, AMovedSlotIsFoundAtOnceAndRemembered) {
    ASSERT_TRUE(world.warm_up());
    const auto resource = world.resource_of(0);
    RedisClusterServers::move_slot(hash_slot_of(resource), world[0], world[1]);
    auto lock = world.lock(resource);
    ASSERT_THAT(lock.try_acquire(), Succeeds());
    EXPECT_EQ(holder(world[1], resource), lock.owner());
    const CommandMonitor monitor{world[0]};
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_THAT(lock.try_acquire(), Succeeds());
    for (const auto& words : monitor.commands()) EXPECT_EQ(words.front(), "CLUSTER");
}

TEST_F(OnACluster, AHeldLockSurvivesTheMoveOfItsSlot) {
    const auto resource = world.resource_of(0);
    for (const std::size_t to : {1U, 2U, 0U}) {
        auto lock = world.lock(resource, {.ttl = 1min});
        ASSERT_THAT(lock.try_acquire(), Succeeds());
        const auto from = static_cast<std::size_t>(
            std::ranges::find_if(world, [&](auto& it) { return holder(it, resource) == lock.owner(); }) -
            world.begin());
        ASSERT_LT(from, world.masters);
        RedisClusterServers::move_slot(hash_slot_of(resource), world[from], world[to]);
        ASSERT_TRUE(world.all_know(hash_slot_of(resource), world[to]));
        EXPECT_THAT(world.lock(resource).try_acquire(), FailsWith(Errc::held_by_other));
        EXPECT_THAT(lock.extend(), Succeeds());
        EXPECT_THAT(lock.release(), Succeeds());
        EXPECT_TRUE(world.clean());
    }
}

// The slot is being moved, and its keys are at the new server already (ASK).
TEST_F(OnACluster, ALockIsAcquiredAndReleasedWhileItsSlotIsBeingMoved) {
    ASSERT_TRUE(world.warm_up());
    const auto resource = world.resource_of(0);
    RedisClusterServers::begin_move(hash_slot_of(resource), world[0], world[1]);
    auto lock = world.lock(resource, {.ttl = 1min});
    const CommandMonitor monitor{world[1]};
    ASSERT_THAT(lock.try_acquire(), Succeeds());
    EXPECT_THAT(verbs_of(monitor), testing::ElementsAre("ASKING", "SET"));
    EXPECT_THAT(world.lock(resource).try_acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

// One of the two keys is at each server, so no server can execute the script (TRYAGAIN).
TEST_F(OnACluster, AReleaseOfSeveralResourcesArrivesWhileTheirSlotIsBeingMoved) {
    const auto tag = world.resource_of(0);
    const std::vector<std::string> resources{"{" + tag + "}:1", "{" + tag + "}:2"};
    Lock lock{world.nodes, resources, {.ttl = 10min}};
    ASSERT_THAT(lock.try_acquire(), Succeeds());
    RedisClusterServers::begin_move(hash_slot_of(tag), world[0], world[1]);
    RedisClusterServers::move_key(resources[1], world[0], world[1]);
    Lock other{world.nodes, resources, {.ttl = 10min}};
    const auto refused = other.try_acquire();
    EXPECT_THAT(refused, Reports(0, Errc::server_busy));
    EXPECT_THAT(refused.nodes()[0].detail, HasSubstr("TRYAGAIN"));
    EXPECT_FALSE(refused.nodes()[0].sent) << "there is nothing to release";
    (void)lock.release();
    EXPECT_TRUE(wait_until([&] {
        (void)world.lock(world.resource_of(2)).try_acquire();  // any round sends what is left to send
        return holder(world[0], resources[0]) != lock.owner() && world[1].command({"DBSIZE"}) == "0";
    }));
}

TEST(ACluster, TheLastReleaseFollowsItsSlotWhenTheNodesAreDestroyed) {
    RedisClusterServers servers;
    const std::string resource = "foo";
    auto& from = servers.first_master_of(hash_slot_of(resource));
    auto& to = servers[0];  // is no seed, and the client has not used it
    ASSERT_NE(&from, &to);
    {
        RedisNodes nodes{{"redis+cluster://" + from.name()}, {.node_timeout = 2s}};
        Lock lock{nodes, resource, {.ttl = 10min}};
        ASSERT_THAT(lock.try_acquire(), Succeeds());
        RedisClusterServers::move_slot(hash_slot_of(resource), from, to);
        lock.unlock();
    }
    EXPECT_EQ(holder(to, resource), "(nil)");
}

TEST_F(OnACluster, AServerMayLeaveOutTheHost) {
    for (auto& server : world)
        ASSERT_EQ(server.command({"CONFIG", "SET", "cluster-preferred-endpoint-type", "unknown-endpoint"}),
                  "OK");
    ASSERT_TRUE(world.warm_up());
    const auto resource = world.resource_of(0);
    RedisClusterServers::move_slot(hash_slot_of(resource), world[0], world[1]);
    auto lock = world.lock(resource);
    EXPECT_THAT(lock.try_acquire(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

// An ACL without CLUSTER NODES.
TEST_F(OnACluster, WithoutTheListTheServersAreFoundByMoved) {
    for (auto& server : world)
        ASSERT_EQ(server.command({"ACL", "SETUSER", "few", "on", ">pw", "~*", "+set", "+get", "+del", "+eval",
                                  "+evalsha", "+ping", "+asking", "+pexpire", "+pttl"}),
                  "OK");
    RedisNodes nodes{{world.uri("few:pw@")}, {.node_timeout = 2s}};
    for (std::size_t i = 0; i < world.masters; ++i) {
        Lock lock{nodes, world.resource_of(i)};
        const auto result = lock.try_acquire();
        EXPECT_THAT(result, Succeeds()) << result.nodes()[0].detail;
        EXPECT_THAT(lock.release(), Succeeds());
    }
    EXPECT_TRUE(world.clean());
}

TEST_F(OnACluster, ASlotWithoutAMasterIsATransientFailure) {
    ASSERT_TRUE(world.warm_up());
    const auto resource = world.resource_of(0);
    const auto slot = std::to_string(hash_slot_of(resource));
    ASSERT_EQ(world[0].command({"CLUSTER", "DELSLOTS", slot}), "OK");
    const auto result = world.lock(resource).try_acquire();
    EXPECT_THAT(result, Reports(0, Errc::server_busy));
    EXPECT_THAT(result.nodes()[0].detail, HasSubstr("CLUSTERDOWN"));
    ASSERT_EQ(world[0].command({"CLUSTER", "ADDSLOTS", slot}), "OK");
    EXPECT_TRUE(wait_until([&] { return static_cast<bool>(world.lock(resource).try_acquire()); }));
}

TEST(AClusterWithAShortTimeout, ADeadServerStopsOnlyTheLocksOfItsSlots) {
    ClusterWorld world{RedisClusterServers::Replicas::none, {.node_timeout = 500ms}};
    for (auto& server : world)
        ASSERT_EQ(server.command({"CONFIG", "SET", "cluster-require-full-coverage", "no"}), "OK");
    ASSERT_TRUE(world.warm_up());
    world[1].kill();
    auto dead = world.lock(world.resource_of(1));
    const auto result = dead.try_acquire();
    EXPECT_THAT(result, FailsWith(Errc::no_quorum));
    EXPECT_THAT(result.nodes()[0].detail, HasSubstr(world[1].name()));
    for (const std::size_t alive : {0U, 2U}) {
        auto lock = world.lock(world.resource_of(alive));
        EXPECT_THAT(lock.try_acquire(), Succeeds());
        EXPECT_THAT(lock.release(), Succeeds());
    }
    world[1].restart();
}

TEST(AClusterWithReplicas, APromotedReplicaIsFound) {
    ClusterWorld world{RedisClusterServers::Replicas::one_each, {.node_timeout = 500ms}};
    ASSERT_TRUE(world.warm_up());
    world[1].kill();
    world.promote_replica_of(1);
    EXPECT_TRUE(wait_until([&] {
        auto lock = world.lock(world.resource_of(1));
        return static_cast<bool>(lock.try_acquire());
    }));
}

// The former master does not say that it was replaced.
TEST(AClusterWithReplicas, AReleaseOnAFrozenServerReachesItsPromotedReplica) {
    ClusterWorld world{RedisClusterServers::Replicas::one_each, {.node_timeout = 500ms}};
    ASSERT_TRUE(world.warm_up());
    const auto resource = world.resource_of(1);
    auto lock = world.lock(resource, {.ttl = 10min});
    ASSERT_THAT(lock.try_acquire(), Succeeds());
    auto& replica = world[1 + RedisClusterServers::masters];
    ASSERT_TRUE(wait_until([&] { return replica.command({"DBSIZE"}) == "1"; }));
    world[1].freeze();
    lock.unlock();
    world.promote_replica_of(1);
    EXPECT_TRUE(wait_until([&] {
        (void)world.lock(world.resource_of(1, "another:")).try_acquire();
        return replica.command({"EXISTS", resource}) == "0";
    }));
    world[1].thaw();
}

// The other servers work, so a round on them must not wait for the frozen one.
TEST(AClusterWithAShortTimeout, AFrozenServerDelaysOneOperation) {
    ClusterWorld world{RedisClusterServers::Replicas::none, {.node_timeout = 3s}};
    for (auto& server : world)
        ASSERT_EQ(server.command({"CONFIG", "SET", "cluster-require-full-coverage", "no"}), "OK");
    ASSERT_TRUE(world.warm_up());
    world[1].freeze();
    auto lock = world.lock(world.resource_of(1), {.ttl = 1min});
    EXPECT_THAT(lock.try_acquire(), Reports(0, Errc::timed_out));
    for (int i = 0; i < 10; ++i) {
        auto other = world.lock(world.resource_of(2));
        EXPECT_THAT(other.try_acquire(), Succeeds());
    }
    world[1].thaw();
    EXPECT_TRUE(wait_until([&] {
        (void)world.lock(world.resource_of(1, "another:")).try_acquire();
        return world.clean();
    })) << "the SET that was answered late is released";
}

}  // namespace
}  // namespace redlock::test::routing_live_test
