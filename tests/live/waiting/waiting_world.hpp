// The world of the tests of LockOptions::fair: processes that wait in the queue, and the queue itself.
//
//     LiveWorld world{5, timeouts()};
//     auto holder = world.lock(fair());
//     ASSERT_THAT(holder.acquire(), Succeeds());
//     WaitingProcess waiter{world.uris()};
//     ASSERT_TRUE(queued(world[0], 1));
//     const auto released = now();
//     (void)holder.release();
//     expect_delay("release", waiter.held_at() - released, 0ms);
#pragma once

#include "live/forked_child.hpp"
#include "live/live_world.hpp"
#include "live/scheduling_delay.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace redlock::test {

inline constexpr auto* the_queue = "{orders:42}:queue";

/// What a busy machine may add to any bound.
inline constexpr Clock::duration slack = 8s;

/// docs/waiting.md has been measured with the options that users have. The tests wait longer for a node, so
/// that a busy machine makes none late, and so long between attempts that it is the queue which ends the
/// waiting.
inline bool with_defaults() {
    return std::getenv("REDLOCK_WAITING_DEFAULTS") != nullptr;
}
inline NodesOptions timeouts() {
    return {.node_timeout = with_defaults() ? NodesOptions{}.node_timeout : 1500ms};
}
inline LockOptions fair(milliseconds ttl = 1min) {
    return {.ttl = ttl, .retry = {.delay = with_defaults() ? Retry{}.delay : 1min}, .fair = true};
}

/// How often the first in the queue asks, others ask, and how long a reservation lasts.
inline constexpr Clock::duration poll_interval = 250ms;
inline Clock::duration first_asks_every() {
    return std::min<Clock::duration>(fair().retry.delay, poll_interval);
}
inline Clock::duration reservation_ttl() {
    return std::max<Clock::duration>(100ms, 2 * timeouts().node_timeout);
}

inline Clock::time_point now() {
    return boot_clock().now();
}

inline std::size_t queue_length(const RedisServer& server) {
    const auto length = server.command({"ZCARD", the_queue});
    return length.find_first_not_of("0123456789") == length.npos ? std::stoul(length) : 0;
}

/// Returns how many channels of waiters have a subscriber.
inline std::ptrdiff_t listeners(const RedisServer& home) {
    const auto channels = home.command({"PUBSUB", "CHANNELS", "redlock:wake:*"});
    return std::ranges::count(channels, ':') / 2;
}

/// Waits until so many are in the queue.
inline bool queued(const RedisServer& server, std::size_t count) {
    return wait_until([&] { return queue_length(server) == count; });
}

/// A row of the table in docs/waiting.md, and its bound.
inline void expect_delay(const std::string& event, Clock::duration delay, Clock::duration bound) {
    const auto in_ms = [](Clock::duration span) { return static_cast<double>(span / 10us) / 100; };
    std::cout << "delay | " << event << " | " << in_ms(delay) << " | " << in_ms(bound) << '\n';
    EXPECT_THAT(delay, LastsAtMost(bound + slack)) << event;
}

/// A delay that has no part in which anybody sleeps: the shortest of five is shorter than half of what a
/// waiter sleeps that is not woken.
template <class Measure>
void expect_no_sleep(const std::string& event, Measure measure) {
    auto shortest = Clock::duration::max();
    for (int i = 0; i < 5 && shortest >= poll_interval / 2 && !testing::Test::HasFailure(); ++i) {
        const Clock::duration delay = measure();
        expect_delay(event, delay, 0ms);
        shortest = std::min(shortest, delay);
    }
    EXPECT_THAT(shortest, LastsAtMost(poll_interval / 2)) << event;
}

/// A process with nodes of its own that waits for the resource, holds it for a while and releases it.
class WaitingProcess {
public:
    explicit WaitingProcess(const std::vector<std::string>& uris, Clock::duration holds = 0ms,
                            const LockOptions& options = fair())
        : child_{[&](auto report) {
              RedisNodes nodes{uris, timeouts()};
              Lock lock{nodes, the_resource, options};
              if (const auto result = lock.acquire_for(50s); !result) return report(result.message());
              report(std::to_string(now().time_since_epoch().count()));
              boot_clock().sleep_until(now() + holds, {});
              const auto ends = now();
              if (const auto result = lock.release(); !result) return report(result.message());
              report(std::to_string(ends.time_since_epoch().count()));
          }} {}

