// AsyncSemaphore in a loop in virtual time, over nodes in memory.
#include "in_a_loop.hpp"

#include <redlock/async_semaphore.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace redlock::test::async_semaphore_test {
namespace {

struct SemaphoresInALoop : testing::Test, LoopWorld {
    AsyncSemaphore semaphore(std::size_t limit, LockOptions options = {}) {
        return {of_loop, "jobs", limit, std::move(options)};
    }
};

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
    EXPECT_THAT(losses, Each(FailsWith(Errc::lost)));
}

TEST_F(SemaphoresInALoop, ReleaseTheirSlotsAtTheShutdown) {
    std::vector<AsyncSemaphore> held;
    for (int i = 0; i < 2; ++i) {
        held.push_back(semaphore(2, {.ttl = 1h}));
        held.back().acquire(report());
        run();
        ASSERT_THAT(results.back(), Succeeds());
    }
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

}  // namespace
}  // namespace redlock::test::async_semaphore_test
