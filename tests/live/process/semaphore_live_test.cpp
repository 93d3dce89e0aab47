// A hundred threads take turns, twenty times each, for three slots. In addition, two thousand threads wait at
// the same time.
#include "support/process_state.hpp"

#include "live/live_world.hpp"
#include "support/in_threads.hpp"

#include <redlock/semaphore.hpp>

#include <atomic>
#include <thread>

#if defined(__has_feature)  // clang
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REDLOCK_SANITIZED
#endif
#endif

namespace redlock::test::semaphore_live_test {
namespace {

using support::heap;

constexpr std::size_t slots = 3;
constexpr std::size_t threads = 100;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(REDLOCK_SANITIZED)
constexpr std::size_t waiters = 200;  // their stacks cost megabytes each there
#else
constexpr std::size_t waiters = 2000;
#endif
constexpr std::size_t idle_connections = 8;
constexpr std::size_t bytes_a_connection = 20U * 1024U;
// A shared connection keeps the memory for the largest number of commands that were pending on it at once. An
// entry and its texts take about 300 bytes, and the array of the entries doubles when it is full.
constexpr std::size_t bytes_a_pending_command = 512;

class SemaphoreOfThree : public InEachRound {
protected:
    Semaphore semaphore(std::chrono::milliseconds delay = 300ms) {
        return {nodes, "jobs", slots, {.ttl = 1min, .retry = {.delay = delay}}};
    }

    /// All slots are held when the threads start. Each thread acquires a slot this number of times.
    void hold_in_turns(std::size_t count, int times, std::chrono::milliseconds delay = 300ms) {
        std::vector<Semaphore> first;
        for (std::size_t i = 0; i < slots; ++i) {
            ASSERT_THAT(first.emplace_back(semaphore()).acquire_for(40s), Succeeds());
            ++holders;
        }
        std::jthread releases{[&] {
            std::this_thread::sleep_for(200ms);
            holders -= slots;
            for (auto& it : first) (void)it.release();
        }};
        in_threads(count, [&](std::size_t) {
            for (int time = 0; time < times; ++time) {
                auto mine = semaphore(delay);
                ASSERT_THAT(mine.acquire_for(100s), Succeeds());
                const auto now = ++holders;
                auto before = most.load();
                while (now > before && !most.compare_exchange_weak(before, now)) {
                }
                std::this_thread::sleep_for(1ms);
                --holders;
                (void)mine.release();
                ++served;
            }
        });
    }

    Cluster servers{3};
    RedisNodes nodes{servers.uris(), {.node_timeout = 2s, .round = GetParam(), .max_idle = idle_connections}};
    std::atomic<std::size_t> holders = 0;
    std::atomic<std::size_t> most = 0;
    std::atomic<std::size_t> served = 0;
};

INSTANTIATE_TEST_SUITE_P(EachRound, SemaphoreOfThree, each_round(), by_round);

TEST_P(SemaphoreOfThree, HasThreeHoldersAndConstantMemoryWithAHundredThreads) {
    hold_in_turns(threads, 4);
    const auto before = heap();
    hold_in_turns(threads, 16);
    EXPECT_EQ(served, 20 * threads);
    EXPECT_EQ(most, slots);
    EXPECT_LE(heap(), before + 64U * 1024U + servers.size() * idle_connections * bytes_a_connection);
    for (auto& server : servers) EXPECT_EQ(server.command({"DBSIZE"}), "0");
}

TEST_P(SemaphoreOfThree, HasThreeHoldersWhileThousandsOfThreadsWait) {
    hold_in_turns(threads, 1);
    const auto before = heap();
    hold_in_turns(waiters, 1, 3s);
    EXPECT_EQ(served, threads + waiters);
    EXPECT_EQ(most, slots);
    EXPECT_LE(heap(), before + 64U * 1024U + servers.size() * idle_connections * bytes_a_connection +
                          servers.size() * waiters * bytes_a_pending_command);
}

}  // namespace
}  // namespace redlock::test::semaphore_live_test
