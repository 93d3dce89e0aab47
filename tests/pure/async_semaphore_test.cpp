// AsyncSemaphore in a loop in virtual time, over nodes in memory.
#include "in_a_loop.hpp"

#include <redlock/async_semaphore.hpp>
#include <redlock/semaphore.hpp>

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct SemaphoresInALoop : testing::Test, LoopWorld {
    AsyncSemaphore semaphore(std::size_t limit, LockOptions options = {}) {
        return {of_loop, "jobs", limit, std::move(options)};
    }
    Result try_acquire(AsyncSemaphore& it) {
        results.clear();
        it.try_acquire(report());
        EXPECT_THAT(results, IsEmpty()) << "inside the initiating call";
        run();
        return results.empty() ? Result{std::make_error_code(std::errc::timed_out)} : results.back();
    }
    /// Lets semaphores of this limit acquire until one fails. Returns how many of them hold a slot now.
    std::size_t hold_all(std::size_t limit) {
        std::size_t count = 0;
        while (try_acquire(held.emplace_back(semaphore(limit, {.ttl = 1h})))) ++count;
        return count;
    }

    std::deque<AsyncSemaphore> held;
};

TEST_F(SemaphoresInALoop, HaveAsManyHoldersAsSlots) {
    EXPECT_EQ(hold_all(3), 3U);
    std::set<std::string> slots;
    for (const auto& it : held) {
        if (!it.valid()) continue;
        slots.insert(it.resource());
        EXPECT_EQ(it.resource(), "{jobs}:slot:" + std::to_string(it.slot()));
        EXPECT_EQ(world.held_by(it.owner(), it.resource()), 5U);
        EXPECT_GT(it.remaining(), 59min);
    }
    EXPECT_THAT(slots, SizeIs(3));
    EXPECT_THAT(try_acquire(held.back()), FailsWith(Errc::held_by_other));
    const auto free_slot = held.front().slot();
    held.front().release(report());
    run();
    EXPECT_THAT(results.back(), Succeeds());
    EXPECT_THAT(try_acquire(held.back()), Succeeds());
    EXPECT_EQ(held.back().slot(), free_slot);
    EXPECT_THAT(try_acquire(held.back()), FailsWith(Errc::already_held));
}

// Both run the same flow with the same random numbers.
TEST_F(SemaphoresInALoop, SendWhatASemaphoreSends) {
    World other;
    for (auto* const it : {&world, &other})
        for (std::size_t node = 0; node < 5; ++node)
            for (const auto* const slot : {"{jobs}:slot:0", "{jobs}:slot:2", "{jobs}:slot:3"})
                it->command(node, {"SET", slot, "x", "PX", "60000"});
    Semaphore blocking{other, "jobs", 5, {.ttl = 20s, .holder = "web1"}, other.clock, other.entropy};
    auto it = semaphore(5, {.ttl = 20s, .holder = "web1"});
    for (int i = 0; i < 10; ++i) {
        EXPECT_THAT(blocking.acquire(), Succeeds());
        EXPECT_THAT(try_acquire(it), Succeeds());
        EXPECT_EQ(it.slot(), blocking.slot());
        EXPECT_THAT(blocking.extend(), Succeeds());
        it.extend(report());
        run();
        EXPECT_THAT(results.back(), Succeeds());
        if (i % 2 == 0) {
            EXPECT_THAT(blocking.release(), Succeeds());
            it.release(report());
            run();
            EXPECT_THAT(results.back(), Succeeds());
        } else {  // the next acquisition releases the slot, whose validity has ended
            other.pass(15s);
            pass(15s);
            EXPECT_THAT(blocking.extend(5s), Succeeds());
            it.extend(5s, report());
            run();
            other.pass(15s);
            pass(15s);
        }
    }
    EXPECT_EQ(world.events(), other.events());
}

TEST_F(SemaphoresInALoop, WaitForASlotUntilTheirDeadline) {
    ASSERT_EQ(hold_all(2), 2U);
    auto late = semaphore(2, {.retry = {.delay = 100ms}});
    const auto start = world.clock.now();
    results.clear();
    late.acquire_for(1s, report());
    run();
    EXPECT_THAT(results.back(), FailsWith(Errc::held_by_other));
    EXPECT_GE(world.clock.now() - start, 800ms);
    EXPECT_LE(world.clock.now() - start, 1s);
    late.acquire_for(1min, report());
    pass(1s);
    held[1].release([](const Result&) {});
    pass(1s);
    EXPECT_THAT(results.back(), Succeeds());
    EXPECT_EQ(late.slot(), held[1].slot());
}

