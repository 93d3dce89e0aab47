// Rule C5: which system clock the real Clock reads. This program replaces clock_gettime(), so that the clocks
// differ as on a machine that was suspended or whose clock was set.
#include "world.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace {

constexpr std::time_t asleep = 1'000'000;  // seconds by which CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC
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

namespace redlock::test::boot_clock_test {
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

// A machine that sleeps must not extend a lock.
TEST_F(BootClock, CountsTheTimeForWhichTheMachineSleeps) {
    expect_to_read(CLOCK_BOOTTIME);
}

// A sandbox may reject CLOCK_BOOTTIME.
TEST_F(BootClock, UsesTheMonotonicClockIfBoottimeIsRejected) {
    boottime_refused = true;
    expect_to_read(CLOCK_MONOTONIC);
}

}  // namespace
}  // namespace redlock::test::boot_clock_test
