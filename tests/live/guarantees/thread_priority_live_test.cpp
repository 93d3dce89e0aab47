// Threads of low priority. If threads share connections, one of them makes the rounds of all. On busy
// processors, a thread of low priority may then get no processor for seconds.
#include "live/live_world.hpp"
#include "live/scheduling_delay.hpp"

#if defined(__linux__)

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace redlock::test::thread_priority_live_test {
namespace {

constexpr auto node_timeout = 75ms;

/// Threads that keep all processors busy.
class Busy {
public:
    Busy() {
        for (unsigned i = 0; i < 2 * std::max(std::thread::hardware_concurrency(), 1U); ++i)
            threads_.emplace_back([](const std::stop_token& stop) {
                while (!stop.stop_requested()) continue;
            });
    }

private:
    std::vector<std::jthread> threads_{};
};

/// Threads that acquire and release, among them some of low priority.
class Workers {
public:
    static constexpr int count = 8;
    static constexpr int low = 2;

    explicit Workers(RedisNodes& nodes) : nodes_(nodes) {
        for (int i = 0; i < count; ++i)
            threads_.emplace_back([this, i](const std::stop_token& stop) { work(stop, i); });
    }

    /// Ends the threads, and returns how long a call of a thread of normal priority took at most. The time
    /// for which the thread itself waited for a processor is not included.
    Clock::duration longest() {
        for (auto& thread : threads_) thread.request_stop();
        threads_.clear();
        return Clock::duration{longest_.load()};
    }

private:
    void work(const std::stop_token& stop, int number) {
        const sched_param none{};
        const bool is_low = number < low && ::sched_setscheduler(0, SCHED_IDLE, &none) == 0;
        Lock lock{nodes_, "worker " + std::to_string(number)};
        while (!stop.stop_requested()) {
            const auto waited = processor_wait(::gettid());
            auto took = time_taken([&] { (void)lock.try_acquire(); });
            took -= processor_wait(::gettid()) - waited;
            if (!is_low && took.count() > longest_) longest_ = took.count();
            lock.unlock();
        }
    }

    RedisNodes& nodes_;
    std::atomic<Clock::rep> longest_{0};
    std::vector<std::jthread> threads_{};
};

struct ThreadsOfLowPriority : testing::Test {
    LiveWorld world{3, {.node_timeout = node_timeout, .round = Round::all_at_once}};
    const Busy busy{};
};

// A9. An attempt has a round that sets the key, and one that deletes it. Now and then, a thread of low
// priority loses its processor while it holds a mutex for a moment, so one calm span of several is enough.
TEST_F(ThreadsOfLowPriority, DelayNoCallOfAnotherThread) {
    ASSERT_TRUE(world.warm_up());
    Clock::duration longest = 1h;
    constexpr auto bound = 2 * node_timeout + 100ms;
    for (int i = 0; i < 5 && longest > bound; ++i) {
        Workers workers{world.nodes};
        std::this_thread::sleep_for(3s);
        longest = workers.longest();
    }
    EXPECT_THAT(longest, LastsAtMost(bound));
    EXPECT_TRUE(wait_until([&] { return world.clean(); }));
}

// C6. The watchdog makes its rounds itself.
TEST_F(ThreadsOfLowPriority, DelayNoReportOfALoss) {
    ASSERT_TRUE(world.warm_up());
    Watchdog watchdog;
    std::atomic<Clock::rep> late{0};
    Workers workers{world.nodes};
    constexpr auto ttl = 600ms;
    std::atomic<Clock::time_point> valid_until{};
    std::atomic<int> losses{0};
    Lock lock{world.nodes, "watched", {.ttl = ttl, .watchdog = &watchdog, .on_lost = [&](const Result&) {
                                           const auto by = boot_clock().now() - valid_until.load();
                                           if (by.count() > late) late = by.count();
                                           ++losses;
                                       }}};
    const auto end = boot_clock().now() + 8s;
    while (boot_clock().now() < end) {
        if (lock.valid()) {
            valid_until = boot_clock().now() + lock.remaining();
        } else {
            (void)lock.release();
            (void)lock.try_acquire();
        }
        std::this_thread::sleep_for(1ms);
    }
    workers.longest();
    EXPECT_THAT(Clock::duration{late.load()}, LastsAtMost(50ms)) << losses << " losses";
}

}  // namespace
}  // namespace redlock::test::thread_priority_live_test

#endif
