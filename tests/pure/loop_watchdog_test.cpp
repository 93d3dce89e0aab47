// The watchdog of an event loop over servers in memory, some of which are silent for a while.
#include "memory_loop_world.hpp"

#include "loop/round_places.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test::loop_watchdog_test {
namespace {

/// Servers, nodes and a loop. The servers have a long time to answer.
struct LoopWatchdog : testing::Test, MemoryLoopWorld {
    LoopWatchdog() : MemoryLoopWorld{{.node_timeout = 5s, .round = Round::all_at_once}} {}

    LockOptions watched(milliseconds ttl, milliseconds margin = 0ms) {
        return {.ttl = ttl, .watchdog = loop_watchdog(), .margin = margin, .on_lost = [this](const Result&) {
                    ++losses;
                    lost_at = now();
                    on_loss();
                }};
    }
    /// Acquires a lock, and runs the loop until `span` has passed since.
    std::unique_ptr<AsyncLock> acquired(const std::string& resource, LockOptions options,
                                        Clock::duration span) {
        const auto end = now() + span;
        auto it = std::make_unique<AsyncLock>(*of_loop, resource, std::move(options));
        it->acquire(report());
        run_for(end - now());
        EXPECT_TRUE(it->valid());
        return it;
    }
    void silence(std::size_t first) {
        for (auto node = first; node < size; ++node) network.server(node).paused = true;
    }
    bool extension_has_come(std::size_t node) { return !all(node, "expire").empty(); }

    int losses = 0;
    Clock::time_point lost_at{};
    std::function<void()> on_loss = [] {};
};

// ---- The end of the loop

TEST_F(LoopWatchdog, EndsItsRoundAtTheShutdown) {
    auto lock = acquired("r", watched(30s), 1s);
    silence(1);
    while (!extension_has_come(0)) loop.run_once(Clock::never());
    of_loop->shut_down();
    of_loop.reset();
    network.pass(10s);
    lock.reset();
    nodes.reset();
}

TEST_F(LoopWatchdog, CallsNoOnLostIfACallbackOfLostHasShutTheLoopDown) {
    const auto lock = acquired("r", watched(30s), 1s);
    const std::stop_callback shut_down{lock->lost(), [this] { of_loop->shut_down(); }};
    silence(0);
    run_for(1min);
    EXPECT_TRUE(lock->lost().stop_requested());
    EXPECT_EQ(losses, 0);
}

// ---- Losses during an extension of another lock

TEST_F(LoopWatchdog, ReportsALossAtItsLimitWhileAnotherExtensionWaits) {
    const auto start = now();
    const auto first = acquired("first", watched(30s), 10s);
    for (std::size_t node = 0; node < size; ++node) network.server(node).latency = 3s;
    AsyncLock second{*of_loop, "second", watched(10300ms, 5050ms)};
    second.acquire(report());
    run_for(1s);
    silence(0);  // they have executed the SET, and its replies are on their way
    while (results.size() < 2) loop.run_once(Clock::never());
    ASSERT_TRUE(second.valid());
    ASSERT_GT(now(), start + 11250ms) << "the extension of the first lock waits";
    const auto notify_at = now() + second.remaining() - 5050ms - 5ms;
    run_for(10s);
    EXPECT_EQ(losses, 1);
    EXPECT_THAT(lost_at, IsBetween(notify_at, notify_at + 1ms));
    EXPECT_LT(lost_at, start + 11250ms + 5s) << "the end of the round";
}

/// A lock whose holder finds the loss while the extension of another lock waits for silent servers.
struct LossFoundDuringAnExtension : LoopWatchdog {
    void find_the_loss() {
        for (std::size_t node = 0; node < size; ++node) {
            network.server(node).latency = 1s;
            ask(node, {"DEL", "second"});
        }
        second->extend(report());
        run_for(1ms);
        silence(0);
        found_by = now() + 1s;
        run_for(1010ms);
    }

    std::unique_ptr<AsyncLock> first = acquired("first", watched(30s), 10ms);
    std::unique_ptr<AsyncLock> second = acquired("second", watched(10min), 11s);
    Clock::time_point found_by{};
};

TEST_F(LossFoundDuringAnExtension, IsReportedAtOnce) {
    find_the_loss();
    ASSERT_EQ(results.size(), 3U);
    EXPECT_EQ(results[2].error(), Errc::lost);
    EXPECT_EQ(losses, 1);
    EXPECT_LE(lost_at, found_by);
    EXPECT_TRUE(first->valid());
    run_for(5s);
    EXPECT_EQ(losses, 1);
}

TEST_F(LossFoundDuringAnExtension, MayLeadToAShutdown) {
    on_loss = [this] { of_loop->shut_down(); };
    find_the_loss();
    EXPECT_EQ(losses, 1);
    EXPECT_FALSE(loop.watches_anything());
    EXPECT_TRUE(first->lost().stop_requested());
}

// The replies have come in time, but the loop has not read them when the loss is due.
TEST_F(LoopWatchdog, CountsTheRepliesThatHaveComeBeforeItReportsALoss) {
    const auto lock = acquired("r", watched(10s, 3s), 1s);
    silence(0);
    run_for(lock->remaining() - 3s - 10ms);
    ASSERT_EQ(losses, 0);
    for (std::size_t node = 0; node < size; ++node) network.server(node).resume(now());
    network.pass(50ms);
    loop.come_back();
    run_for(100ms);
    EXPECT_EQ(losses, 0);
    EXPECT_GT(lock->remaining(), 3s);
}

// ---- The limit of rounds

TEST_F(LoopWatchdog, ExtendsWhileAllPlacesForRoundsAreTaken) {
    const auto lock = acquired("r", watched(30s), 11s);
    silence(1);
    std::vector<AsyncLock> others;
    for (std::size_t i = 0; i < loop::RoundPlaces::size + 1; ++i) {
        others.emplace_back(*of_loop, "other:" + std::to_string(i), LockOptions{.ttl = 30s});
        others.back().try_acquire(report());
    }
    run_for(1s);
    EXPECT_EQ(results.size(), 1U) << "the others wait";
    EXPECT_TRUE(extension_has_come(0));
}

}  // namespace
}  // namespace redlock::test::loop_watchdog_test
