// A library to preload into a program. The clock of the program, CLOCK_BOOTTIME, runs a thousand times faster
// than the real one, and poll() waits a thousand times shorter. A test can thus watch for hours in seconds.
#include <dlfcn.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr long factor = 1000;
constexpr long second = 1'000'000'000;

/// Returns nanoseconds. The fast clock starts at the first reading, so that the product does not overflow.
long fast(const timespec& time) noexcept {
    static const long start = time.tv_sec;
    return start * second + ((time.tv_sec - start) * second + time.tv_nsec) * factor;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
    const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
    if (result != 0 || clock != CLOCK_BOOTTIME) return result;
    const long now = fast(*time);
    *time = {now / second, now % second};
    return result;
}

/// Rounds up, so that a short wait does not become a busy loop.
int poll(pollfd* descriptors, nfds_t count, int milliseconds) {
    using Function = int (*)(pollfd*, nfds_t, int);
    static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "poll"));
    constexpr int divisor = factor;
    return real(descriptors, count, milliseconds > 0 ? (milliseconds + divisor - 1) / divisor : milliseconds);
}
}
