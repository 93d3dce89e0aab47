// A library to preload into a server. It changes the wall clock of the server as a file says, at any time:
//
//     LD_PRELOAD=libredlock_odd_clock.so REDLOCK_ODD_CLOCK=/tmp/clock redis-server ...
//     echo -3600 >/tmp/clock                  one hour slow
//     echo @1760000000123456 >/tmp/clock      stopped, at this number of microseconds after 1970
//
// (libfaketime does the same for more programs. But it fails with a redis-server on jemalloc, which reads the
// time while libfaketime allocates.) The library uses neither the heap nor the C++ library, because it runs
// before main().
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

namespace {

void set(timespec& time) noexcept {
    const char* const file = ::getenv("REDLOCK_ODD_CLOCK");
    if (!file) return;
    const int fd = ::open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    char text[32] = {};
    const auto length = ::read(fd, text, sizeof text - 1);
    ::close(fd);
    if (length <= 0) return;
    if (text[0] != '@') {
        time.tv_sec += ::atol(text);
    } else {
        const long microseconds = ::atol(text + 1);
        time = {microseconds / 1'000'000, microseconds % 1'000'000 * 1000};
    }
}

bool is_wall_clock(clockid_t clock) noexcept {
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
    const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
    if (result == 0 && is_wall_clock(clock)) set(*time);
    return result;
}

int gettimeofday(timeval* time, void* /*zone*/) noexcept {
    timespec now{};
    const int result = clock_gettime(CLOCK_REALTIME, &now);
    *time = {now.tv_sec, static_cast<suseconds_t>(now.tv_nsec / 1000)};
    return result;
}

time_t time(time_t* seconds) noexcept {
    timespec now{};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (seconds) *seconds = now.tv_sec;
    return now.tv_sec;
}
}
