// A library to preload that delays setsid() by half a second. If an action depends on setsid() and happens
// too early, the test fails every time and not once in a thousand runs.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern "C" pid_t setsid() noexcept {
    const timespec half_a_second{0, 500'000'000};
    ::nanosleep(&half_a_second, nullptr);
    return static_cast<pid_t>(::syscall(SYS_setsid));
}
