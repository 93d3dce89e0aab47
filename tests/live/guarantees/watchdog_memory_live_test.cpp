// Rule C6 if memory runs out in one thread only, for a quarter of a second: in the watchdog's thread, or in
// the thread that releases. The process continues, and the lock is extended later, or its loss is reported.
// This program replaces operator new by an operator that fails in a selected thread.
#include "watchdog_world.hpp"

#include "support/process_state.hpp"
#include "support/replaced_new.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <new>
#include <set>

namespace {

std::atomic<pid_t> starved_thread = 0;  // 0: none
std::atomic<int> failed_allocations = 0;

pid_t this_thread_id() {
    return static_cast<pid_t>(::syscall(SYS_gettid));
}

}  // namespace

void redlock::support::before_allocation() {
    if (starved_thread == 0 || starved_thread != this_thread_id()) return;
    ++failed_allocations;
    throw std::bad_alloc{};
}

namespace redlock::test::watchdog_memory_live_test {
namespace {

constexpr auto shortage = 250ms;

/// Lets every allocation of a thread fail as long as the object lives.
class Starved : detail::NotCopied {
public:
    explicit Starved(pid_t thread) {
        failed_allocations = 0;
        starved_thread = thread;
    }
    ~Starved() { starved_thread = 0; }

    bool for_long_enough() const { return boot_clock().now() - start_ >= shortage; }

private:
    const Clock::time_point start_ = boot_clock().now();
};

using support::threads;

struct WatchdogWithoutMemory : testing::Test {
    /// Returns the id of the watchdog's thread, the only one that was started since.
    pid_t watchdog_thread() const {
        auto ids = threads();
        for (const auto id : threads_before) ids.erase(id);
        return ids.size() == 1 ? *ids.begin() : 0;
    }
    LockOptions watched(milliseconds ttl) {
        auto options = watched_by(watchdog, ttl);
        options.on_lost = [this](const Result&) { ++losses; };
        return options;
    }
    /// Waits until the lock has more time left than a moment ago.
    static bool is_extended(const Lock& lock) {
        auto least = lock.remaining();
        return wait_until([&] {
            const auto now = lock.remaining();
            least = std::min(least, now);
            return now > least;
        });
    }

    LiveWorld world{3, short_timeout};
    const std::set<pid_t> threads_before = threads();
    Watchdog watchdog;
    std::atomic<int> losses = 0;
};

// A lock that is due earlier wakes the watchdog, which needs memory before it sleeps again.
TEST_F(WatchdogWithoutMemory, ContinuesIfMemoryRunsOutBeforeItSleeps) {
    auto lock = world.lock(watched(6s));
    auto due_earlier = world.lock("due earlier", watched(5s));
    ASSERT_THAT(lock.acquire(), Succeeds());
    ASSERT_NE(watchdog_thread(), 0);
    {
        const Starved starved{watchdog_thread()};
        ASSERT_THAT(due_earlier.acquire(), Succeeds());
        EXPECT_TRUE(wait_until([&] { return failed_allocations > 0 && starved.for_long_enough(); }));
    }
    EXPECT_TRUE(is_extended(due_earlier));
    EXPECT_TRUE(is_extended(lock));
    EXPECT_EQ(losses, 0);
}

TEST_F(WatchdogWithoutMemory, ReportsTheLossIfItCannotExtendInTime) {
    auto lock = world.lock(watched(1500ms));
    ASSERT_THAT(lock.acquire(), Succeeds());
    {
        const Starved starved{watchdog_thread()};
        EXPECT_TRUE(wait_until([&] { return losses == 1; }));
        EXPECT_FALSE(lock.valid());
    }
    EXPECT_GT(failed_allocations, 0);
    EXPECT_TRUE(lock.lost().stop_requested());
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_TRUE(is_extended(lock));
}

// A release() waits for the extension that is under way, in a function that must not throw.
TEST(ReleaseWithoutMemory, WaitsForTheExtensionUnderWay) {
    SlowToExtend nodes;
    Watchdog watchdog;
    Lock lock{nodes, the_resource, watched_by(watchdog, 300ms)};
    ASSERT_THAT(lock.acquire(), Succeeds());
    nodes.asked.get_future().wait();
    const auto release = [&] {
        const Starved starved{this_thread_id()};
        return lock.release();
    };
    auto released = std::async(std::launch::async, release);
    EXPECT_EQ(released.wait_for(shortage), std::future_status::timeout);
    nodes.end.set_value();
    ASSERT_EQ(released.wait_for(20s), std::future_status::ready);
    (void)released.get();
    EXPECT_FALSE(lock.valid());
}

// The first operations open the connections, and get memory for texts that is used again.
TEST(ALockOverOpenConnections, AllocatesNoMemory) {
    LiveWorld world{3, short_timeout};
    auto lock = world.lock({.ttl = 10s});
    const auto works = [&] { return lock.acquire() && lock.extend() && lock.release(); };
    EXPECT_TRUE(wait_until([&] {
        lock.unlock();
        if (!works()) return false;
        const Starved starved{this_thread_id()};
        return works() && failed_allocations == 0;
    }));
}

}  // namespace
}  // namespace redlock::test::watchdog_memory_live_test
