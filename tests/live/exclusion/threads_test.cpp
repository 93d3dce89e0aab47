// One RedisNodes and many threads (rule D9): they exclude one another, nobody waits for another's round
// trips, and objects come and go while others work. What ThreadSanitizer should see.
#include <redlock/redlock.hpp>

#include "hold.hpp"
#include "in_threads.hpp"

#include "support/cluster.hpp"
#include "support/wait_until.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace redlock::exclusion {
namespace {

using namespace std::chrono_literals;
using support::Cluster;
using support::RedisConfig;
using support::wait_until;
using testing::Each;
using testing::IsEmpty;
using testing::Le;

using Clock = std::chrono::steady_clock;

std::string own_resource(std::size_t thread) {
    return "resource of thread " + std::to_string(thread);
}

/// Increments without any protection but the lock's. Atomic, so that a failure is a wrong sum, not undefined.
void increment(std::atomic<int>& counter) {
    const int before = counter.load(std::memory_order_relaxed);
    std::this_thread::yield();
    counter.store(before + 1, std::memory_order_relaxed);
}

class Threads : public testing::TestWithParam<Round> {
protected:
    /// Patient: where no node is down, a busy machine must not make one look so.
    NodesOptions options() const { return {.node_timeout = 5s, .round = GetParam()}; }
};

std::string name_of(const testing::TestParamInfo<Round>& round) {
    return round.param == Round::sequential ? "InTurn" : "AllAtOnce";
}

INSTANTIATE_TEST_SUITE_P(Asking, Threads, testing::Values(Round::sequential, Round::all_at_once), name_of);

// D9
TEST_P(Threads, ThatShareNodesCountWithoutALossUnderOneResource) {
    Cluster servers{3};
    RedisNodes nodes{servers.uris(), options()};
    std::atomic<int> counter{0};
    constexpr int times = 20;
    in_threads([&](std::size_t) {
        Lock lock{nodes, "counter", {.ttl = 60s, .retry = {.delay = 5ms}}};
        for (int time = 0; time < times; ++time) {
            const auto result = lock.acquire_for(50s);
            ASSERT_TRUE(result) << result.message();
            increment(counter);
            (void)lock.release();
        }
    });
    EXPECT_EQ(counter, times * static_cast<int>(threads));
}

// D9: what one thread holds neither stops another nor is given up by it.
TEST_P(Threads, ThatShareNodesHoldResourcesOfTheirOwnAtOnce) {
    Cluster servers{3};
    RedisNodes nodes{servers.uris(), options()};
    std::atomic<int> held{0};
    std::latch all_hold{static_cast<std::ptrdiff_t>(threads)};
    in_threads([&](std::size_t thread) {
        Lock lock{nodes, own_resource(thread), {.ttl = 60s}};
        const auto result = lock.acquire_for(50s);
        all_hold.arrive_and_wait();
        EXPECT_TRUE(result) << result.message();
        held += lock.valid() && lock.extend() ? 1 : 0;
        EXPECT_TRUE(lock.release());
    });
    EXPECT_EQ(held, static_cast<int>(threads));
    for (auto& server : servers) EXPECT_EQ(server.command({"DBSIZE"}), "0");
}

/// Threads that contend for one resource, and at times for another, until they are stopped.
class Contenders {
public:
    explicit Contenders(RedisNodes& nodes) : nodes_(nodes) {
        for (std::size_t thread = 0; thread < threads; ++thread)
            running_.emplace_back([this, thread](const std::stop_token& stop) { contend(thread, stop); });
    }

    void stop() {
        for (auto& thread : running_) thread.request_stop();
        running_.clear();  // joins
    }
    std::size_t holds() {
        const std::lock_guard guard{mutex_};
        return holds_.size();
    }
    std::vector<Hold> history() {
        const std::lock_guard guard{mutex_};
        return holds_;
    }

private:
    void contend(std::size_t thread, const std::stop_token& stop) {
        Lock common{nodes_, "common", {.ttl = 2s, .retry = {.delay = 10ms}}};
        Lock own{nodes_, own_resource(thread), {.ttl = 2s}};
        while (!stop.stop_requested()) {
            if (common.acquire_for(500ms, stop)) note_hold(common, thread);
            (void)common.release();
            (void)own.acquire_for(500ms, stop);
            (void)own.release();
        }
    }

    void note_hold(const Lock& lock, std::size_t thread) {
        Hold hold{.from = monotonic_now(), .until = 0, .worker = thread};
        if (!lock.valid()) return;
        std::this_thread::yield();
        hold.until = monotonic_now();
        if (!lock.valid()) hold.until = hold.from;
        const std::lock_guard guard{mutex_};
        holds_.push_back(hold);
    }

