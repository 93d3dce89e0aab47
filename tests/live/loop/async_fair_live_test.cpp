// LockOptions::fair in a poll() loop, against real servers: the waiters of a loop queue in the order of their
// age, also among processes, and share one connection to their home node.
#include "live/process/process_state.hpp"
#include "live/waiting/waiting_world.hpp"
#include "poll_loop.hpp"

#include <redlock/async_lock.hpp>

#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace redlock::test {
namespace {

using std::chrono::seconds;

/// The locks that have a turn in the queue of the home node (LocalQueues::with_turn).
constexpr std::size_t with_turn = 4;

/// A lock of the loop that waits. When it has got the resource, it releases it at once.
struct LoopWaiting {
    LoopWaiting(AsyncNodes& of_loop, std::vector<std::string>& log, std::string its_name,
                const std::string& resource = the_resource, Clock::duration limit = 50s)
        : name(std::move(its_name)), lock(std::make_unique<AsyncLock>(of_loop, resource, fair())) {
        lock->acquire_for(limit, [this, &log](Result it) {
            ended_at = now();
            result = std::move(it);
            if (!*result) return;
            log.push_back(name);
            lock->release([this](Result released) { is_released = static_cast<bool>(released); });
        });
    }
    LoopWaiting(const LoopWaiting&) = delete;
    LoopWaiting& operator=(const LoopWaiting&) = delete;

    const std::string name;
    std::unique_ptr<AsyncLock> lock;
    std::optional<Result> result{};
    Clock::time_point ended_at{};
    bool is_released = false;
};

struct FairInALoop : testing::Test {
    LiveWorld world{5, timeouts()};
    Lock holder = world.lock(fair());
    PollLoop loop{};
    AsyncNodes of_loop{world.nodes, loop};
    std::vector<std::string> log{};
    std::deque<LoopWaiting> waiting{};

    void SetUp() override {
        ASSERT_TRUE(world.warm_up());
        ASSERT_THAT(holder.acquire(), Succeeds());
    }

    void hold() {
        if (holder.valid()) return;
        EXPECT_THAT(holder.acquire(), Succeeds());
    }

