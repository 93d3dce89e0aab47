// A library to preload that delays the guardian of `redlock run` by half a second before two of its system
// calls: setsid(), and the opening of the file with its score for the case that memory is short. If an action
// depends on one of them and happens too early, the test fails every time and not once in a thousand runs.
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstring>

static void wait_for_half_a_second() noexcept {
    const timespec half_a_second{0, 500'000'000};
    ::nanosleep(&half_a_second, nullptr);
}

extern "C" pid_t setsid() noexcept {
    wait_for_half_a_second();
    return static_cast<pid_t>(::syscall(SYS_setsid));
}

extern "C" int open(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (std::strcmp(path, "/proc/self/oom_score_adj") == 0) wait_for_half_a_second();
    return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
