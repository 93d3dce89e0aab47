// The clock that keeps running while the machine is suspended (rule C5). Code outside of src/os gets the time
// from a Clock and reads no real clock itself.
#include <redlock/clock.hpp>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#if defined(__linux__)
#include <ctime>
#elif defined(__APPLE__)
#include <mach/mach_time.h>
#endif

namespace redlock {
namespace {

std::chrono::nanoseconds since_boot() noexcept {
#if defined(__linux__)
    timespec time{};
    // If a sandbox forbids this clock, use the one that stops while the machine is suspended. There is no
    // better one.
    if (::clock_gettime(CLOCK_BOOTTIME, &time) != 0) ::clock_gettime(CLOCK_MONOTONIC, &time);
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
#elif defined(__APPLE__)
    static const mach_timebase_info_data_t base = [] {
        mach_timebase_info_data_t info{};
        ::mach_timebase_info(&info);
        return info;
    }();
    return std::chrono::nanoseconds{static_cast<std::int64_t>(
        static_cast<__uint128_t>(::mach_continuous_time()) * base.numer / base.denom)};
#else
    return std::chrono::steady_clock::now().time_since_epoch();
#endif
}

class BootClock final : public Clock {
public:
    time_point now() noexcept override { return time_point{since_boot()}; }

    /// Allocates no memory, because the watchdog must be able to sleep when there is none. For this reason it
    /// does not use std::condition_variable_any.
    void sleep_until(time_point until, std::stop_token stop) override {
        std::mutex mutex;
        std::condition_variable stopped;
        const std::stop_callback wake{stop, [&] {
                                          const std::lock_guard guard{mutex};
                                          stopped.notify_all();
                                      }};
        std::unique_lock guard{mutex};
        // Waits for one second at a time. A wait of the C++ library makes no progress while the machine is
        // suspended, and `until` may have passed when the machine resumes.
        while (!stop.stop_requested() && now() < until)
            stopped.wait_for(guard, std::min<duration>(until - now(), std::chrono::seconds{1}));
    }
};

}  // namespace

Clock& boot_clock() noexcept {
    static BootClock clock;
    return clock;
}

}  // namespace redlock
