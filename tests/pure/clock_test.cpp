// Rule C5: time as an argument, and those properties of the real clock that need no waiting.
#include "world.hpp"

#include <thread>

namespace redlock::test::clock_test {
namespace {

using Hours = std::chrono::hours;
using FloatSeconds = std::chrono::duration<double>;

constexpr Clock::time_point noon{Hours{12}};

TEST(DeadlineAfter, AddsTheDuration) {
    EXPECT_EQ(deadline_after(noon, 3s), noon + 3s);
    EXPECT_EQ(deadline_after(noon, Hours{2}), noon + 2h);
    EXPECT_EQ(deadline_after(noon, FloatSeconds{0.5}), noon + 500ms);
}

// Rounding never turns a positive duration into zero.
TEST(DeadlineAfter, RoundsUp) {
    EXPECT_EQ(deadline_after(noon, FloatSeconds{1e-12}), noon + 1ns);
}

TEST(DeadlineAfter, ReturnsNowForANegativeDuration) {
    EXPECT_EQ(deadline_after(noon, 0s), noon);
    EXPECT_EQ(deadline_after(noon, -1ns), noon);
    EXPECT_EQ(deadline_after(noon, Hours::min()), noon);
    EXPECT_EQ(deadline_after(noon, FloatSeconds{-1e300}), noon);
}

TEST(DeadlineAfter, ReturnsNeverForADurationThatIsTooLong) {
    EXPECT_EQ(deadline_after(noon, Hours::max()), Clock::never());
    EXPECT_EQ(deadline_after(noon, std::chrono::milliseconds::max()), Clock::never());
    EXPECT_EQ(deadline_after(noon, Clock::duration::max()), Clock::never());
    EXPECT_EQ(deadline_after(noon, FloatSeconds{1e300}), Clock::never());
}

// C5. The clock never steps back.
TEST(BootClock, NeverStepsBack) {
    auto last = boot_clock().now();
    for (int reading = 0; reading < 10'000; ++reading) {
        const auto now = boot_clock().now();
        ASSERT_LE(last, now);
        last = now;
    }
}

TEST(BootClock, DoesNotSleepForAnInstantThatHasPassed) {
    boot_clock().sleep_until(boot_clock().now() - 1h, {});
    boot_clock().sleep_until(Clock::time_point::min(), {});
}

// The stop request comes before the sleep or, mostly, during it. If it did not end the sleep, each sleep
// would last for a second.
TEST(BootClock, DoesNotSleepAfterAStop) {
    const auto start = boot_clock().now();
    for (int time = 0; time < 100; ++time) {
        std::stop_source source;
        const std::jthread stopping{[&] { source.request_stop(); }};
        boot_clock().sleep_until(Clock::never(), source.get_token());
    }
    EXPECT_LT(boot_clock().now() - start, 30s);
}

}  // namespace
}  // namespace redlock::test::clock_test
