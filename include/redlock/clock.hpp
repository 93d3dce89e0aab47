// The clock is an argument: the library reads the time from a Clock and from nothing else.
//
// Programs use boot_clock(). It counts the time during which the machine is suspended. Redis goes on expiring
// keys while a laptop sleeps, so the validity of a lock must run out as well. Tests and simulations pass a
// clock of their own.
#pragma once

#include <redlock/export.hpp>

#include <chrono>
#include <stop_token>

namespace redlock {

/// A steady clock with a resolution of nanoseconds. All threads may share it.
class REDLOCK_EXPORT Clock {
public:
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<Clock>;
    static constexpr bool is_steady = true;

    /// Returns the present time. It never goes backwards and does not follow changes of the wall clock.
    virtual time_point now() noexcept = 0;

    /// Blocks until `until`, or until a stop is requested on `stop`. Must not throw, even if there is no
    /// memory, because release() and the watchdog's thread call it.
    virtual void sleep_until(time_point until, std::stop_token stop) = 0;

    /// Returns the instant that means "no deadline".
    static constexpr time_point never() noexcept { return time_point::max(); }

protected:
    ~Clock() = default;
};

/// Returns `now + span`, or never() if `span` is too long for the clock, as std::chrono::hours::max() is.
/// Returns `now` if `span` is negative or not a number (NaN).
template <class Rep, class Period>
Clock::time_point deadline_after(Clock::time_point now, std::chrono::duration<Rep, Period> span) {
    using Seconds = std::chrono::duration<double>;
    if (Seconds{span} >= Seconds{Clock::never() - now}) return Clock::never();
    if (!(Seconds{span} > Seconds::zero())) return now;
    return now + std::chrono::ceil<Clock::duration>(span);
}

/// Returns the clock of the operating system: CLOCK_BOOTTIME on Linux, mach_continuous_time on macOS,
/// std::chrono::steady_clock elsewhere. It falls back to CLOCK_MONOTONIC if the first is not available.
REDLOCK_EXPORT Clock& boot_clock() noexcept;

}  // namespace redlock
