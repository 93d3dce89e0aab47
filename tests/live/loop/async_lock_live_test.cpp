// AsyncLock in a poll() loop, against real servers.
#include "live/forked_child.hpp"
#include "live/own_files.hpp"
#include "poll_loop.hpp"
#include "support/cluster_test.hpp"
#include "support/loopback_name.hpp"
#include "support/temporary_directory.hpp"

#include <redlock/async_lock.hpp>

#include <algorithm>
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
    [[nodiscard]] bool acquires(AsyncLock& lock) {
        std::optional<Result> result;
        lock.try_acquire([&](Result it) { result = std::move(it); });
        while (!result && loop.run_once()) {
        }
        return result && *result;
    }

    PollLoop loop{};
    AsyncNodes of_loop{nodes, loop};
};

TEST_F(InALoop, HasNothingToWaitForWhenItIsIdle) {
    AsyncLock lock{of_loop, "orders:42"};
    ASSERT_TRUE(acquires(lock));
    EXPECT_FALSE(loop.run_once());
}

TEST_F(InALoop, RefusesASecondOperation) {
    AsyncLock lock{of_loop, "orders:42"};
    std::vector<std::error_code> errors;
    lock.try_acquire([&](Result it) { errors.push_back(it.error()); });
    lock.release([&](Result it) { errors.push_back(it.error()); });
    loop.run();
    ASSERT_EQ(errors.size(), 2U);
    EXPECT_EQ(errors[0], std::errc::operation_in_progress);
    EXPECT_FALSE(errors[1]);
}

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

TEST_F(InALoop, AnExceptionOfACompletionReachesTheLoopAndHarmsNoOther) {
    AsyncLock first{of_loop, "first"};
    AsyncLock second{of_loop, "second"};
    bool done = false;
    first.try_acquire([](Result) { throw std::runtime_error("of the user"); });
    second.try_acquire([&](Result it) { done = static_cast<bool>(it); });
    EXPECT_THROW(loop.run(), std::runtime_error);
    loop.run();
    EXPECT_TRUE(done);
    EXPECT_TRUE(first.valid());
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

// The shutdown destroys the completion of the first lock, and the second lock with it.
TEST_F(InALoop, TheShutdownReleasesALockWhoseOwnerItDestroys) {
    for (int steps = 0; steps < 12; ++steps) {
        PollLoop other_loop;
        AsyncNodes of_other{nodes, other_loop};
        AsyncLock first{of_other, "first"};
        auto second = std::make_shared<AsyncLock>(of_other, "orders:42", LockOptions{.ttl = 10min});
        second->try_acquire([](Result) {});
        first.acquire([owned = std::move(second)](Result) {});
        for (int i = 0; i < steps; ++i) (void)other_loop.run_once();
        of_other.shut_down();
        EXPECT_TRUE(no_key_is_left()) << "after " << steps << " steps";
    }
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

TEST_F(InALoop, ALoopThatIsOverKeepsNoConnections) {
    const auto connections = [&] { return std::stoul(cluster[0].info("clients", "connected_clients")); };
    const auto before = connections();
    for (int i = 0; i < 10; ++i) {
        PollLoop other_loop;
        AsyncNodes of_other{nodes, other_loop};
        AsyncLock lock{of_other, "orders:42"};
        std::optional<Result> result;
        lock.acquire([&](Result it) { result = std::move(it); });
        other_loop.run();
        ASSERT_TRUE(result);
        ASSERT_TRUE(*result) << result->message();
    }
    // The last release may not have been answered yet when its loop was over.
    EXPECT_TRUE(support::wait_until([&] { return connections() <= before + 1; }));
    EXPECT_EQ(keys(), 0U);
}

TEST_F(InALoop, ALoopThatIsOverKeepsTheConnectionToAFrozenNodeForOneNodeTimeout) {
    RedisNodes others{cluster.uris(), {.node_timeout = 100ms}};
    const auto is_over = [&] {
        PollLoop other_loop;
        AsyncNodes of_other{others, other_loop};
        AsyncLock lock{of_other, "orders:42"};
        lock.acquire([](Result) {});
        other_loop.run();
    };
    const auto connections = [&] { return std::stoul(cluster[0].info("clients", "connected_clients")); };
    is_over();
    const auto before = connections();
    cluster[1].freeze();
    for (int i = 0; i < 5; ++i) is_over();
    const auto later = boot_clock().now() + others.node_timeout();
    EXPECT_TRUE(support::wait_until([&] { return boot_clock().now() >= later; }));
    is_over();
    EXPECT_TRUE(support::wait_until([&] { return connections() <= before + 2; }));
    cluster[1].thaw();
}

// D10. A child that goes on with its copy of the loop takes no reply from its parent.
TEST_F(InALoop, AForkedChildReadsNoReplyOfItsParent) {
    RedisNodes at_once{cluster.uris(), {.node_timeout = 10s, .round = Round::all_at_once}};
    PollLoop of_parent;
    AsyncNodes made{at_once, of_parent};
    AsyncLock lock{made, "orders:42", {.ttl = 1min}};
    lock.try_acquire([&](const Result&) { lock.release([](const Result&) {}); });
    of_parent.run();
    std::optional<Result> result;
    lock.try_acquire([&](Result it) { result = std::move(it); });
    for (auto& server : cluster) server.freeze();
    (void)of_parent.run_once(std::chrono::steady_clock::now() + 10ms);  // sends the commands
    for (auto& server : cluster) server.thaw();
    ASSERT_TRUE(support::wait_until([&] { return keys() == 5; })) << "all replies are in the sockets";
    ForkedChild child{[&](const Report& report) {
        const auto until = std::chrono::steady_clock::now() + 200ms;
        while (std::chrono::steady_clock::now() < until && of_parent.run_once(until)) {
        }
        made.shut_down();
        report(result ? "ended" : "under way");
    }};
    EXPECT_EQ(child.receive(), "under way");
    EXPECT_EQ(child.wait(), 0);
    while (!result && of_parent.run_once()) {
    }
    ASSERT_TRUE(result);
    EXPECT_TRUE(*result) << result->message();
    EXPECT_EQ(keys(), 5U);
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
