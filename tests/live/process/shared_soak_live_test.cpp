// Rule E for threads and operations of a loop that share connections: failed rounds leave memory, descriptors
// and threads unchanged, while a minority of the nodes fails again and again.
#include "support/process_state.hpp"

#include "live/live_world.hpp"
#include "live/loop/loop_client.hpp"
#include "support/in_threads.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace redlock::test::shared_soak_live_test {
namespace {

using support::Footprint;

std::string own_resource(std::size_t number) {
    return "orders:" + std::to_string(number);
}

class SharedSoak : public InEachRound {
protected:
    /// Injects the next fault. At most two nodes of five fail at a time.
    void inject_fault() {
        switch (faults_++ % faults_in_turn) {
            case 0: return servers_[0].freeze();
            case 1: return servers_[1].kill();
            case 2: return servers_[0].thaw();
            case 3: return servers_[1].restart();
            default: (void)servers_[2].command({"CLIENT", "KILL", "TYPE", "normal"});
        }
    }
    void heal() {
        while (faults_ % faults_in_turn != 0) inject_fault();
    }

    /// Calls `work` twice, and expects no growth in the second call. Afterwards `lock_once` makes rounds
    /// until the late replies of the nodes have been read, and the connections that they came on have been
    /// closed.
    template <class Work, class LockOnce>
    void expect_flat(Work work, LockOnce lock_once) {
        work();
        heal();
        // All nodes take part in these rounds, so that each has its usual connections.
        ASSERT_TRUE(wait_until([&] { return lock_once() == nodes; }));
        const Footprint before;
        work();
        heal();
        // Some connections are new, and their buffers grow differently. In each test, more than 3,000 votes
        // fail in the second call of `work`, and none may leave 32 bytes behind.
        constexpr std::size_t connections = nodes;
        constexpr std::size_t bytes = 96'000;
        Footprint now;
        const auto is_flat = [&] {
            return now.heap <= before.heap + bytes && now.descriptors <= before.descriptors + connections &&
                   now.threads <= before.threads;
        };
        (void)wait_until(
            [&] {
                (void)lock_once();
                now = {};
                return is_flat();
            },
            30s);
        EXPECT_THAT(now.heap, Le(before.heap + bytes)) << "after " << before.heap;
        EXPECT_THAT(now.descriptors, Le(before.descriptors + connections));
        EXPECT_THAT(now.threads, Le(before.threads));
    }

    static constexpr std::size_t nodes = 5;
    static constexpr std::size_t faults_in_turn = 5;
    std::size_t faults_ = 0;
    const NodesOptions options_{
        .node_timeout = 50ms, .round = GetParam(), .max_idle = 1, .share_connections = true};
    Cluster servers_{nodes};
};
INSTANTIATE_TEST_SUITE_P(EachRound, SharedSoak, each_round(), by_round);

// So many threads that they share connections.
TEST_P(SharedSoak, FailedRoundsOfThreadsDoNotIncreaseTheResourceUsage) {
    RedisNodes of_threads{servers_.uris(), options_};
    const auto threads = std::max<std::size_t>(16, 2 * std::thread::hardware_concurrency());
    std::atomic<std::size_t> failed = 0;  // nodes in a round
    const auto work = [&] {
        in_threads(threads, [&](std::size_t thread) {
            Lock lock{of_threads, own_resource(thread), {.ttl = 10min, .retry = {.attempts = 1}}};
            for (std::size_t turn = 0; turn < 250; ++turn) {
                if (thread == 0 && turn % 5 == 0) inject_fault();
                failed += count(lock.acquire(), Vote::unknown);
                (void)lock.release();
            }
        });
    };
    expect_flat(work, [&] {
        Lock lock{of_threads, "resource", {.retry = {.attempts = 1}}};
        (void)lock.acquire();
        return count(lock.release(), Vote::granted);
    });
    EXPECT_GT(failed, 0U);
}

TEST_P(SharedSoak, FailedRoundsOfALoopDoNotIncreaseTheResourceUsage) {
    LoopClient client{servers_.uris(), options_};
    std::size_t failed = 0;
    constexpr std::size_t operations = 64;
    const auto work = [&] {
        std::size_t turns = 0;
        std::size_t over = 0;
        struct Operation {
            AsyncLock lock;
            std::size_t turns = 0;
            std::function<void()> next{};
        };
        std::vector<std::unique_ptr<Operation>> locks;
        for (std::size_t i = 0; i < operations; ++i) {
            auto& it = *locks.emplace_back(new Operation{
                AsyncLock{client.of_loop, own_resource(i), {.ttl = 10min, .retry = {.attempts = 1}}}});
            it.next = [&] {
                if (++it.turns > 60) {
                    ++over;
                    return;
                }
                it.lock.acquire([&](const Result& acquired) {
                    failed += count(acquired, Vote::unknown);
                    ++turns;
                    it.lock.release([&](const Result&) { it.next(); });
                });
            };
            it.next();
        }
        std::size_t next_fault = 0;
        EXPECT_TRUE(client.run_until([&] {
            if (turns >= next_fault) {
                inject_fault();
                next_fault += operations;
            }
            return over == operations;
        }));
    };
    expect_flat(work, [&] {
        AsyncLock lock{client.of_loop, "resource", {.retry = {.attempts = 1}}};
        (void)client.acquire(lock);
        return count(client.release(lock), Vote::granted);
    });
    EXPECT_GT(failed, 0U);
}

}  // namespace
}  // namespace redlock::test::shared_soak_live_test
