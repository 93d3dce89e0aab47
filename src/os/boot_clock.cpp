// The clock that goes on while the machine sleeps (rule C5). Beside the poll loop, the only file that knows
// real time.
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
    // Where a sandbox refuses it, the clock that stops in suspend is the next best, and better than none.
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

    /// Needs no memory, because the watchdog must be able to sleep when there is none. Therefore it uses no
    /// std::condition_variable_any, which allocates.
    void sleep_until(time_point until, std::stop_token stop) override {
        std::mutex mutex;
        std::condition_variable stopped;
        const std::stop_callback wake{stop, [&] {
                                          const std::lock_guard guard{mutex};
                                          stopped.notify_all();
                                      }};
        std::unique_lock guard{mutex};
        // One second at a time: a wait of the C++ library stands still with the machine, and `until` may have
        // come when it wakes up.
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