/// Acquires while the first slot is held, and the second one has no quorum for a while. Cancels after
/// `steps`, or destroys the semaphore. Returns false if the operation has ended before.
bool cancel_after(std::size_t steps, bool destroys) {
    LoopWorld it;
    for (std::size_t node = 0; node < 5; ++node)
        it.world.command(node, {"SET", "{jobs}:slot:0", "x", "PX", "3600000"});
    for (const std::size_t node : {0U, 1U, 2U})
        it.world.command(node, {"SET", "{jobs}:slot:1", "x", "PX", "250"});
    std::optional<AsyncSemaphore> semaphore{
        std::in_place, it.of_loop, "jobs", 2,
        LockOptions{.retry = {.attempts = 9, .delay = 100ms}, .watchdog = loop_watchdog()}};
    semaphore->acquire(it.report());
    for (std::size_t step = 0; step < steps; ++step) (void)it.loop.run_once();
    const bool ended = !it.results.empty();
    semaphore->cancel();
    if (destroys) semaphore.reset();
    it.pass(1s);
    EXPECT_THAT(it.results, SizeIs(1));
    EXPECT_EQ(it.results.back().error(), ended ? std::error_code{} : make_error_code(Errc::cancelled));
    EXPECT_EQ(it.world.held_by("", "{jobs}:slot:1"), ended && !destroys ? 0U : 5U);
    EXPECT_EQ(it.world.held_by("x", "{jobs}:slot:0"), 5U);
    return !ended;
}

TEST(SemaphoreInALoop, LeavesNoKeyWhenItIsCancelledOrDestroyed) {
    for (const bool destroys : {false, true}) {
        std::size_t steps = 0;
        while (cancel_after(steps, destroys)) ++steps;
        EXPECT_GT(steps, 2U);
    }
}

TEST_F(SemaphoresInALoop, AreExtendedAndReportTheirLoss) {
    std::vector<Result> losses;
    std::optional<AsyncSemaphore> it;
    it.emplace(of_loop, "jobs", 3,
               LockOptions{.ttl = 3s, .watchdog = loop_watchdog(), .on_lost = [&](const Result& loss) {
                               losses.push_back(loss);
                               it->release(report());
                           }});
    for (int i = 0; i < 8; ++i) {
        world.heal_all();
        it->acquire(report());
        pass(10s);
        ASSERT_TRUE(it->valid());
        EXPECT_EQ(world.held_by(it->owner(), it->resource()), 5U);
        const auto lost = it->lost();
        world.cut(0, 1, 2);
        pass(10s);
        EXPECT_FALSE(it->valid());
        EXPECT_TRUE(lost.stop_requested());
    }
    EXPECT_THAT(losses, SizeIs(8));
    EXPECT_THAT(losses, testing::Each(FailsWith(Errc::lost)));
}

TEST_F(SemaphoresInALoop, ReleaseTheirSlotInTheLoopWhenTheyAreDestroyed) {
    ASSERT_EQ(hold_all(3), 3U);
    held.clear();
    run();
    EXPECT_EQ(hold_all(3), 3U);
}

TEST_F(SemaphoresInALoop, ReleaseTheirSlotsAtTheShutdown) {
    ASSERT_EQ(hold_all(2), 2U);
    auto waiting = semaphore(2, {.retry = {.attempts = 100, .delay = 1h}});
    results.clear();
    waiting.acquire(report());
    pass(1s);
    of_loop.shut_down();
    EXPECT_FALSE(loop.run_once());
    EXPECT_THAT(results, IsEmpty());
    held.clear();
    for (const auto* const slot : {"{jobs}:slot:0", "{jobs}:slot:1"}) EXPECT_EQ(world.held_by("", slot), 5U);
}

TEST_F(SemaphoresInALoop, HaveFencingTokensForEachSlot) {
    std::uint64_t last = 0;
    for (int i = 0; i < 3; ++i) {
        auto it = semaphore(1, {.fencing = true});
        EXPECT_THAT(try_acquire(it), Succeeds());
        EXPECT_GT(it.fencing_token(), last);
        last = it.fencing_token();
        it = semaphore(1);
        run();
    }
}

TEST_F(SemaphoresInALoop, MoveWithTheirSlot) {
    auto from = semaphore(3);
    from.acquire(report());
    auto to = std::move(from);
    run();
    EXPECT_TRUE(to.valid());
    EXPECT_FALSE(from.valid());      // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(from.slot(), 0U);      // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(from.resource(), "");  // NOLINT(bugprone-use-after-move)
    const auto slot = to.resource();
    to = semaphore(3);
    run();
    EXPECT_EQ(world.held_by("", slot), 5U);
}

TEST_F(SemaphoresInALoop, RejectImpossibleOptions) {
    EXPECT_THAT(refusal([&] { (void)semaphore(0); }), HasSubstr("limit is 0; it must be from 1 to 1000"));
    EXPECT_THAT(refusal([&] { (void)semaphore(1, {.fair = true}); }), HasSubstr("LockOptions::fair"));
    EXPECT_THAT(refusal([&] { (void)semaphore(1, {.shared = true}); }), HasSubstr("LockOptions::shared"));
    EXPECT_THAT(refusal([&] { (void)semaphore(1, {.ttl = 0ms}); }), HasSubstr("LockOptions::ttl"));
    auto it = semaphore(1);
    EXPECT_THAT(refusal([&] { it.extend(0ms, report()); }), HasSubstr("extend: ttl"));
}

}  // namespace
}  // namespace redlock::test
