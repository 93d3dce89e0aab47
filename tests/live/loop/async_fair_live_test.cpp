// LockOptions::fair in a poll() loop, against real servers: the waiters of a loop queue in the order of their
// age, also among processes, and share one connection to their home node.
#include "live/waiting/waiting_world.hpp"
#include "poll_loop.hpp"
#include "support/process_state.hpp"

#include <redlock/async_lock.hpp>

#include <cstdlib>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace redlock::test::async_fair_live_test {
namespace {

using std::chrono::seconds;
using support::heap;

/// The locks that have a turn in the queue of the home node (LocalQueues::with_turn).
constexpr std::size_t with_turn = 4;

/// A lock of the loop that waits. When it has got the resource, it releases it at once.
struct LoopWaiting {
    LoopWaiting(AsyncNodes& of_loop, std::vector<std::string>& log, std::string its_name,
                Clock::duration limit)
        : name(std::move(its_name)), lock(of_loop, the_resource, fair()) {
        lock.acquire_for(limit, [this, &log](Result it) {
            ended_at = now();
            result = std::move(it);
            if (!*result) return;
            log.push_back(name);
            lock.release([this](Result released) { is_released = static_cast<bool>(released); });
        });
    }
    LoopWaiting(const LoopWaiting&) = delete;
    LoopWaiting& operator=(const LoopWaiting&) = delete;

    const std::string name;
    AsyncLock lock;
    std::optional<Result> result{};
    Clock::time_point ended_at{};
    bool is_released = false;
};

struct FairInALoop : Held {
    PollLoop loop{};
    AsyncNodes of_loop{world.nodes, loop};
    std::vector<std::string> log{};
    std::deque<LoopWaiting> waiting{};

    void hold() {
        if (holder.valid()) return;
        EXPECT_THAT(holder.acquire(), Succeeds());
    }

    LoopWaiting& wait(Clock::duration limit = 50s) {
        return waiting.emplace_back(of_loop, log, std::to_string(waiting.size()), limit);
    }

