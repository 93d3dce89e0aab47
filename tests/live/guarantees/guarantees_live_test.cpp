// Fencing and the restart quarantine, as far as they need real servers: run ids, roles, data after a restart.
// The tests in tests/pure and the simulation cover the scripts.
#include "guarantee_world.hpp"

namespace redlock::test::guarantees_live_test {
namespace {

class Guarantees : public InEachRound {};
INSTANTIATE_TEST_SUITE_P(EachRound, Guarantees, each_round(), by_round);

// Fencing and a quarantine, for many resources at once.
TEST_P(Guarantees, HoldForManyResources) {
    QuarantineWorld world{3, {}, GetParam()};
    ASSERT_TRUE(world.warm_up());  // without a connection, a node is not asked once the others have decided
    std::vector<std::string> resources{{"a\0\n", 3}};
    while (resources.size() < 500) resources.push_back("resource " + std::to_string(resources.size()));
    const LockOptions options{.ttl = quarantine, .retry = {.attempts = 1}, .fencing = true};
    const auto keys = [&](const std::string& count) {
        return wait_until([&] {
            return std::ranges::all_of(world, [&](auto& it) { return it.command({"DBSIZE"}) == count; });
        });
    };
    Lock lock{world.nodes, resources, options};
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_TRUE(keys("1001")) << "a key and a counter each, and the marker";
    const auto token = lock.fencing_token();
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(keys("501"));
    Lock overlapping{world.nodes, {"resource 7", "another"}, options};
    ASSERT_THAT(overlapping.acquire(), Succeeds());
    EXPECT_GT(overlapping.fencing_token(), token);
}

// ---- Fencing

// If a restarted server has an old counter without the last holders, the counter is not continued.
TEST(Fencing, DoesNotContinueACountFromAnEarlierRun) {
    LiveWorld world{1, {.node_timeout = 1s}, RedisConfig{}.keeps_data()};
    const auto next_token = [&] {
        auto lock = world.lock({.retry = {.attempts = 1}, .fencing = true});
        EXPECT_TRUE(wait_until([&] { return bool{lock.acquire()}; }));
        return lock.fencing_token();
    };
    const auto before = next_token();
    const auto seven = data_of(world[0]) + "7";
    ASSERT_EQ(world[0].command({"SET", counter, seven}), "OK");  // like the key in an old snapshot
    world[0].restart();
    EXPECT_EQ(world[0].command({"GET", counter}), seven);
    EXPECT_GT(next_token(), before);
}

// ---- S29, S30: a node that may have forgotten the holders does not vote until the longest ttl has passed.

// S30. Two of three nodes are restarted empty while the lock is held. No other client acquires it.
TEST_P(Guarantees, AQuarantinePreventsASecondGrantByNodesRestartedEmpty) {
    QuarantineWorld world{3, {}, GetParam()};
    auto holder = world.claim();
    ASSERT_THAT(holder.acquire(), Succeeds());
    for (const std::size_t node : {0U, 1U}) world[node].restart_empty();
    auto other = world.claim();
    EXPECT_TRUE(wait_until([&] {  // one connection after the other is found broken
        const auto result = other.acquire();
        EXPECT_EQ(count(result, Vote::granted), 0U);
        return result.nodes()[0].cause == Errc::quarantined || result.nodes()[1].cause == Errc::quarantined;
    }));
    EXPECT_TRUE(holder.valid()) << "too slow a machine: the lock is over";
}

// A server that has lost the end of its log has a marker after the restart, but of another run.
TEST(AQuarantine, AppliesToNodesThatWereRestartedWithOldData) {
    QuarantineWorld world{3, RedisConfig{}.keeps_data()};
    world[1].restart();
    ASSERT_NE(world[1].command({"GET", marker}), "(nil)");
    auto lock = world.claim();
    const auto result = lock.acquire();
    EXPECT_THAT(result, Succeeds());
    EXPECT_THAT(result, Reports(1, Errc::quarantined));
}

// ---- Promotion

/// A master and its replica, which have had their data for long. With automatic failover, such a pair is one
/// node.
struct APair {
    RedisServer first{};
    RedisServer second{RedisConfig{}.replica_of(first.port())};

