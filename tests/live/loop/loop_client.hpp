// A client with nodes and a poll() loop of its own, like a process with an event loop.
//
//     LoopClient client{world.uris(), {.node_timeout = 2s}};
//     AsyncLock lock{client.of_loop, "orders:42"};
//     EXPECT_THAT(client.try_acquire(lock), Succeeds());
#pragma once

#include "live/scheduling_delay.hpp"
#include "poll_loop.hpp"

#include <redlock/async_lock.hpp>
#include <redlock/redlock.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace redlock::test {

/// Measures the longest time between two turns of a thread that runs loops, less the scheduling delay. No
/// call of the library blocks for longer.
class TurnTimer {
public:
    void turn() {
        const auto now = boot_clock().now() - monitor_.delay();
        longest_ = std::max(longest_, now - last_);
        last_ = now;
    }
    Clock::duration longest() const noexcept { return longest_; }

private:
    const SchedulingDelayMonitor monitor_{};
    Clock::time_point last_ = boot_clock().now();
    Clock::duration longest_{};
};

struct LoopClient {
    template <class Servers>
    LoopClient(Servers servers, const NodesOptions& options) : nodes{std::move(servers), options} {}

    /// Runs the loop until `condition()` is true. Returns false if it is still false after two minutes.
    template <class Condition>
    [[nodiscard]] bool run_until(Condition condition) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes{2};
        while (!condition()) {
            const auto now = std::chrono::steady_clock::now();
            if (now >= end) return false;
            // The condition may depend on others, so the wait is short.
            const auto next = now + std::chrono::milliseconds{2};
            if (!loop.run_once(next)) std::this_thread::sleep_until(next);
        }
        return true;
    }

    /// Runs the loop until the operation has called its completion.
    template <class Begin>
    Result result_of(Begin begin) {
        std::optional<Result> result;
        begin([&](Result it) { result = std::move(it); });
        return run_until([&] { return result.has_value(); })
                   ? *std::move(result)
                   : Result{std::make_error_code(std::errc::timed_out)};
    }
    Result acquire(AsyncLock& lock) {
        return result_of([&](Completion done) { lock.acquire(std::move(done)); });
    }
    Result try_acquire(AsyncLock& lock) {
        return result_of([&](Completion done) { lock.try_acquire(std::move(done)); });
    }
    Result extend(AsyncLock& lock) {
        return result_of([&](Completion done) { lock.extend(std::move(done)); });
    }
    Result release(AsyncLock& lock) {
        return result_of([&](Completion done) { lock.release(std::move(done)); });
    }

    RedisNodes nodes;
    PollLoop loop{};
    AsyncNodes of_loop{nodes, loop};
};

}  // namespace redlock::test
