// Locks and RedisNodes that come and go, and acquires that are cancelled, while other threads work (D9).
#include <redlock/redlock.hpp>

#include "in_threads.hpp"
#include "process_state.hpp"

#include "support/cluster.hpp"
#include "support/wait_until.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace redlock::exclusion {
namespace {

using namespace std::chrono_literals;
using support::Cluster;
using support::wait_until;
using testing::Each;
using testing::Eq;
using testing::Le;
using Clock = std::chrono::steady_clock;

// D9: a Lock is made, moved and destroyed, which releases it, while others use the same nodes.
TEST(Locks, ComeAndGoWhileOtherThreadsUseTheirNodes) {
    Cluster servers{3};
    RedisNodes nodes{servers.uris(), {.node_timeout = 5s}};
    std::atomic<int> kept{0};
    in_threads([&](std::size_t thread) {
        const auto resource = "resource " + std::to_string(thread);
        for (int time = 0; time < 20; ++time) {
            Lock lock{nodes, resource, {.ttl = 60s, .retry = {.delay = 5ms}}};
            if (!lock.acquire_for(30s)) continue;
            const auto elsewhere = std::make_unique<Lock>(std::move(lock));
            kept += elsewhere->valid() ? 1 : 0;
        }
    });
    EXPECT_EQ(kept, 20 * static_cast<int>(threads)) << "each time the one before had been released";
    for (auto& server : servers) EXPECT_EQ(server.command({"DBSIZE"}), "0");
}

// D9, A4: also while their names are still being looked up, and with nodes that are down or frozen.
TEST(ManyRedisNodes, AreMadeAndDestroyedByManyThreads) {
    Cluster servers{4};
    const auto by_name = "localhost:" + std::to_string(servers[0].port());
    servers[2].kill();
    servers[3].freeze();
    const std::vector<std::string> uris{by_name, servers[1].uri(), servers[2].uri(), servers[3].uri()};
    in_threads([&](std::size_t thread) {
        for (int time = 0; time < 5; ++time) {
            RedisNodes unused{uris};
            RedisNodes nodes{
                uris, {.node_timeout = 5ms, .round = time % 2 == 0 ? Round::sequential : Round::all_at_once}};
            Lock lock{nodes, "resource " + std::to_string(thread), {.ttl = 60s}};
            (void)lock.try_acquire();  // two of four are no majority: it may not succeed
        }
    });
    RedisNodes nodes{servers[0].uri(), servers[1].uri(),
                     servers[2].uri()};  // a machine may not know "localhost"
    Lock lock{nodes, "afterwards"};
    const auto result = lock.acquire_for(10s);
    EXPECT_TRUE(result) << result.message();
}

/// What became of an acquire that was cancelled, and how long after the order it returned.
struct Cancellation {
    std::error_code error;
    Clock::duration took;
};

Cancellation cancel(Lock& lock, const std::function<bool()>& under_way) {
    std::stop_source source;
    std::optional<Result> result;
    Clock::time_point ordered;
    {
        const std::jthread acquiring{[&] { result = lock.acquire_for(10min, source.get_token()); }};
        EXPECT_TRUE(wait_until(under_way));
        ordered = Clock::now();
        source.request_stop();
    }
    return {result->error(), Clock::now() - ordered};
}

// A8, D9: the pause between two attempts ends at once.
TEST(Acquire, InAPauseIsCancelledByAnotherThreadAtOnce) {
    Cluster servers{3};
    RedisNodes nodes{servers.uris()};
    Lock holder{nodes, "resource", {.ttl = 10min}};
    ASSERT_TRUE(holder.try_acquire());
    const auto before = calls(servers[0], "evalsha") + calls(servers[0], "eval");
    Lock lock{nodes, "resource", {.ttl = 10min, .retry = {.delay = 5min}}};
    const auto cancelled = cancel(lock, [&] {  // the first attempt has been cleaned up: a pause follows
        return calls(servers[0], "evalsha") + calls(servers[0], "eval") > before;
    });
    EXPECT_EQ(cancelled.error, Errc::cancelled);
    EXPECT_THAT(cancelled.took, Le(10s)) << "at least 150 s without";
    EXPECT_FALSE(lock.valid());
}

// B6, D9: a round ends within the budget of one node, and the release behind it within another.
TEST(Acquire, InTheMiddleOfARoundIsCancelledByAnotherThreadWithinANodesBudget) {
    Cluster servers{5};
    RedisNodes nodes{servers.uris(), {.node_timeout = 3s}};
    Lock lock{nodes, "resource", {.ttl = 10min}};
    for (auto& server : servers) server.freeze();
    const auto cancelled = cancel(lock, [&] { return connections_to(servers[0].port()) > 0; });
    for (auto& server : servers) server.thaw();
    EXPECT_EQ(cancelled.error, Errc::cancelled);
    EXPECT_THAT(cancelled.took, Le(11s)) << "at least 15 s for all five";
}

// D9: one order stops all the threads that wait on it.
TEST(Acquire, IsCancelledInAllThreadsByOneStopSource) {
    Cluster servers{3};
    RedisNodes nodes{servers.uris()};
    Lock holder{nodes, "resource", {.ttl = 10min}};
    ASSERT_TRUE(holder.try_acquire());
    std::stop_source source;
    std::vector<std::error_code> errors(threads);
    {
        const std::jthread stopping{[&] {
            const auto enough = 20 * threads;
            EXPECT_TRUE(wait_until([&] { return calls(servers[0], "set") > enough; }, 30s));
            source.request_stop();
        }};
        in_threads([&](std::size_t thread) {
            Lock lock{nodes, "resource", {.ttl = 10min, .retry = {.delay = 5ms}}};
            errors[thread] = lock.acquire_for(10min, source.get_token()).error();
        });
    }
    EXPECT_THAT(errors, Each(Eq(make_error_code(Errc::cancelled))));
    EXPECT_TRUE(holder.release());
}

}  // namespace
}  // namespace redlock::exclusion