    /// The first replica changes the master_replid of its master.
    APair() {
        follow(second, first);
        whole_since(first, 1min);
    }
    /// Waits until `replica` has the current data of `master`.
    void follow(const RedisServer& replica, const RedisServer& master) {
        EXPECT_THAT(replica.command({"REPLICAOF", "127.0.0.1", std::to_string(master.port())}),
                    testing::StartsWith("OK"));
        const auto now = std::to_string(++marks_);
        EXPECT_EQ(master.command({"SET", "mark", now}), "OK");
        EXPECT_TRUE(wait_until([&] { return replica.command({"GET", "mark"}) == now; }));
    }
    /// Disconnects the replica from its master.
    static void cut_off(const RedisServer& replica) {
        EXPECT_EQ(replica.command({"REPLICAOF", "127.0.0.1", "1"}), "OK");
    }
    static void promote(const RedisServer& replica) {
        EXPECT_EQ(replica.command({"REPLICAOF", "NO", "ONE"}), "OK");
    }

private:
    int marks_ = 0;
};

/// A client with a single server.
struct Claim {
    explicit Claim(const RedisServer& server)
        : nodes{{server.uri()}, {.node_timeout = 1s, .quarantine = quarantine}} {}
    RedisNodes nodes;
    Lock lock{nodes, the_resource, {.ttl = quarantine, .retry = {.attempts = 1}, .fencing = true}};
};

// Each server lacks the last grant of the other one. Replication copies the marker, even back to the server
// that had set it, but this does not hide the loss.
TEST(APromotedServer, HasNoVoteUntilItsQuarantineIsOver) {
    APair pair;
    Claim before{pair.first};
    ASSERT_THAT(before.lock.acquire(), Succeeds());
    const auto first_token = before.lock.fencing_token();
    ASSERT_THAT(before.lock.release(), Succeeds());
    pair.follow(pair.second, pair.first);

    APair::promote(pair.second);
    Claim holder{pair.second};
    EXPECT_THAT(holder.lock.acquire(), Reports(0, Errc::quarantined));
    whole_since(pair.second, 1min);  // as if it were over
    pair.follow(pair.first, pair.second);
    APair::cut_off(pair.first);
    ASSERT_THAT(holder.lock.acquire(), Succeeds());
    EXPECT_GT(holder.lock.fencing_token(), first_token);

    EXPECT_THAT(before.lock.acquire(), Reports(0, Errc::read_only)) << "over the same connection";
    APair::promote(pair.first);
    ASSERT_EQ(pair.first.command({"GET", the_resource}), "(nil)");
    EXPECT_THAT(before.lock.acquire(), Reports(0, Errc::quarantined)) << "and here as well";
    EXPECT_TRUE(holder.lock.valid()) << "too slow a machine: the lock is over";

    whole_since(pair.first, 1min);
    ASSERT_THAT(before.lock.acquire(), Succeeds());
    EXPECT_GT(before.lock.fencing_token(), holder.lock.fencing_token());
}

// ---- The roles and identities of servers

// A replica has no vote, even if it accepts writes.
TEST(Voters, AreMasters) {
    QuarantineWorld world;
    RedisServer replica{RedisConfig{}.replica_of(world[0].port()).line("replica-read-only no")};
    ASSERT_TRUE(wait_until([&] { return replica.info("replication", "master_link_status") == "up"; }));
    whole_since(world[0], 1min);  // the first replica changes its identity
    RedisNodes nodes{std::vector{world[0].uri(), world[1].uri(), replica.uri()},
                     {.node_timeout = 1s, .quarantine = quarantine}};
    Lock lock{nodes, the_resource, no_retry(quarantine)};
    const auto result = lock.acquire();
    EXPECT_THAT(result, Succeeds());
    EXPECT_THAT(result, Reports(2, Errc::read_only));
}

// D8. One server has one vote, even with several names.
TEST(Voters, AreDifferentServers) {
    QuarantineWorld world;
    const auto port = ":" + std::to_string(world[0].port());
    RedisNodes nodes{
        std::vector<std::string>{"127.0.0.1" + port, support::loopback_name + port, world[1].uri()},
        {.node_timeout = 1s, .quarantine = quarantine}};
    // Until the name is resolved, the votes may be decided without the duplicate.
    EXPECT_TRUE(wait_until([&] {
        Lock lock{nodes, the_resource, no_retry(quarantine)};
        const auto result = lock.acquire();
        EXPECT_THAT(result, Succeeds());
        EXPECT_EQ(count(result, Vote::granted), 2U);
        return result.message().find("same server as another node") != std::string::npos;
    }));
}

}  // namespace
}  // namespace redlock::test::guarantees_live_test
