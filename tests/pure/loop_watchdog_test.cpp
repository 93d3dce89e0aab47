// The watchdog of an event loop over servers in memory, some of which are silent for a while.
#include "memory_loop.hpp"
#include "waiting_world.hpp"

#include <redlock/async_lock.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test {
namespace {

class BusyLoop final : public MemoryLoop {
public:
    using MemoryLoop::MemoryLoop;
    /// Handles the timers, and no descriptor, as a loop does that comes back after a long pause.
    void come_back() { wake(); }
};

/// Servers, nodes and a loop. The servers have a long time to answer.
struct LoopWatchdog : testing::Test, WaitingWorld {
    LoopWatchdog() {
        nodes.emplace(network, size, NodesOptions{.node_timeout = 5s, .round = Round::all_at_once});
        of_loop.emplace(*nodes, loop, network.clock(), entropy);
    }

    LockOptions watched(milliseconds ttl, milliseconds margin = 0ms) {
        return {.ttl = ttl, .watchdog = loop_watchdog(), .margin = margin, .on_lost = [this](const Result&) {
                    ++losses;
                    lost_at = now();
                    on_loss();
                }};
    }
    Completion report() {
        return [this](Result it) { results.push_back(std::move(it)); };
    }
    void run_for(Clock::duration span) {
        const auto end = now() + span;
        while (now() < end && (loop.run_once(end) || now() < end)) {
        }
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

    std::optional<MemoryLoopNodes> nodes;
    BusyLoop loop{network};
    std::optional<AsyncNodes> of_loop;
    std::vector<Result> results;
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

}  // namespace
}  // namespace redlock::test
