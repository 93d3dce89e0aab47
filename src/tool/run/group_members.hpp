// The processes of a process group: whether one of them has not ended, and signals to all of them.
//
// A process that has ended stays in its group as a zombie until its parent waits for it. A parent that lives
// outside of the group, such as a daemon, may never do that.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <csignal>

namespace redlock::tool {

// ---- Safe in a signal handler

/// Returns true if the group has a process. The kernel does not reuse the number of a group while a process
/// of it exists. Only just after the last one has ended may the number belong to another group.
inline bool group_exists(pid_t group) noexcept {
    return ::kill(-group, 0) == 0 || errno == EPERM;
}

/// Sends a signal to all processes of the group. Stopped processes are continued, so that they can react to
/// it, but not by SIGWINCH, which the terminal sends when its window has a new size. Returns false if this
/// process has no permission.
inline bool signal_group(pid_t group, int number) noexcept {
    const bool allowed = ::kill(-group, number) == 0 || errno == ESRCH;
    if (number != SIGTSTP && number != SIGCONT && number != SIGWINCH) ::kill(-group, SIGCONT);
    return allowed;
}

// ---- Not safe in a signal handler

class GroupMembers {
public:
    /// Returns false if the group has no process, or if all its processes are zombies. Returns true if /proc
    /// does not show whether they are.
    bool any_alive(pid_t group);

private:
    pid_t last_found_ = 0;  // as long as this process lives, /proc need not be searched
};

}  // namespace redlock::tool