    /// When it had acquired the resource, and when it began to release it: waits for that.
    Clock::time_point held_at() { return held_at_ = held_at_ == Clock::time_point{} ? instant() : held_at_; }
    Clock::time_point released_at() {
        (void)held_at();
        return released_at_ = released_at_ == Clock::time_point{} ? instant() : released_at_;
    }

    void kill() { child_.kill(); }
    void freeze() { child_.freeze(); }
    void thaw() { child_.thaw(); }

private:
    /// The one that it reports, or the end of time and a failure.
    Clock::time_point instant() {
        const auto line = child_.receive();
        const bool number = !line.empty() && line.find_first_not_of("0123456789") == line.npos;
        EXPECT_TRUE(number) << line;
        return number ? Clock::time_point{Clock::duration{std::stoll(line)}} : Clock::time_point::max();
    }

    ForkedChild child_;
    Clock::time_point held_at_{};
    Clock::time_point released_at_{};
};

/// So many of them, that enter the queue one after the other.
class Waiters {
public:
    Waiters(const RedisServer& home, const std::vector<std::string>& uris, std::size_t count,
            Clock::duration holds = 0ms) {
        const auto before = queue_length(home);
        while (processes_.size() < count) {
            processes_.emplace_back(uris, holds);
            EXPECT_TRUE(queued(home, before + processes_.size()));
        }
    }

    WaitingProcess& operator[](std::size_t i) { return processes_.at(i); }
    auto begin() noexcept { return processes_.begin(); }
    auto end() noexcept { return processes_.end(); }

    /// The first of them to hold it, of those from `from` on.
    Clock::time_point first_held_at(std::size_t from = 0) {
        auto first = Clock::time_point::max();
        for (; from < processes_.size(); ++from) first = std::min(first, processes_[from].held_at());
        return first;
    }
    Clock::time_point last_held_at(std::size_t from = 0) {
        Clock::time_point last{};
        for (; from < processes_.size(); ++from) last = std::max(last, processes_[from].held_at());
        return last;
    }

    /// A waiter that gets no processor lets others pass: while it looks round it is not in the queue.
    bool delayed() const { return monitor_.delay() > 20ms; }

    /// Each began after the one before it had begun to release.
    void expect_order(std::size_t from = 0) {
        if (delayed()) return expect_one_at_a_time(from);
        for (auto i = from + 1; i < processes_.size(); ++i)
            EXPECT_GE(processes_[i].held_at(), processes_[i - 1].released_at()) << "waiter " << i;
    }
    /// In any order, but one at a time.
    void expect_one_at_a_time(std::size_t from = 0) {
        std::vector<WaitingProcess*> by_time;
        for (; from < processes_.size(); ++from) by_time.push_back(&processes_[from]);
        std::ranges::sort(by_time, {}, &WaitingProcess::held_at);
        for (std::size_t i = 1; i < by_time.size(); ++i)
            EXPECT_GE(by_time[i]->held_at(), by_time[i - 1]->released_at());
    }

private:
    SchedulingDelayMonitor monitor_{};
    std::deque<WaitingProcess> processes_{};
};

/// Five servers, and a holder of the resource.
struct Held : testing::Test {
    LiveWorld world{5, timeouts()};
    Lock holder = world.lock(fair());

    void SetUp() override {
        ASSERT_TRUE(world.warm_up());
        ASSERT_THAT(holder.acquire(), Succeeds());
        ASSERT_TRUE(wait_until([&] { return world.keys_of(holder.owner()) == 5; }));
    }

    Clock::time_point release() {
        const auto released = now();
        EXPECT_THAT(holder.release(), Succeeds());
        return released;
    }

    /// Three waiters are in the queue when the fault happens, and the holder releases. Expects that they hold
    /// the resource one at a time, the first and the last of them within these bounds.
    template <class Fault>
    void expect_delays(const std::string& event, Fault fault, Clock::duration first,
                       std::optional<Clock::duration> last = {}) {
        Waiters waiters{world[0], world.uris(), 3};
        fault();
        const auto released = release();
        expect_delay(event + (last ? ": the first" : ""), waiters.first_held_at() - released, first);
        if (last) expect_delay(event + ": all of 3", waiters.last_held_at() - released, *last);
        waiters.expect_one_at_a_time();
    }
};

}  // namespace redlock::test
