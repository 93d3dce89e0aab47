// AsyncSemaphore in a loop in virtual time, over nodes in memory.
#include "in_a_loop.hpp"

#include <redlock/async_semaphore.hpp>

#include <optional>

namespace redlock::test::async_semaphore_test {
namespace {

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

}  // namespace
}  // namespace redlock::test::async_semaphore_test