    RedisNodes& nodes_;
    std::mutex mutex_;
    std::vector<Hold> holds_{};  // guarded by mutex_
    std::vector<std::jthread> running_{};
};

// D9, A3, S1
TEST_P(Threads, ExcludeOneAnotherWhileANodeIsFrozenKilledAndRestarted) {
    Cluster servers{3, RedisConfig{}.keeps_data()};
    RedisNodes nodes{servers.uris(), {.round = GetParam()}};
    Contenders contenders{nodes};
    const auto go_on = [&] {
        const auto enough = contenders.holds() + 10;
        return wait_until([&] { return contenders.holds() >= enough; }, 30s);
    };
    EXPECT_TRUE(go_on());
    for (auto& server : servers) {
        server.freeze();
        EXPECT_TRUE(go_on()) << "with " << server.name() << " frozen";
        server.thaw();
        EXPECT_TRUE(go_on());
        server.kill();
        EXPECT_TRUE(go_on()) << "without " << server.name();
        server.restart();
        EXPECT_TRUE(go_on());
    }
    contenders.stop();
    const auto found = overlaps(contenders.history());
    EXPECT_THAT(found, IsEmpty()) << text(found);
}

/// How long each of so many threads takes to acquire a resource of its own, while one node is frozen.
std::vector<Clock::duration> times_to_acquire(RedisNodes& nodes, support::RedisServer& frozen) {
    std::vector<Clock::duration> took(threads);
    frozen.freeze();
    std::latch all_tried{static_cast<std::ptrdiff_t>(threads)};
    in_threads([&](std::size_t thread) {
        Lock lock{nodes, own_resource(thread), {.ttl = 60s}};
        const auto start = Clock::now();
        EXPECT_TRUE(lock.try_acquire());
        took[thread] = Clock::now() - start;
        all_tried.arrive_and_wait();
        if (thread == 0) frozen.thaw();  // before the releases wait for it, too
    });
    return took;
}

// D9, D5, A9: in turn, everybody pays the budget of the frozen node once, and all at the same time.
TEST(ThreadsInTurn, WaitForAFrozenNodeBesideOneAnotherAndNotOneAfterTheOther) {
    Cluster servers{3};
    RedisNodes nodes{servers.uris(), {.node_timeout = 2s}};
    const auto took = times_to_acquire(nodes, servers[0]);
    EXPECT_THAT(took, Each(Le(16s))) << "one after the other it would be 32 s";
}

// D9, S23: all at once, nobody waits for it at all.
TEST(ThreadsAllAtOnce, DoNotWaitForAFrozenNodeThatTheirVotesDoNotNeed) {
    Cluster servers{3};
    RedisNodes nodes{servers.uris(), {.node_timeout = 20s, .round = Round::all_at_once}};
    const auto took = times_to_acquire(nodes, servers[0]);
    EXPECT_THAT(took, Each(Le(10s)));
}

// D9: a thread in the middle of its wait for a frozen node is in nobody's way.
TEST(ThreadsAllAtOnce, AreNotHeldUpByOneThatWaitsForAFrozenNode) {
    Cluster servers{3};
    RedisNodes nodes{servers.uris(), {.node_timeout = 20s, .round = Round::all_at_once}};
    Lock lock{nodes, "mine", {.ttl = 60s}};
    ASSERT_TRUE(wait_until([&] {  // from now on there is a connection to all three
        const auto result = lock.try_acquire();
        return lock.release() && result.nodes()[0].sent;
    }));
    std::atomic<bool> acquired{false};
    std::atomic<bool> released{false};
    servers[0].freeze();
    {
        const std::jthread waiting{[&] {
            Lock another{nodes, "another's", {.ttl = 60s}};
            acquired = static_cast<bool>(another.try_acquire());
            (void)another.release();  // asks all three, and waits for the frozen one
            released = true;
        }};
        EXPECT_TRUE(wait_until([&] { return acquired.load(); }));
        const auto release_arrived = [&] { return servers[1].command({"EXISTS", "another's"}) == "0"; };
        EXPECT_TRUE(wait_until(release_arrived));
        EXPECT_TRUE(lock.try_acquire());
        EXPECT_TRUE(lock.extend());
        EXPECT_FALSE(released);
        servers[0].thaw();
    }
    EXPECT_TRUE(lock.release());
}

}  // namespace
}  // namespace redlock::exclusion
