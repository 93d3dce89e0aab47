// A process group as what is signalled together. Safe in a signal handler.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <csignal>

namespace redlock::tool {

/// The number of a group is not reused while a process of it is left, so there is no other to mistake for it
/// but in the instant after the last has gone.
inline bool group_exists(pid_t group) noexcept {
    return ::kill(-group, 0) == 0 || errno == EPERM;
}

/// What is stopped is continued, so that it can take notice. False: we may not.
inline bool signal_group(pid_t group, int number) noexcept {
    const bool allowed = ::kill(-group, number) == 0 || errno == ESRCH;
    if (number != SIGTSTP && number != SIGCONT) ::kill(-group, SIGCONT);
    return allowed;
}

}  // namespace redlock::tool
