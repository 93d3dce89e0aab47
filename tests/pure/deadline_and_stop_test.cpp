// When acquire() gives up before all attempts are made: deadlines (A9) and cancellation.
#include "fronts.hpp"

#include <limits>

namespace redlock::test::deadline_and_stop_test {
namespace {

struct ADeadline : testing::TestWithParam<Front> {};
struct AStop : testing::TestWithParam<Front> {};
INSTANTIATE_TEST_SUITE_P(Each, ADeadline, each_front, testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Each, AStop, each_front, testing::PrintToStringParamName());

// ---- Deadlines.

// A9. If all nodes hang, acquire_for() returns within the time limit and one node_timeout, and reports the
// last complete round.
TEST_P(ADeadline, IsExceededByAtMostOneNodeTimeoutIfEveryNodeHangs) {
    AnyWorld world{GetParam(), 5U, 50ms};
    world.silence(0, 1, 2, 3, 4);
    auto lock = world.lock({.retry = {.delay = 10ms}});
    const auto took = time_taken(world, [&] {
        const auto result = lock.acquire_for(720ms);
        EXPECT_THAT(result, FailsWith(Errc::no_quorum));
        for (const auto& node : result.nodes()) EXPECT_EQ(node.cause, Errc::timed_out);
    });
    EXPECT_LE(took, 720ms + 50ms);
}

// A9. A deadline in the first round ends the round early, and the result reports the votes so far. B6, A2.
// The clean-up has another node_timeout after the deadline.
TEST_P(ADeadline, EndsARoundThatTakesTooLong) {
    AnyWorld world{GetParam(), 5U, 50ms};
    world.silence(0, 1, 2, 3, 4);
    auto lock = world.lock();
    const auto took = time_taken(world, [&] {
        const auto result = lock.acquire_for(120ms);
        EXPECT_THAT(result, FailsWith(Errc::deadline));
        EXPECT_EQ(result.nodes()[2].cause, Errc::timed_out);
        EXPECT_EQ(result.nodes()[3].cause, Errc::not_asked);
    });
    EXPECT_THAT(took, Lasts(120ms + 50ms));
    EXPECT_THAT(world.events(), ElementsAre("set #1 for 10000 ms", "delete #1 on 0 1 2"));
}

// A12. One refusal before the deadline does not show contention, because other nodes were not asked.
TEST_P(ADeadline, IsNotReportedAsContentionAfterOneRefusal) {
    AnyWorld world{GetParam()};
    world.occupy(1h, 0);
    world.silence(1);
    EXPECT_THAT(world.lock().acquire_for(40ms), FailsWith(Errc::deadline));
}

// A12. An attempt that was cut short reports nothing new, so the last complete one is reported.
TEST_P(ADeadline, ReportsTheLastCompleteAttempt) {
    AnyWorld world{GetParam(), 5U, 50ms};
    world.occupy(1h, 0, 1, 2);
    world.after(1ms, [&] { world.silence(0, 1, 2, 3, 4); });
    const auto result = world.lock({.retry = {.delay = 10ms}}).acquire_for(100ms);
    EXPECT_THAT(result, FailsWith(Errc::held_by_other));
    EXPECT_EQ(result.attempts(), 1);
}

// A8. The duration of an attempt with hanging nodes does not predict that of the next one.
TEST_P(ADeadline, IsUsedUpEvenAfterAnAttemptThatHung) {
    AnyWorld world{GetParam(), 3U, 300ms};
    world.silence(0, 1);
    world.after(1s, [&] { world.heal(0, 1); });
    const auto took = time_taken(world, [&] { EXPECT_THAT(world.lock().acquire_for(2s), Succeeds()); });
    EXPECT_GE(took, 1s);
}

// A8. An attempt is made shortly before the deadline, however long the pauses are.
TEST_P(ADeadline, IsPrecededByAnAttemptHoweverLongThePauses) {
    for (const auto delay : {50ms, 200ms, 1000ms, 60'000ms}) {
        AnyWorld world{GetParam()};
        for (const std::size_t node : {0U, 1U, 2U, 3U, 4U}) world.slow(node, 1ms);
        world.occupy(1970ms, 0, 1, 2, 3, 4);
        auto lock = world.lock({.retry = {.delay = delay}});
        const auto start = world.clock.now();
        EXPECT_THAT(lock.acquire_for(2s), Succeeds()) << text(delay);
        EXPECT_LE(world.clock.now() - start, 2s);
    }
}

// A8. The next attempt begins twice the duration of the last one before the deadline. If that is more than
// half of the remaining time, it begins in the middle of the remaining time.
TEST(ADeadlineOfAThread, LeavesHalfOfTheTimeForAPauseHoweverSlowTheLastAttempt) {
    const Clock::time_point now{1h};
    const auto pause_after = [&](Clock::duration attempt) {
        return algorithm::latest_attempt(now, now + 100ms, attempt) - now;
    };
    EXPECT_THAT(pause_after(0ms), Lasts(99ms));
    EXPECT_THAT(pause_after(10ms), Lasts(80ms));
    EXPECT_THAT(pause_after(25ms), Lasts(50ms));
    EXPECT_THAT(pause_after(40ms), Lasts(50ms));
    EXPECT_THAT(pause_after(1h), Lasts(50ms));
}

// A8, A9. A past deadline returns without I/O.
TEST(ADeadlineOfAThread, CausesNoIoIfItHasPassed) {
    World world;
    auto lock = world.lock();
    EXPECT_THAT(lock.acquire_for(0ms), FailsWith(Errc::deadline));
    EXPECT_THAT(lock.acquire_for(-1h), FailsWith(Errc::deadline));
    EXPECT_THAT(lock.acquire_for(std::chrono::hours::min()), FailsWith(Errc::deadline));
    EXPECT_THAT(lock.acquire_until(world.clock.now()), FailsWith(Errc::deadline));
    EXPECT_THAT(lock.acquire_until(world.clock.now() - 1s), FailsWith(Errc::deadline));
    EXPECT_THAT(lock.acquire_until(std::chrono::system_clock::time_point{}), FailsWith(Errc::deadline));
    EXPECT_THAT(lock.acquire_until(std::chrono::steady_clock::time_point{}), FailsWith(Errc::deadline));
    EXPECT_THAT(lock.acquire_until(Clock::time_point::min()), FailsWith(Errc::deadline)) << "no overflow";
    EXPECT_THAT(lock.acquire_until(std::chrono::sys_seconds::min()), FailsWith(Errc::deadline));
    EXPECT_EQ(lock.acquire_for(0ms).attempts(), 0);
    EXPECT_THAT(world.events(), IsEmpty());
}

// Any unit is permitted, also a floating one. The longest spans mean never, and do not overflow.
TEST(ADeadlineOfAThread, MayHaveAnyUnit) {
    World world;
    world.occupy(1h, 0, 1, 2);
    auto lock = world.lock({.retry = {.attempts = 1, .delay = 1h}});
    const auto expect_success = [&](const Result& result) {
        EXPECT_THAT(result, Succeeds());
        (void)lock.release();
    };
    EXPECT_THAT(lock.acquire_for(std::chrono::duration<double>{0.25}), FailsWith(Errc::held_by_other));
    EXPECT_THAT(lock.acquire_for(std::chrono::duration<float, std::ratio<60>>{0.01F}),
                FailsWith(Errc::held_by_other));
    expect_success(lock.acquire_for(std::chrono::hours::max()));
    expect_success(lock.acquire_for(std::chrono::nanoseconds::max()));
    expect_success(lock.acquire_until(Clock::time_point::max()));
    expect_success(lock.acquire_until(std::chrono::system_clock::time_point::max()));
    expect_success(lock.acquire_until(std::chrono::sys_seconds::max()));
    expect_success(lock.acquire_until(std::chrono::sys_days{std::chrono::year{9999} / 12 / 31}));
}

// A computed span can be no number, and also infinite.
TEST(ADeadlineOfAThread, HasPassedIfItIsNotANumber) {
    using Seconds = std::chrono::duration<double>;
    using Instant = std::chrono::time_point<std::chrono::system_clock, Seconds>;
    const Seconds nan{std::numeric_limits<double>::quiet_NaN()};
    const Seconds infinity{std::numeric_limits<double>::infinity()};
    World world;
    const auto now = world.clock.now();
    EXPECT_EQ(deadline_after(now, nan), now);
    EXPECT_EQ(deadline_after(now, std::chrono::duration<float>{nan}), now);
    EXPECT_EQ(deadline_after(now, -infinity), now);
    EXPECT_EQ(deadline_after(now, infinity), Clock::never());
    EXPECT_EQ(deadline_after(now, Seconds{std::numeric_limits<double>::max()}), Clock::never());
    auto lock = world.lock();
    for (const auto span : {nan, -infinity}) {
        EXPECT_THAT(lock.acquire_for(span), FailsWith(Errc::deadline));
        EXPECT_THAT(lock.acquire_until(Instant{span}), FailsWith(Errc::deadline));
    }
    EXPECT_THAT(world.events(), IsEmpty());
    EXPECT_TRUE(lock.try_lock_for(nan)) << "makes one attempt, as for every span that is not positive";
    lock.unlock();
    EXPECT_TRUE(lock.try_lock_until(Instant{nan}));
    lock.unlock();
    EXPECT_THAT(lock.acquire_for(infinity), Succeeds());
    lock.unlock();
    EXPECT_THAT(lock.acquire_until(Instant{infinity}), Succeeds());
}

// ---- Cancellation.

// If stop is requested before anything was sent, nothing is sent.
TEST(AStopOfAThread, SendsNothingIfRequestedBeforeTheFirstAttempt) {
    World world;
    std::stop_source source;
    source.request_stop();
    auto lock = world.lock();
    const auto result = lock.acquire(source.get_token());
    EXPECT_THAT(result, FailsWith(Errc::cancelled));
    EXPECT_EQ(result.attempts(), 0);
    EXPECT_THAT(world.events(), IsEmpty());
}

// A stop request ends a pause at once. The report is that of the last attempt.
TEST_P(AStop, EndsAPauseAtOnce) {
    AnyWorld world{GetParam()};
    world.occupy(1h, 0, 1, 2);
    std::stop_source source;
    world.after(70ms, [&] { source.request_stop(); });
    auto lock = world.lock({.retry = {.delay = 200ms}});
    const auto took = time_taken(world, [&] {
        const auto result = lock.acquire(source.get_token());
        EXPECT_THAT(result, FailsWith(Errc::cancelled));
        EXPECT_EQ(result.attempts(), 1);
        EXPECT_EQ(result.nodes()[0].vote, Vote::refused);
    });
    EXPECT_THAT(took, Lasts(70ms));
    EXPECT_EQ(std::ranges::count(world.events(), "set #1 for 10000 ms"), 1);
    EXPECT_EQ(world.held_by(""), 2U);
}

// A stop request ends a round within one node_timeout. Keys that were set are cleaned up (B6).
TEST(AStopOfAThread, EndsARoundWithinOneNodeTimeout) {
    World world{5, 50ms};
    world.silence(2, 3, 4);
    std::stop_source source;
    world.after(10ms, [&] { source.request_stop(); });
    auto lock = world.lock();
    const auto took = time_taken(world, [&] {
        const auto result = lock.acquire(source.get_token());
        EXPECT_THAT(result, FailsWith(Errc::cancelled));
        EXPECT_EQ(result.nodes()[3].cause, Errc::not_asked);
    });
    EXPECT_LE(took, 50ms + 50ms) << "the node_timeout of the node being asked, and that of the clean-up";
    EXPECT_THAT(world.events(), ElementsAre("set #1 for 10000 ms", "delete #1 on 0 1 2"));
    EXPECT_EQ(world.owner_on(0), "");
}

// A12. One refusal before the stop request does not show contention, because other nodes were not asked.
TEST(AStopOfAThread, IsNotReportedAsContentionAfterOneRefusal) {
    World world;
    world.occupy(1h, 0);
    world.silence(1);
    std::stop_source source;
    world.after(10ms, [&] { source.request_stop(); });
    EXPECT_THAT(world.lock(no_retry()).acquire(source.get_token()), FailsWith(Errc::cancelled));
}

// A12. If a majority has refused before the stop request, the attempt has failed because of contention.
TEST_P(AStop, DoesNotHideThatAMajorityHasRefused) {
    AnyWorld world{GetParam()};
    world.occupy(1h, 0, 1, 2);
    world.slow(3, 10ms);
    std::stop_source source;
    world.after(5ms, [&] { source.request_stop(); });
    EXPECT_THAT(world.lock(no_retry()).acquire(source.get_token()), FailsWith(Errc::held_by_other));
    EXPECT_TRUE(source.stop_requested());
}

// If a majority has granted the lock, it is held even if stop was requested in the same round.
TEST_P(AStop, DoesNotUndoAMajority) {
    AnyWorld world{GetParam()};
    world.slow(3, 10ms);
    std::stop_source source;
    world.after(5ms, [&] { source.request_stop(); });
    auto lock = world.lock();
    EXPECT_THAT(lock.acquire(source.get_token()), Succeeds());
    EXPECT_TRUE(lock.valid());
}

// With a deadline as well, whichever comes first counts.
TEST(AStopOfAThread, CanBeCombinedWithADeadline) {
    World world;
    world.occupy(1h, 0, 1, 2);
    auto lock = world.lock({.retry = {.delay = 100ms}});
    std::stop_source early, late;
    world.after(300ms, [&] { early.request_stop(); });
    EXPECT_THAT(lock.acquire_for(1s, early.get_token()), FailsWith(Errc::cancelled));
    world.after(10s, [&] { late.request_stop(); });
    EXPECT_THAT(lock.acquire_for(1s, late.get_token()), FailsWith(Errc::held_by_other));
    EXPECT_THAT(lock.acquire_until(world.clock.now() + 10s, late.get_token()), FailsWith(Errc::cancelled));
}

}  // namespace
}  // namespace redlock::test::deadline_and_stop_test
