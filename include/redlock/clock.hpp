// Time as an argument: the algorithm sees no clock but this one.
//
// Production uses boot_clock(), which counts the time the machine was suspended: Redis goes on expiring
// keys while a laptop sleeps, so a lock's validity must go on running out, too (rule C5). Tests and
// simulations hand in a clock of their own.
#pragma once

#include <redlock/export.hpp>

#include <chrono>
#include <stop_token>

namespace redlock {

class REDLOCK_EXPORT Clock {
public:
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<Clock>;
    static constexpr bool is_steady = true;

    /// Never steps back, never jumps with the wall clock. S12: read before the first byte is sent.
    virtual time_point now() noexcept = 0;

    /// Returns at `until`, or earlier as soon as `stop` is stopped. Must not throw, not even if there is no
    /// memory, because release() and the watchdog's thread call it.
    virtual void sleep_until(time_point until, std::stop_token stop) = 0;

    /// The deadline of a caller that has none.
    static constexpr time_point never() noexcept { return time_point::max(); }

protected:
    ~Clock() = default;
};

/// `now + span`, where a span too long for the clock (or std::chrono::hours::max()) means never.
template <class Rep, class Period>
Clock::time_point deadline_after(Clock::time_point now, std::chrono::duration<Rep, Period> span) {
    using Seconds = std::chrono::duration<double>;
    if (Seconds{span} >= Seconds{Clock::never() - now}) return Clock::never();
    if (Seconds{span} <= Seconds::zero()) return now;
    return now + std::chrono::ceil<Clock::duration>(span);
}

/// CLOCK_BOOTTIME on Linux, mach_continuous_time on macOS, std::chrono::steady_clock elsewhere.
REDLOCK_EXPORT Clock& boot_clock() noexcept;

}  // namespace redlock
