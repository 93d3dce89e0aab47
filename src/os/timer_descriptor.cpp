#include <redlock/detail/timer_descriptor.hpp>

#include <sys/timerfd.h>

#include <cerrno>
#include <ctime>
#include <system_error>

namespace redlock::detail {

int new_timer_descriptor() {
    const int descriptor = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (descriptor < 0) throw std::system_error(errno, std::system_category(), "timerfd_create");
    return descriptor;
}

/// A delay of 0 would stop the timer, so the shortest one is a nanosecond.
void set_timer(int descriptor, std::chrono::nanoseconds delay, std::chrono::nanoseconds& due) noexcept {
    const auto instant = std::chrono::steady_clock::now().time_since_epoch() + delay;
    if (instant >= due) return;
    due = instant;
    const auto seconds = std::chrono::floor<std::chrono::seconds>(delay);
    itimerspec spec{};
    spec.it_value.tv_sec = static_cast<std::time_t>(seconds.count());
    spec.it_value.tv_nsec = static_cast<long>((delay - seconds).count());
    if (delay <= delay.zero()) spec.it_value = {.tv_sec = 0, .tv_nsec = 1};
    ::timerfd_settime(descriptor, 0, &spec, nullptr);
}

}  // namespace redlock::detail
