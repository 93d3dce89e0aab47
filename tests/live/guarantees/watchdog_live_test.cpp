// Rules C6, C10 and D9 against real servers, in real time, with the threads of a real Watchdog.
#include "watchdog_world.hpp"

#include <unistd.h>
#include "support/process_state.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace redlock::test::watchdog_live_test {
namespace {

// One node is frozen, and one is dead.
TEST(Watchdog, HoldsALockForManyTimesItsTtl) {
    LiveWorld world{5, {.node_timeout = 1200ms}};
    Watchdog watchdog;
    LossLog losses;
    auto options = watched_by(watchdog, 4s);
    options.on_lost = losses.callback();
    auto lock = world.lock(options);
    ASSERT_THAT(lock.acquire(), Succeeds());
    world[1].freeze();
    world[3].kill();
    const CommandMonitor monitor{world[0]};
    EXPECT_TRUE(wait_until([&] { return extensions(monitor) >= 8; }));
    EXPECT_TRUE(lock.valid());
    world[1].thaw();
    EXPECT_GE(world.keys_of(lock.owner()), 3U);
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(wait_until([&] { return world.clean(); }));
    EXPECT_THAT(losses.all(), IsEmpty());
}

// C10. Locks on other nodes are extended meanwhile, although a round here takes twice their ttl.
TEST(Watchdog, ExtendsLocksOnOtherNodesWhileAMajorityHangs) {
    LiveWorld world{5, {.node_timeout = 2s}};
    LiveWorld others{3, {.node_timeout = 300ms}};
    Watchdog watchdog;
    std::vector<Lock> hanging;
    for (int i = 0; i < 10; ++i) {
        hanging.push_back(world.lock("resource " + std::to_string(i), watched_by(watchdog, 4s)));
        ASSERT_THAT(hanging.back().acquire(), Succeeds());
    }
    for (const std::size_t node : {1U, 2U, 3U}) world[node].freeze();
    auto lock = others.lock(watched_by(watchdog, 1s));
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_TRUE(wait_until([&] {
        return std::ranges::all_of(hanging, [](const Lock& it) { return it.lost().stop_requested(); });
    }));
    EXPECT_TRUE(lock.valid());
    for (const std::size_t node : {1U, 2U, 3U}) world[node].thaw();
}

// C10, D9. Many threads acquire, query, extend and release with one watchdog, while a server is stopped and
// started.
TEST(Watchdog, ServesManyThreads) {
    LiveWorld world{3, short_timeout};
    Watchdog watchdog;
    std::atomic<int> holds = 0;
    {
        std::vector<std::jthread> threads;
        for (int thread = 0; thread < 8; ++thread)
            threads.emplace_back([&, thread] {
                auto options = watched_by(watchdog, 1s);
                std::atomic<int> losses = 0;
                options.on_lost = [&](const Result&) { ++losses; };
                for (int i = 0; i < 6; ++i) {
                    auto lock = world.lock("resource " + std::to_string(thread), options);
                    if (!lock.acquire_for(5s)) continue;
                    const auto end = boot_clock().now() + 400ms;
                    while (boot_clock().now() < end && lock.valid()) std::this_thread::sleep_for(1ms);
                    if (i % 2 == 0) (void)lock.extend();
                    if (lock.release()) ++holds;
                }
            });
        world[2].kill();
        EXPECT_TRUE(wait_until([&] { return holds >= 8; }));
        world[2].restart_empty();
    }
    EXPECT_GE(holds, 40);
}

// ---- Its thread

std::set<pid_t> threads() {
    // A sanitizer starts a thread of its own with the first thread. A joined thread is listed for a moment
    // longer.
    pid_t joined = 0;
    std::thread{[&] { joined = ::gettid(); }}.join();
    EXPECT_TRUE(wait_until([&] { return !support::threads().contains(joined); }));
    return support::threads();
}

// C10, E. There is one thread for all locks on the same nodes, from construction to destruction. While locks
// on other nodes are held, there is one more thread. It is reused for further nodes when those locks are
// released.
TEST(Watchdog, HasOneThreadForEachNodesObject) {
    LiveWorld world{3, short_timeout};
    LiveWorld others{1, short_timeout};
    ASSERT_TRUE(world.warm_up() && others.warm_up());
    const auto before = threads().size();
    {
        Watchdog watchdog;
        EXPECT_EQ(threads().size(), before + 1);
        std::vector<Lock> locks;
        for (int i = 0; i < 50; ++i) {
            locks.push_back(world.lock("resource " + std::to_string(i), watched_by(watchdog, 600ms)));
            ASSERT_THAT(locks.back().acquire(), Succeeds());
        }
        const CommandMonitor monitor{world[0]};
        EXPECT_TRUE(wait_until([&] { return extensions(monitor) >= 100; }));
        EXPECT_EQ(threads().size(), before + 1);

        auto other = others.lock(watched_by(watchdog));
        ASSERT_THAT(other.acquire(), Succeeds());
        EXPECT_EQ(threads().size(), before + 2);
        EXPECT_THAT(other.release(), Succeeds());
        for (int i = 0; i < 20; ++i) {  // the previous thread may still finish its turn
            RedisNodes more{others.uris(), short_timeout};
            Lock another{more, the_resource, watched_by(watchdog)};
            ASSERT_THAT(another.acquire(), Succeeds());
        }
        EXPECT_LE(threads().size(), before + 4);
    }
    EXPECT_TRUE(wait_until([&] { return threads().size() == before; }));
}

// The program's signal handlers must not run in a thread of the library.
TEST(Watchdog, BlocksAllSignalsInItsThread) {
    const auto before = threads();
    Watchdog watchdog;
    auto after = threads();
    std::erase_if(after, [&](const pid_t thread) { return before.contains(thread); });
    ASSERT_THAT(after, SizeIs(1));
    const auto blocked = support::blocked_signals(*after.begin());
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1, SIGALRM, SIGPIPE})
        EXPECT_TRUE((blocked >> (signal - 1) & 1U) != 0) << signal;
}

}  // namespace
}  // namespace redlock::test::watchdog_live_test