    LoopWaiting& wait(const std::string& resource = the_resource, Clock::duration limit = 50s) {
        return waiting.emplace_back(of_loop, log, std::to_string(waiting.size()), resource, limit);
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
    /// Lets the first waiters enter the queue one after the other, and the others wait in the loop. Their
    /// ages differ by `gap`.
    void wait_many(std::size_t count, Clock::duration gap = 20ms) {
        for (std::size_t i = 0; i < count; ++i) {
            wait();
            ASSERT_TRUE(queue(std::min(waiting.size(), with_turn))) << queue_length(world[0]);
            const auto next = now() + gap;  // the ages of two waiters are compared to a round trip
            ASSERT_TRUE(run_until([&] { return now() >= next; }));
        }
    }
    std::vector<std::string> names(std::size_t count, std::size_t from = 0) {
        std::vector<std::string> result;
        for (; from < count; ++from) result.push_back(std::to_string(from));
        return result;
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
    std::string ticket(std::size_t place) {
        const auto number = std::to_string(place);
        const auto list = world[0].command({"ZRANGE", the_queue, number, number});
        const auto from = list.find("redlock:wake:");
        return from == list.npos
                   ? list
                   : list.substr(from, list.find_first_not_of("0123456789abcdef|", from + 13) - from);
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
    EXPECT_EQ(log, names(3));
    for (std::size_t i = 0; i < processes.size(); ++i) {
        EXPECT_GE(processes[i].held_at(), waiting[i].ended_at);
        if (i + 1 == waiting.size()) break;
        EXPECT_GE(waiting[i + 1].ended_at, processes[i].released_at());
    }
}

TEST_F(FairInALoop, ManyWaitersShareAConnectionAndKeepTheirOrder) {
    wait_many(20);
    EXPECT_EQ(listeners(world[0]), 1);
    EXPECT_EQ(queue_length(world[0]), with_turn);
    EXPECT_THAT(holder.release(), Succeeds());
    ASSERT_TRUE(all_released());
    EXPECT_EQ(log, names(20));
    EXPECT_TRUE(clean());
}

TEST_F(FairInALoop, AMessageFindsItsWaiter) {
    std::deque<Lock> holders;
    for (int i = 0; i < 5; ++i) {
        const auto resource = "other:" + std::to_string(i);
        ASSERT_THAT(holders.emplace_back(world.lock(resource, fair())).acquire(), Succeeds());
        wait(resource);
        ASSERT_TRUE(run_until([&] {
            return world[0].command({"ZCARD", "{" + resource + "}:queue"}) == "1";
        }));
    }
    EXPECT_EQ(listeners(world[0]), 1);
    std::size_t next = 5;
    expect_no_sleep("the message finds its waiter", [&] {
        const auto released = now();
        EXPECT_THAT(holders[--next].release(), Succeeds());
        EXPECT_TRUE(run_until([&] { return waiting[next].is_released; }));
        return waiting[next].ended_at - released;
    });
}

TEST_F(FairInALoop, ACancelledWaiterLeavesTheQueue) {
    wait_many(6);
    for (const std::size_t i : {5U, 0U, 2U}) {
        waiting[i].lock->cancel();
        ASSERT_TRUE(run_until([&] { return waiting[i].result.has_value(); }));
        EXPECT_EQ(waiting[i].result->error(), Errc::cancelled);
        EXPECT_TRUE(waiting[i].result->place());
    }
    EXPECT_TRUE(queue(3));
    EXPECT_THAT(holder.release(), Succeeds());
    EXPECT_TRUE(run_until([&] { return waiting[4].is_released; }));
    EXPECT_EQ(log, (std::vector<std::string>{"1", "3", "4"}));
    EXPECT_TRUE(clean());
}

TEST_F(FairInALoop, AWokenWaiterThatIsCancelledPassesTheWakeUpOn) {
    expect_no_sleep("the woken waiter is cancelled", [&] {
        hold();
        auto& first = wait();
        EXPECT_TRUE(queue(1));
        auto& second = wait();
        EXPECT_TRUE(queue(2));
        const auto released = now();
        EXPECT_THAT(holder.release(), Succeeds());  // the loop does not run, so the message is not read
        first.lock->cancel();
        EXPECT_TRUE(run_until([&] { return first.result && second.is_released; }));
        EXPECT_EQ(first.result->error(), Errc::cancelled);
        return second.ended_at - released;
    });
    EXPECT_TRUE(clean());
}

TEST_F(FairInALoop, ADestroyedWaiterPassesTheWakeUpOn) {
    wait_many(6);
    waiting[5].lock.reset();
    waiting[2].lock.reset();
    EXPECT_TRUE(run_until([&] { return waiting[5].result && waiting[2].result; }));
    EXPECT_TRUE(queue(4));
    EXPECT_THAT(holder.release(), Succeeds());
    const auto released = now();
    waiting[0].lock.reset();
    EXPECT_TRUE(run_until([&] { return waiting[4].is_released; }));
    expect_delay("the woken waiter is destroyed", waiting[4].ended_at - released, 0ms);
    EXPECT_EQ(log, (std::vector<std::string>{"1", "3", "4"}));
    EXPECT_TRUE(clean());
}

/// A ticket can stay in the queue if its withdrawal is lost. Its waiter is gone, but the channel of the loop
/// has a subscriber. Without the withdrawal the resource would stay reserved for two node_timeouts.
TEST_F(FairInALoop, AMessageForAWaiterThatIsGoneIsGivenBack) {
    expect_no_sleep("a message for a waiter that is gone", [&] {
        hold();
        auto& gone = wait();
        EXPECT_TRUE(queue(1));
        auto& next = wait();
        EXPECT_TRUE(queue(2));
        const auto stays = ticket(0);
        gone.lock->cancel();
        EXPECT_TRUE(run_until([&] { return gone.result.has_value() && queue_length(world[0]) == 1; }));
        EXPECT_EQ(world[0].command({"ZADD", the_queue, "0", stays}), "1");
        const auto released = now();
        EXPECT_THAT(holder.release(), Succeeds());
        EXPECT_TRUE(run_until([&] { return next.is_released; }));
        return next.ended_at - released;
    });
    EXPECT_TRUE(clean());
}

TEST_F(FairInALoop, SurvivesForeignMessages) {
    wait_many(2);
    const auto channel = ticket(0).substr(0, ticket(0).find('|'));
    // In one command, because the loop does not run meanwhile.
    constexpr auto publish =
        "for i = 1, 1000 do redis.call('PUBLISH', ARGV[1], ARGV[1] .. '|999999') end return 1";
    EXPECT_EQ(world[0].command({"EVAL", publish, "0", channel}), "1");
    EXPECT_THAT(holder.release(), Succeeds());
    ASSERT_TRUE(all_released());
    EXPECT_EQ(log, names(2));
}

TEST_F(FairInALoop, ACutConnectionCostsNoPlace) {
    wait_many(6);
    boot_clock().sleep_until(now() + poll_interval, {});
    const auto before = ticket(0);
    EXPECT_NE(world[0].command({"CLIENT", "KILL", "TYPE", "pubsub"}), "0");
    ASSERT_TRUE(
        run_until([&] { return ticket(3) != "" && ticket(0) != before && queue_length(world[0]) == 4; }));
    EXPECT_EQ(listeners(world[0]), 1);
    EXPECT_THAT(holder.release(), Succeeds());
    ASSERT_TRUE(all_released());
    EXPECT_EQ(log, names(6));
    EXPECT_TRUE(clean());
}

TEST_F(FairInALoop, TheNextNodeIsTheHomeNodeIfItDies) {
    constexpr auto gap = poll_interval;
    wait_many(6, gap);
    world[0].kill();
    const SchedulingDelayMonitor monitor;
    const auto before = processor_wait(world);
    ASSERT_TRUE(run_until([&] { return queue_length(world[1]) == with_turn; }));
    EXPECT_EQ(listeners(world[1]), 1);
    (void)holder.release();
    ASSERT_TRUE(all_released());
    // The ages of waiters that come to another node are only as exact as a round trip.
    if (monitor.delay() + processor_wait(world) - before > gap) std::ranges::sort(log);
    EXPECT_EQ(log, names(6));
    EXPECT_TRUE(clean());
}

TEST_F(FairInALoop, TheNextNodeIsTheHomeNodeIfItIsFrozen) {
    wait_many(6);
    world[0].freeze();
    ASSERT_TRUE(run_until([&] { return queue_length(world[1]) == with_turn; }));
    (void)holder.release();
    ASSERT_TRUE(all_released());
    world[0].thaw();
    EXPECT_EQ(log.size(), 6U);
    EXPECT_TRUE(clean()) << "the home node has got the withdrawals";
}

TEST_F(FairInALoop, TheShutdownLeavesNoTicketAndNoReservation) {
    for (int steps = 0; steps < 14; ++steps) {
        hold();
        PollLoop other_loop;
        auto of_other = std::make_unique<AsyncNodes>(world.nodes, other_loop);
        std::vector<std::string> nothing;
        std::deque<LoopWaiting> others;
        for (int i = 0; i < 6; ++i) others.emplace_back(*of_other, nothing, "other");
        for (int i = 0; i < steps; ++i) (void)other_loop.run_once();
        // In the second half, the first waiter is woken, and does not know it yet.
        if (steps >= 7) (void)holder.release();
        of_other.reset();
        EXPECT_FALSE(other_loop.run_once()) << "after " << steps << " steps";
        EXPECT_TRUE(wait_until([&] {
            return queue_length(world[0]) == 0 && !test::holder(world[0]).starts_with("redlock:wake:");
        })) << "after "
            << steps << " steps";
        EXPECT_TRUE(wait_until([&] { return listeners(world[0]) == 0; }));
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

TEST_F(FairInALoop, HasNothingToWaitForWhenItIsIdle) {
    wait();
    ASSERT_TRUE(queue(1));
    EXPECT_THAT(holder.release(), Succeeds());
    ASSERT_TRUE(all_released());
    EXPECT_FALSE(loop.run_once());
}

/// Thousands of waiters in one queue: they have one connection to their home node, and ask together no more
/// often than a few. REDLOCK_LOOP_WAITERS sets their number.
TEST_F(FairInALoop, ThousandsOfWaitersAskNoMoreOftenThanAFew) {
    const auto* const wanted = std::getenv("REDLOCK_LOOP_WAITERS");
    const auto count = wanted ? std::stoul(wanted) : 1000U;
    const auto clients = std::stoul(world[0].info("clients", "connected_clients"));
    constexpr std::size_t groups = 10;
    for (std::size_t group = 0; group < groups; ++group) {
        for (std::size_t i = 0; i < count / groups; ++i) wait(the_resource, 550s);
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
}  // namespace redlock::test
