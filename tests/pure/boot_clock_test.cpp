// Rule C5: which clock the real one is. This program has a clock_gettime() of its own in place of the
// system's, so that the clocks differ as they do on a machine that has slept, or has been set.
#include "world.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace {

constexpr std::time_t asleep = 1'000'000;  // seconds that CLOCK_BOOTTIME has and CLOCK_MONOTONIC has not
bool boottime_refused = false;

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
    if (clock == CLOCK_BOOTTIME && boottime_refused) {
        errno = EPERM;
        return -1;
    }
    const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
    if (clock == CLOCK_BOOTTIME) time->tv_sec += asleep;
    return result;
}

namespace redlock::test {
namespace {

Clock::time_point reading(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return Clock::time_point{std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec}};
}

void expect_to_read(clockid_t clock) {
    const auto before = reading(clock);
    const auto now = boot_clock().now();
    EXPECT_LE(before, now);
    EXPECT_LE(now, reading(clock));
}

struct BootClock : testing::Test {
    void TearDown() override { boottime_refused = false; }
};

// A machine that sleeps holds no lock longer for that.
TEST_F(BootClock, GoesOnWhileTheMachineSleeps) {
    expect_to_read(CLOCK_BOOTTIME);
}

// Sandboxes may not know it.
TEST_F(BootClock, IsTheMonotonicOneWhereThatIsRefused) {
    boottime_refused = true;
    expect_to_read(CLOCK_MONOTONIC);
}

}  // namespace
}  // namespace redlock::test
