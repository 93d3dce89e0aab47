// Nodes that Sentinels name: three real Sentinels with a master and its replica.
#include "guarantee_world.hpp"
#include "live/scheduling_delay.hpp"

#include "support/reserved_port.hpp"
#include "support/sentinel_group.hpp"

#include <functional>
#include <initializer_list>
#include <string>
#include <thread>

namespace redlock::test::sentinel_live_test {
namespace {

/// This is one node for a client.
struct SentinelWorld : support::SentinelGroup {
    /// Freezes the master, and promotes the replica without the lock that the master granted last.
    void lose_master() {
        servers[0].freeze();
        await_promotion_of(servers[1]);
        take_over(servers[1]);
        servers[1].command({"DEL", the_resource});
    }
};

/// A client with its own nodes.
struct Client {
    explicit Client(const SentinelWorld& world, milliseconds q = quarantine)
        : nodes{{world.uri()}, {.node_timeout = 2s, .quarantine = q}} {}
    RedisNodes nodes;
    Lock lock{nodes, the_resource, no_retry(quarantine)};
};

TEST(Sentinels, NameTheMasterAndItsSuccessor) {
    SentinelWorld world;
    whole_since(world.servers[0], 1min);
    Client client{world};
    ASSERT_THAT(client.lock.acquire(), Succeeds());
    EXPECT_EQ(client.nodes.name(0), "mymaster@" + world.sentinels[0].name());
    EXPECT_EQ(holder(world.servers[0]), client.lock.owner());
    ASSERT_THAT(client.lock.release(), Succeeds());

    world.fail_over_to(world.servers[1]);
    world.take_over(world.servers[1]);
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

// The server was frozen and replaced. When it continues, it executes the commands in its sockets before it
// checks for its replicas.
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

TEST(Sentinels, AreAskedUntilAMajorityNamesTheSameMaster) {
    SentinelWorld world;
    world.sentinels[0].freeze();
    Client client{world};
    EXPECT_THAT(client.lock.acquire(), Reports(0, Errc::quarantined)) << "two are enough";
    world.sentinels[1].kill();
    Client another{world};
    const auto result = another.lock.acquire();
    EXPECT_EQ(result.error(), Errc::no_quorum) << "one Sentinel is not enough, although it knows the master";
    world.sentinels[0].thaw();
    Client third{world};
    EXPECT_TRUE(wait_until([&] { return third.lock.acquire().nodes()[0].cause == Errc::quarantined; }))
        << "two again, once the last inquiry is over";
    world.sentinels[2].kill();
    Client fourth{world};
    EXPECT_THAT(fourth.lock.acquire().nodes()[0].detail, HasSubstr("of 3 Sentinels 1 named a master"));
}

// A9. Asking the Sentinels counts towards node_timeout.
TEST(Sentinels, DelayARoundByOneNodeTimeoutIfTheyAreFrozen) {
    SentinelWorld world;
    for (auto& it : world.sentinels) it.freeze();
    constexpr auto node_timeout = 400ms;
    RedisNodes nodes{{world.uri()}, {.node_timeout = node_timeout}};
    Lock lock{nodes, the_resource, no_retry(1min)};
    const SchedulingDelayMonitor machine;
    for (const std::string round : {"first", "second"}) {
        const auto before = boot_clock().now();
        const auto delayed = machine.delay();
        const auto result = lock.acquire();
        const auto took = boot_clock().now() - before - (machine.delay() - delayed);
        EXPECT_EQ(result.error(), Errc::no_quorum) << round;
        EXPECT_LT(took, node_timeout + 300ms) << round;
    }
}

std::string uri_of(std::initializer_list<std::reference_wrapper<const RedisServer>> sentinels) {
    const auto name = [](const RedisServer& it) { return it.name(); };
    return "redis+sentinel://" + support::comma_list(sentinels, name) + "/mymaster";
}

Result acquire_once(const std::string& uri) {
    RedisNodes nodes{{uri}, {.node_timeout = 2s}};
    return Lock{nodes, the_resource, no_retry(1min)}.acquire();
}

// For example, the Sentinels name the address of a container, which leads nowhere from other machines.
TEST(Sentinels, NameAMasterThatCannotBeReached) {
    const support::ReservedPort nobody;
    const RedisServer sentinel{RedisConfig{}.sentinel_of(nobody.number())};
    const auto result = acquire_once(uri_of({sentinel}));
    EXPECT_THAT(result, Reports(0, Errc::connection_failed));
    EXPECT_THAT(result.nodes()[0].detail,
                HasSubstr("the master that they name, 127.0.0.1:" + std::to_string(nobody.number())));
    EXPECT_THAT(result.nodes()[0].detail, HasSubstr("Connection refused"));
}

TEST(Sentinels, AreTakenForServersAndServersForThem) {
    const RedisServer server;
    const RedisServer sentinel{RedisConfig{}.sentinel_of(server.port())};
    EXPECT_THAT(acquire_once("redis://" + sentinel.name()).nodes()[0].detail,
                HasSubstr("write redis+sentinel://"));
    EXPECT_THAT(acquire_once("redis+sentinel://" + server.name() + "/mymaster").nodes()[0].detail,
                HasSubstr("write redis://"));
}

// Two clients have the same name for a node, but not the same Sentinels.
TEST(Sentinels, AreAskedSeparatelyForEachClient) {
    const RedisServer server;
    RedisServer frozen{RedisConfig{}.sentinel_of(server.port())};
    const RedisServer two{RedisConfig{}.sentinel_of(server.port())};
    const RedisServer three{RedisConfig{}.sentinel_of(server.port())};
    frozen.freeze();
    RedisNodes first{{uri_of({frozen})}, {.node_timeout = 20s}};
    EXPECT_FALSE((Lock{first, the_resource, no_retry(1min)}.acquire_for(50ms)));
    EXPECT_THAT(acquire_once(uri_of({frozen, two, three})), Succeeds());
}

// They have their own password, beside that of the server. The inquiry with the wrong one is under way when
// the other client begins.
TEST(Sentinels, AreAskedSeparatelyWithEachPassword) {
    const RedisServer server{RedisConfig{}.password("ours")};
    RedisServer sentinel{
        RedisConfig{}.sentinel_of(server.port()).line("sentinel auth-pass mymaster ours").password("theirs")};
    const auto with = [&](const std::string& password) {
        return "redis+sentinel://:ours@" + sentinel.name() + "/mymaster?sentinel_password=" + password;
    };
    sentinel.freeze();
    RedisNodes wrong{{with("ours")}, {.node_timeout = 20s}};
    EXPECT_FALSE((Lock{wrong, the_resource, no_retry(1min)}.acquire_for(50ms)));
    sentinel.thaw();
    EXPECT_THAT(acquire_once(with("theirs")), Succeeds());
    EXPECT_THAT((Lock{wrong, the_resource, no_retry(1min)}.acquire()),
                Reports(0, Errc::authentication_failed));
}

}  // namespace
}  // namespace redlock::test::sentinel_live_test
