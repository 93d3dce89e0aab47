// The descriptors that a process has inherited. A process that stays behind must not keep those of its parent
// open: whoever waits for the end of a pipe, or for a lock of flock(), would wait for that process.
#pragma once

#include <unistd.h>

namespace redlock::tool {

/// Closes every descriptor from `number` up, except `kept`, which gets this number. Safe between fork() and
/// exec(): it calls only what is safe in a signal handler.
inline void keep_descriptor(int kept, int number) noexcept {
    ::dup2(kept, number);
#if (defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)) || defined(__FreeBSD__)
    ::closefrom(number + 1);
#else
    for (long it = ::sysconf(_SC_OPEN_MAX); it > number; --it) ::close(static_cast<int>(it));
#endif
}

}  // namespace redlock::tool
