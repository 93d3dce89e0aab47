// Sends signals to a process group. Safe in a signal handler.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <csignal>

namespace redlock::tool {

/// Returns true if the group has a process. The kernel does not reuse the number of a group while a process
/// of it exists. Only just after the last one has ended may the number belong to another group.
inline bool group_exists(pid_t group) noexcept {
    return ::kill(-group, 0) == 0 || errno == EPERM;
}

/// Sends a signal to all processes of the group. Stopped processes are continued, so that they can react to
/// it. Returns false if this process has no permission.
inline bool signal_group(pid_t group, int number) noexcept {
    const bool allowed = ::kill(-group, number) == 0 || errno == ESRCH;
    if (number != SIGTSTP && number != SIGCONT) ::kill(-group, SIGCONT);
    return allowed;
}

}  // namespace redlock::tool
