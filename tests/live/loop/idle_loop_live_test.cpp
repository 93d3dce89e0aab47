// A loop whose operations have all ended does not wait for nodes that nobody needs. It waits for the names of
// nodes that somebody needs. This test replaces getaddrinfo(), so it is a separate program.
#include "live/process/fake_dns.hpp"
#include "live/process/silent_address.hpp"
#include "loop_client.hpp"
#include "support/cluster.hpp"
#include "support/tcp_proxy.hpp"
#include "support/wait_until.hpp"

#include <redlock/async_lock.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace redlock::test::idle_loop_live_test {
namespace {

using namespace std::chrono_literals;
using support::Cluster;

/// A limit far above the expected time, and far below the two minutes after which the kernel gives up a
/// connection.
constexpr auto limit = 30s;

struct IdleLoop : testing::Test {
    /// Acquires, extends and releases, without the third node. After each of these operations the loop has
    /// nothing left to wait for.
    void use(const std::string& third_node) {
        LoopClient client{std::vector{servers[0].uri(), servers[1].uri(), third_node}, {.node_timeout = 2s}};
        AsyncLock lock{client.of_loop, "orders:42", {.ttl = 1min}};
        EXPECT_TRUE(client.acquire(lock));
        expect_end(client);
        EXPECT_TRUE(client.extend(lock));
        expect_end(client);
        EXPECT_TRUE(client.release(lock));
        expect_end(client);
    }
    /// Runs the loop until it has nothing to wait for.
    static void expect_end(LoopClient& client) {
        const auto start = std::chrono::steady_clock::now();
        client.loop.run();
        EXPECT_LT(std::chrono::steady_clock::now(), start + limit / 2);
    }
    /// Returns the nodes, the third of which has a name.
    std::vector<std::string> with(const HangingName& name, std::uint16_t port) const {
        auto result = servers.uris();
        result[2] = "redis://" + name.name() + ":" + std::to_string(port);
        return result;
    }
    /// Ends the test if it would wait for ever otherwise.
    template <class Action>
    static std::jthread after_the_limit(Action action) {
        return std::jthread{[action](const std::stop_token& stop) {
            boot_clock().sleep_until(boot_clock().now() + limit, stop);
            action();
        }};
    }

    Cluster servers{3};
};

TEST_F(IdleLoop, DoesNotWaitForANodeThatDropsPackets) {
    const SilentAddress silent{"127.0.0.4", servers[2].port()};
    use("redis://127.0.0.4:" + std::to_string(servers[2].port()));
}

TEST_F(IdleLoop, DoesNotWaitForTheResolutionOfAName) {
    HangingName name{"127.0.0.1"};
    const auto end = after_the_limit([&] { name.resolve(); });
    use("redis://" + name.name() + ":" + std::to_string(servers[2].port()));
}

// The address of the third node becomes unknown when a connection is refused. Its name is resolved again when
// the release comes, which takes longer than a node_timeout.
TEST_F(IdleLoop, WaitsForTheResolutionOfANameIfAReleaseIsNotSent) {
    support::TcpProxy link{servers[2].port()};
    HangingName name{"127.0.0.1"};
    name.resolve();
    const auto has_key = [this] { return servers[2].command({"EXISTS", "orders:42"}) == "1"; };
    LoopClient client{with(name, link.port()), {.node_timeout = 2s}};
    std::optional<AsyncLock> lock{std::in_place, client.of_loop, "orders:42", LockOptions{.ttl = 10min}};
    ASSERT_TRUE(client.acquire(*lock));
    ASSERT_TRUE(client.run_until(has_key));
    link.refuse();
    link.reset();
    ASSERT_EQ(client.extend(*lock).nodes()[2].cause, Errc::connection_failed);
    name.hang();
    link.heal();
    lock.reset();
    const std::jthread resolution{[&name] {
        boot_clock().sleep_until(boot_clock().now() + 4s, {});
        name.resolve();
    }};
    client.loop.run();
    EXPECT_EQ(lookups_of(name.name()), 2U) << "or this test shows nothing";
    EXPECT_TRUE(support::wait_until([&] { return !has_key(); }));
}

// The attempts end before the third node is asked. The first two nodes cannot be its home node, because they
// permit no subscription.
TEST_F(IdleLoop, AFairWaiterGoesOnWhenTheNameOfItsHomeNodeIsResolved) {
    HangingName name{"127.0.0.1"};
    for (const auto i : {0U, 1U}) {
        servers[i].command({"SET", "orders:42", "another"});
        servers[i].command({"ACL", "SETUSER", "default", "resetchannels"});
    }
    LoopClient client{with(name, servers[2].port()), {.node_timeout = 1min}};
    AsyncLock lock{client.of_loop, "orders:42", {.ttl = 1h, .fair = true}};
    lock.acquire_for(1h, [](const Result&) {});
    ASSERT_TRUE(client.run_until([&] { return lookups_of(name.name()) > 0; }));
    name.resolve();
    EXPECT_TRUE(client.run_until([&] { return servers[2].command({"ZCARD", "{orders:42}:queue"}) == "1"; }));
}

// The extensions are long, because several resources with long names belong to the lock. They fill the
// buffers of the kernel.
TEST_F(IdleLoop, DoesNotWaitForAFrozenNodeWhoseSocketIsFull) {
    LoopClient client{servers.uris(), {.node_timeout = 2s}};
    std::vector<std::string> resources;
    for (int i = 0; i < 16; ++i) resources.push_back(std::string(10'000, 'x') + std::to_string(i));
    AsyncLock lock{client.of_loop, resources, {.ttl = 5min}};
    ASSERT_TRUE(client.acquire(lock));
    servers[2].freeze();
    // Together they have more bytes than the buffers of two sockets.
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(client.extend(lock)) << i;
    const auto end = after_the_limit([this] { servers[2].thaw(); });
    expect_end(client);
}

}  // namespace
}  // namespace redlock::test::idle_loop_live_test