    /// Runs the loop until this is true. Returns false after 50 s.
    template <class Condition>
    bool run_until(Condition condition) {
        const auto end = now() + 50s;
        while (!condition() && now() < end) {
            // A loop that has nothing to do must not stop the test of what others do.
            if (!loop.run_once()) boot_clock().sleep_until(now() + 1ms, {});
        }
        return condition();
    }
    bool queue(std::size_t count) {
        return run_until([&] { return queue_length(world[0]) == count; });
    }
    bool all_released() {
        return run_until([&] { return std::ranges::all_of(waiting, &LoopWaiting::is_released); });
    }
    /// Returns true if no running server has a queue or a key of the resource. (The signs of life of the
    /// waiters expire later.)
    bool clean() {
        return run_until([&] {
            return std::ranges::all_of(world, [](auto& server) {
                return !server.running() || server.command({"EXISTS", the_queue, the_resource}) == "0";
            });
        });
    }
};

TEST_F(FairInALoop, IsWokenByTheRelease) {
    expect_no_sleep("a release wakes a waiter of a loop", [&] {
        hold();
        auto& waiter = wait();
        EXPECT_TRUE(queue(1));
        const auto released = now();
        EXPECT_THAT(holder.release(), Succeeds());
        EXPECT_TRUE(all_released());
        EXPECT_TRUE(waiter.result->place()) << "it knows its place";
        return waiter.ended_at - released;
    });
    EXPECT_TRUE(clean());
}

TEST_F(FairInALoop, KeepsTheOrderAmongProcesses) {
    std::deque<WaitingProcess> processes;
    for (std::size_t i = 0; i < 6; ++i) {
        if (i % 2 == 0)
            wait();
        else
            processes.emplace_back(world.uris(), 5ms);
        ASSERT_TRUE(queue(i + 1));
    }
    const SchedulingDelayMonitor monitor;
    const auto before = processor_wait(world);
    EXPECT_THAT(holder.release(), Succeeds());
    ASSERT_TRUE(all_released());
    for (auto& process : processes) {
        const auto held = process.held_at(), released = process.released_at();
        for (const auto& waiter : waiting)
            EXPECT_FALSE(held < waiter.ended_at && waiter.ended_at < released) << "two holders";
    }
    EXPECT_TRUE(clean());
    // The attempt of a woken waiter can fail if a server has not executed the release yet.
    if (monitor.delay() + processor_wait(world) - before > 20ms) return;
    EXPECT_EQ(log, (std::vector<std::string>{"0", "1", "2"}));
    for (std::size_t i = 0; i < processes.size(); ++i) {
        EXPECT_GE(processes[i].held_at(), waiting[i].ended_at);
        if (i + 1 == waiting.size()) break;
        EXPECT_GE(waiting[i + 1].ended_at, processes[i].released_at());
    }
}

/// The limit is for everything that the library allocates for a waiter: its lock, its operation and its place
/// in the queue.
TEST_F(FairInALoop, NeedsAtMostEightKiBForEachWaiter) {
    constexpr std::size_t waiters = 1000;
    constexpr std::size_t limit = 8 * 1024;
    wait();
    ASSERT_TRUE(queue(1)) << "all connections and buffers exist";
    std::vector<AsyncLock> locks;
    locks.reserve(waiters);
    std::size_t ended = 0;
    const auto before = heap();
    for (std::size_t i = 0; i < waiters; ++i)
        locks.emplace_back(of_loop, the_resource, fair()).acquire_for(50s, [&](const Result&) { ++ended; });
    std::size_t each = 0;
    const auto measure = [&] { return (each = (heap() - before) / waiters) <= limit; };
    ASSERT_TRUE(queue(with_turn));
    EXPECT_TRUE(run_until(measure)) << each << " bytes";
    RecordProperty("bytes", std::to_string(each));
    EXPECT_EQ(ended, 0U) << "all are waiting";
    for (auto& lock : locks) lock.cancel();
    EXPECT_TRUE(run_until([&] { return ended == waiters; }));
}

/// Thousands of waiters in one queue: they have one connection to their home node, and ask together no more
/// often than a few. REDLOCK_LOOP_WAITERS sets their number.
TEST_F(FairInALoop, ThousandsOfWaitersAskNoMoreOftenThanAFew) {
    const auto* const wanted = std::getenv("REDLOCK_LOOP_WAITERS");
    const auto count = wanted ? std::stoul(wanted) : 1000U;
    const auto clients = std::stoul(world[0].info("clients", "connected_clients"));
    constexpr std::size_t groups = 10;
    for (std::size_t group = 0; group < groups; ++group) {
        for (std::size_t i = 0; i < count / groups; ++i) wait(550s);
        const auto next = now() + 200ms;
        ASSERT_TRUE(run_until([&] { return now() >= next; }));
    }
    ASSERT_TRUE(queue(with_turn));
    const auto scripts = [&] { return calls(world[0], "eval") + calls(world[0], "evalsha"); };
    const auto before = scripts();
    const auto begun = now();
    const auto measured = seconds{14};  // attempts without a turn begin after seven
    EXPECT_TRUE(run_until([&] { return now() >= begun + measured; }));
    const auto asked = scripts() - before;
    const auto more_clients = std::stoul(world[0].info("clients", "connected_clients")) - clients;
    std::cout << "waiters | " << count << " | scripts a second | "
              << asked / static_cast<std::size_t>(measured.count()) << " | connections to the home node | "
              << more_clients << '\n';
    EXPECT_LE(asked, 100U * static_cast<std::size_t>(measured.count()));
    EXPECT_EQ(listeners(world[0]), 1);
    EXPECT_EQ(queue_length(world[0]), with_turn);
    const auto released = now();
    EXPECT_THAT(holder.release(), Succeeds());
    const auto end = now() + 500s;
    while (log.size() < count && now() < end) (void)loop.run_once();
    std::cout << "waiters | " << count << " | served in ms | " << (now() - released) / 1ms << '\n';
    std::vector<std::size_t> groups_served;
    for (const auto& name : log) groups_served.push_back(std::stoul(name) / (count / groups));
    EXPECT_EQ(log.size(), count);
    std::size_t overtaken = 0;  // by a waiter that made an attempt without a turn
    for (std::size_t i = 1; i < groups_served.size(); ++i)
        overtaken += groups_served[i] < groups_served[i - 1] ? 1U : 0U;
    std::cout << "waiters | " << count << " | overtaken " << overtaken << '\n';
    EXPECT_LE(overtaken, count / 20);
    EXPECT_TRUE(clean());
}

}  // namespace
}  // namespace redlock::test::async_fair_live_test
