// AsyncSemaphore in a poll() loop, against real servers.
#include "poll_loop.hpp"
#include "support/cluster.hpp"
#include "support/wait_until.hpp"

#include <redlock/async_semaphore.hpp>
#include <redlock/redlock.hpp>

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test {
namespace {

using namespace std::chrono_literals;
using support::Cluster;
using support::wait_until;

constexpr std::size_t limit = 3;

class ASemaphoreInALoop : public testing::Test {
protected:
    template <class Begin>
    Result result_of(Begin begin) {
        std::optional<Result> result;
        begin([&](Result it) { result = std::move(it); });
        EXPECT_FALSE(result) << "inside the initiating call";
        while (!result && loop.run_once()) {
        }
        return result ? *std::move(result) : Result{std::make_error_code(std::errc::timed_out)};
    }
    Result try_acquire(AsyncSemaphore& it) {
        return result_of([&](Completion done) { it.try_acquire(std::move(done)); });
    }
    Result release(AsyncSemaphore& it) {
        return result_of([&](Completion done) { it.release(std::move(done)); });
    }

    /// Returns how many keys of slots there are on all nodes.
    std::size_t keys() {
        std::size_t count = 0;
        for (auto& server : cluster)
            for (std::size_t slot = 0; slot < limit; ++slot)
                count += server.command({"EXISTS", "{jobs}:slot:" + std::to_string(slot)}) == "1" ? 1U : 0U;
        return count;
    }
    bool has_keys(std::size_t count) {
        return wait_until([&] { return keys() == count; });
    }

    Cluster cluster{5};
    PollLoop loop{};
    RedisNodes nodes{cluster.uris(), {.node_timeout = 1s}};  // also for a busy machine
    AsyncNodes of_loop{nodes, loop};
};

TEST_F(ASemaphoreInALoop, HasAsManyHoldersAsSlotsTogetherWithThreads) {
    Semaphore of_thread{nodes, "jobs", limit, {.ttl = 1min}};
    ASSERT_TRUE(of_thread.acquire());
    std::deque<AsyncSemaphore> all;
    std::set<std::size_t> slots{of_thread.slot()};
    for (int i = 0; i < 2; ++i) {
        auto& it = all.emplace_back(of_loop, "jobs", limit, LockOptions{.ttl = 1min, .fencing = true});
        const auto acquired = try_acquire(it);
        ASSERT_TRUE(acquired) << acquired.message();
        EXPECT_GT(it.fencing_token(), 0U);
        slots.insert(it.slot());
    }
    EXPECT_EQ(slots.size(), limit);
    AsyncSemaphore late{of_loop, "jobs", limit, {.ttl = 1min}};
    EXPECT_EQ(try_acquire(late).error(), Errc::held_by_other);
    EXPECT_TRUE(of_thread.release());
    EXPECT_TRUE(try_acquire(late));
    EXPECT_EQ(late.slot(), of_thread.slot());
    EXPECT_TRUE(result_of([&](Completion done) { late.extend(2min, std::move(done)); }));
    EXPECT_GT(late.remaining(), 61s);
    EXPECT_TRUE(release(late));
    EXPECT_FALSE(late.valid());
    all.clear();
    loop.run();
    EXPECT_TRUE(has_keys(0));
}

TEST_F(ASemaphoreInALoop, SharesItsSlotsAmongManyWaiters) {
    std::deque<AsyncSemaphore> all;
    std::size_t inside = 0;
    std::size_t most = 0;
    std::size_t served = 0;
    for (int i = 0; i < 20; ++i) {
        auto& it =
            all.emplace_back(of_loop, "jobs", limit, LockOptions{.ttl = 1min, .retry = {.delay = 5ms}});
        it.acquire_for(5min, [&](Result acquired) {
            EXPECT_TRUE(acquired) << acquired.message();
            most = std::max(most, ++inside);
            it.extend([&](Result) {
                --inside;  // before the release, which frees the slot
                it.release([&](Result) { ++served; });
            });
        });
    }
    loop.run();
    EXPECT_EQ(served, 20U);
    EXPECT_GE(most, 1U);
    EXPECT_LE(most, limit);
    EXPECT_EQ(keys(), 0U);
}

// The loop is stopped after each number of steps, until the operation ends before.
TEST_F(ASemaphoreInALoop, LeavesNoKeyWhereverItIsCancelledOrDestroyed) {
    Semaphore other{nodes, "jobs", 1, {.ttl = 10min}};  // the first slot
    ASSERT_TRUE(other.acquire());
    for (const bool destroys : {false, true})
        for (int steps = 0;; ++steps) {
            std::optional<Result> result;
            std::optional<AsyncSemaphore> it{std::in_place, of_loop, "jobs", limit,
                                             LockOptions{.ttl = 10min}};
            it->try_acquire([&](Result ended) { result = std::move(ended); });
            for (int i = 0; i < steps && !result; ++i) (void)loop.run_once();
            const bool ended = result.has_value();
            it->cancel();
            if (destroys) it.reset();
            loop.run();
            ASSERT_TRUE(result);
            if (!*result) {
                EXPECT_EQ(result->error(), Errc::cancelled) << "after " << steps;
                EXPECT_TRUE(has_keys(5)) << "after " << steps;
            }
            if (ended) break;
        }
    loop.run();
    EXPECT_TRUE(has_keys(5)) << "those of the other holder";
}

TEST_F(ASemaphoreInALoop, TheShutdownCallsNoCompletionAndLeavesNoKey) {
    for (int steps = 0; steps < 12; ++steps) {
        bool called = false;
        PollLoop other_loop;
        auto of_other = std::make_unique<AsyncNodes>(nodes, other_loop);
        AsyncSemaphore it{*of_other, "jobs", limit, {.ttl = 10min}};
        it.try_acquire([&](Result) { called = true; });
        for (int i = 0; i < steps && !called; ++i) (void)other_loop.run_once();
        const bool ended = std::exchange(called, false);
        of_other.reset();
        EXPECT_FALSE(other_loop.run_once()) << "after " << steps << " steps";
        EXPECT_FALSE(called);
        if (!ended) {
            EXPECT_TRUE(has_keys(0)) << "after " << steps << " steps";
        }
    }
    EXPECT_TRUE(has_keys(0));
}

TEST_F(ASemaphoreInALoop, ReportsTheLossOfItsSlot) {
    std::optional<Result> loss;
    AsyncSemaphore it{
        of_loop, "jobs", limit, {.ttl = 3s, .watchdog = loop_watchdog(), .on_lost = [&](const Result& of) {
                                     loss = of;
                                 }}};
    ASSERT_TRUE(try_acquire(it));
    const auto lost = it.lost();
    for (auto& server : cluster) server.command({"DEL", it.resource()});
    while (!loss && loop.run_once()) {
    }
    ASSERT_TRUE(loss);
    EXPECT_EQ(loss->error(), Errc::lost);
    EXPECT_TRUE(lost.stop_requested());
    EXPECT_FALSE(it.valid());
}

}  // namespace
}  // namespace redlock::test
