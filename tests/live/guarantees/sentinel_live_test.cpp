// Nodes that Sentinels name: real ones, three of them, over a master and its replica.
#include "guarantee_world.hpp"

#include <optional>
#include <thread>

namespace redlock::test {
namespace {

using testing::HasSubstr;

/// One node, as far as a client can tell.
class SentinelWorld {
public:
    SentinelWorld() {
        EXPECT_TRUE(wait_until([&] { return servers[1].info("replication", "master_link_status") == "up"; }));
        for (auto& sentinel : sentinels) sentinel.emplace(RedisConfig{}.sentinel_of(servers[0].port()));
        const auto complete = [](const auto& it) {
            const auto known = it->info("sentinel", "master0");
            return known.find("slaves=1,sentinels=3") != known.npos;
        };
        EXPECT_TRUE(wait_until([&] { return std::ranges::all_of(sentinels, complete); }, 30s));
    }

    std::string uri() const {
        std::string hosts;
        for (const auto& it : sentinels) hosts += (hosts.empty() ? "" : ",") + it->name();
        return "redis+sentinel://" + hosts + "/mymaster";
    }

    /// Until two of three name it.
    bool named(const RedisServer& server) const {
        return wait_until(
            [&] {
                return std::ranges::count_if(sentinels, [&](const auto& it) {
                           const auto answer =
                               it->command({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"});
                           return answer.find(std::to_string(server.port())) != answer.npos;
                       }) >= 2;
            },
            60s);
    }

    /// Has the replica promoted, as soon as that can be.
    void fail_over() {
        EXPECT_TRUE(wait_until(
            [&] {
                return sentinels[0]->command({"SENTINEL", "FAILOVER", "mymaster"}) == "OK";
            },
            60s));
    }

    /// The master is frozen, and the replica promoted without the lock that it has granted last.
    void lose_master() {
        servers[0].freeze();
        ASSERT_TRUE(named(servers[1]));
        take_over();
        servers[1].command({"DEL", the_resource});
    }

    /// As if there were another replica: without any the new master takes no writes.
    void take_over() {
        EXPECT_TRUE(wait_until([&] { return servers[1].info("replication", "role") == "master"; }));
        EXPECT_EQ(servers[1].command({"CONFIG", "SET", "min-replicas-to-write", "0"}), "OK");
    }

    RedisConfig bounded{RedisConfig{}.line("min-replicas-to-write 1").line("min-replicas-max-lag 1")};
    std::array<RedisServer, 2> servers{RedisServer{bounded}, RedisServer{replica()}};
    std::array<std::optional<RedisServer>, 3> sentinels{};

private:
    RedisConfig replica() { return RedisConfig{bounded}.replica_of(servers[0].port()); }
};

/// A client with nodes of its own.
struct Client {
    explicit Client(const SentinelWorld& world, milliseconds q = quarantine)
        : nodes{{world.uri()}, {.node_timeout = 2s, .quarantine = q}} {}
    RedisNodes nodes;
    Lock lock{nodes, the_resource, no_retry(quarantine)};
};

TEST(Sentinels, NameTheMasterAndTheNextOne) {
    SentinelWorld world;
    whole_since(world.servers[0], 1min);
    Client client{world};
    ASSERT_THAT(client.lock.acquire(), Succeeds());
    EXPECT_EQ(client.nodes.name(0), "mymaster@" + world.sentinels[0]->name());
    EXPECT_EQ(holder(world.servers[0]), client.lock.owner());
    ASSERT_THAT(client.lock.release(), Succeeds());

    world.fail_over();
    ASSERT_TRUE(world.named(world.servers[1]));
    world.take_over();
    EXPECT_TRUE(wait_until([&] {
        const auto result = client.lock.acquire();
        EXPECT_FALSE(result);
        return result.nodes()[0].cause == Errc::quarantined;
    }));
    whole_since(world.servers[1], 1min);
    EXPECT_TRUE(wait_until([&] { return bool{client.lock.acquire()}; }));
    EXPECT_EQ(holder(world.servers[1]), client.lock.owner());
}

TEST(AFailover, LosesALockButNotTheExclusion) {
    SentinelWorld world;
    whole_since(world.servers[0], 1min);
    ASSERT_TRUE(wait_until([&] { return world.servers[1].command({"EXISTS", marker}) == "1"; }));
    Client first{world};
    ASSERT_THAT(first.lock.acquire(), Succeeds());
    world.lose_master();
    Client second{world};
    EXPECT_THAT(second.lock.acquire(), Reports(0, Errc::quarantined));
    Client without{world, 0ms};
    EXPECT_THAT(without.lock.acquire(), Succeeds()) << "as everybody would, without the quarantine";
    EXPECT_TRUE(first.lock.valid()) << "too slow a machine: the lock is over";
}

// It has been frozen and replaced; as it wakes up, it carries out what stands in its sockets before it looks
// for its replicas.
TEST(AFormerMaster, GetsNoLeaseThatBeginsLater) {
    SentinelWorld world;
    whole_since(world.servers[0], 1min);
    Client first{world};
    ASSERT_THAT(first.lock.acquire(), Succeeds());
    ASSERT_THAT(first.lock.release(), Succeeds());
    const auto released = boot_clock().now();
    world.lose_master();
    boot_clock().sleep_until(released + 1100ms, {});  // from then on the connection is not trusted
    whole_since(world.servers[1], 1min);              // as if its quarantine were over
    Client second{world};
    ASSERT_THAT(second.lock.acquire(), Succeeds());
    const std::jthread later{[&] {
        boot_clock().sleep_until(boot_clock().now() + 200ms, {});
        world.servers[0].thaw();
    }};
    EXPECT_EQ(first.lock.acquire().error(), Errc::held_by_other) << "over its idle connection";
    EXPECT_TRUE(second.lock.valid()) << "too slow a machine: the lock is over";
}

TEST(Sentinels, AreAskedUntilMoreThanHalfNameTheSame) {
    SentinelWorld world;
    world.sentinels[0]->freeze();
    Client client{world};
    EXPECT_THAT(client.lock.acquire(), Reports(0, Errc::quarantined)) << "two are enough";
    world.sentinels[1]->kill();
    Client another{world};
    const auto result = another.lock.acquire();
    EXPECT_EQ(result.error(), Errc::no_quorum) << "one is not, though it knows";
    world.sentinels[0]->thaw();
    Client third{world};
    EXPECT_TRUE(wait_until([&] { return third.lock.acquire().nodes()[0].cause == Errc::quarantined; }))
        << "two again, once the last inquiry is over";
    world.sentinels[2]->kill();
    Client fourth{world};
    EXPECT_THAT(fourth.lock.acquire().nodes()[0].detail, HasSubstr("of 3 Sentinels 1 named a master"));
}

}  // namespace
}  // namespace redlock::test
