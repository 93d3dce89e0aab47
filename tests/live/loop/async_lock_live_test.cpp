// AsyncLock in a poll() loop, against real servers.
#include "live/forked_child.hpp"
#include "live/own_files.hpp"
#include "poll_loop.hpp"
#include "support/cluster_test.hpp"
#include "support/loopback_name.hpp"
#include "support/temporary_directory.hpp"

#include <redlock/async_lock.hpp>

#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace redlock::test {
namespace {

using namespace std::chrono_literals;

class InALoop : public support::ClusterTest {
protected:
    PollLoop loop{};
    AsyncNodes of_loop{nodes, loop};
};

TEST_F(InALoop, ResolvesNames) {
    if (!support::localhost_is_known()) GTEST_SKIP() << "this machine knows no name to look up";
    std::vector<std::string> uris;
    for (auto& server : cluster) uris.push_back("redis://localhost:" + std::to_string(server.port()));
    RedisNodes named{uris, {.node_timeout = 2s}};
    PollLoop other_loop;
    AsyncNodes of_other{named, other_loop};
    AsyncLock lock{of_other, "orders:42", {.ttl = 30s}};
    std::optional<Result> result;
    lock.try_acquire([&](Result it) { result = std::move(it); });
    other_loop.run();
    ASSERT_TRUE(result);
    EXPECT_TRUE(*result) << result->message();
}

TEST_F(InALoop, AnObserverIsNotifiedOfItsRounds) {
    struct CountsRounds final : Observer {
        void round_ended(const Command&, const Tally&, std::chrono::nanoseconds) noexcept override {
            ++rounds;
        }
        int rounds = 0;
    } observer;
    RedisNodes observed{cluster.uris(), {.node_timeout = 1s, .observer = &observer}};
    PollLoop other_loop;
    AsyncNodes of_other{observed, other_loop};
    AsyncLock lock{of_other, "orders:42"};
    lock.try_acquire([](const Result& it) { EXPECT_TRUE(it) << it.message(); });
    other_loop.run();
    EXPECT_EQ(observer.rounds, 1);
}

TEST_F(InALoop, ManyAtOnce) {
    constexpr std::size_t count = 1000;
    std::vector<AsyncLock> locks;
    std::size_t acquired = 0;
    std::size_t released = 0;
    for (std::size_t i = 0; i < count; ++i)
        locks.emplace_back(of_loop, "many:" + std::to_string(i), LockOptions{.ttl = 60s});
    for (auto& lock : locks)
        lock.try_acquire([&](Result it) {
            EXPECT_TRUE(it) << it.message();
            ++acquired;
        });
    loop.run();
    EXPECT_EQ(acquired, count);
    for (auto& lock : locks) {
        EXPECT_TRUE(lock.valid());
        lock.release([&](Result it) { released += it ? 1U : 0U; });
    }
    loop.run();
    EXPECT_EQ(released, count);
    EXPECT_LE(cluster[0].info("stats", "total_connections_received").size(), 3U);
}

// The RedisNodes sends the releases that were not sent.
TEST_F(InALoop, TheShutdownLeavesNoKeyAtOtherNodes) {
    bool called = false;
    {
        RedisNodes others{cluster.uris()};
        PollLoop other_loop;
        AsyncNodes of_other{others, other_loop};
        AsyncLock lock{of_other, "orders:43"};
        lock.try_acquire([&](Result) { called = true; });
        of_other.shut_down();
    }
    EXPECT_FALSE(called);
    EXPECT_TRUE(no_key_is_left("orders:43"));
}

// The destructor of the RedisNodes does, for all loops together.
TEST_F(InALoop, TheShutdownDoesNotWaitForAFrozenServer) {
    struct Client {
        Client(RedisNodes& its_nodes, const std::string& resource)
            : of_loop{its_nodes, loop}, lock{of_loop, resource} {
            lock.try_acquire([](const Result& it) { EXPECT_TRUE(it) << it.message(); });
            loop.run();
        }
        PollLoop loop{};
        AsyncNodes of_loop;
        AsyncLock lock;
    };
    std::optional<RedisNodes> shared{std::in_place, cluster.uris(), NodesOptions{.node_timeout = 2s}};
    std::list<Client> clients;
    for (const auto* const resource : {"a", "b", "c"}) clients.emplace_back(*shared, resource);
    cluster[0].freeze();
    const auto start = boot_clock().now();
    clients.clear();
    EXPECT_LT(boot_clock().now() - start, 2s);
    const auto then = boot_clock().now();
    shared.reset();
    EXPECT_GT(boot_clock().now() - then, 1500ms);
    EXPECT_LT(boot_clock().now() - then, 4s);
    cluster[0].thaw();
    for (const auto* const resource : {"a", "b", "c"}) EXPECT_TRUE(no_key_is_left(resource));
}

// D10. The daemon closes all descriptors, and opens files that get their numbers. It runs the copy of the
// loop, destroys what its parent has made, and makes AsyncNodes of its own for this loop.
TEST_F(InALoop, ADaemonKeepsItsFiles) {
    const support::TemporaryDirectory directory;
    PollLoop of_parent;
    auto made = std::make_unique<AsyncNodes>(nodes, of_parent);
    const auto watched =
        std::make_unique<AsyncLock>(*made, "watched", LockOptions{.ttl = 3s, .watchdog = loop_watchdog()});
    auto waiting = std::make_unique<AsyncLock>(*made, "watched", LockOptions{.ttl = 1min, .fair = true});
    bool acquired = false;
    watched->acquire([&](const Result& it) {
        acquired = static_cast<bool>(it);
        waiting->acquire_for(1min, [](const Result&) {});
    });
    const auto run_until = [&](auto condition) {
        return support::wait_until([&] {
            (void)of_parent.run_once(std::chrono::steady_clock::now() + 10ms);
            return condition();
        });
    };
    ASSERT_TRUE(run_until([&] { return cluster[0].command({"ZCARD", "{watched}:queue"}) == "1"; }));
    ASSERT_TRUE(acquired);
    ForkedChild daemon{[&](const Report& report) {
        OwnFiles files{directory.path(), report.descriptor()};
        (void)run_until([until = std::chrono::steady_clock::now() + 100ms] {
            return std::chrono::steady_clock::now() >= until;
        });
        waiting.reset();
        made.reset();
        report(files.state());
        AsyncNodes of_child{nodes, of_parent};
        AsyncLock mine{of_child, "the child's", {.fair = true}};
        std::optional<Result> result;
        mine.acquire([&](Result it) { result = std::move(it); });
        (void)run_until([&] { return result.has_value(); });
        report(result && *result && mine.valid() ? "worked" : "did not work");
        report(files.state());
    }};
    EXPECT_EQ(daemon.receive(), "as written") << "after the daemon has used the loop of its parent";
    EXPECT_EQ(daemon.receive(), "worked");
    EXPECT_EQ(daemon.receive(), "as written");
    EXPECT_EQ(daemon.wait(), 0);
    EXPECT_EQ(OwnFiles::lines_executed_by(cluster), 0U);
    EXPECT_TRUE(watched->valid());
    EXPECT_EQ(keys("watched"), 5U);
}

}  // namespace
}  // namespace redlock::test
