// Whether a process, or all processes of a process group, have ended, and signals to all of a group.
//
// A process that has ended stays in its group as a zombie until its parent waits for it. A parent that lives
// outside of the group, such as a daemon, may never do that.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <cerrno>
#include <csignal>
#include <new>
#include <system_error>

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

/// Returns an object that this process shares with its later children. It is never unmapped. Throws
/// std::system_error with the text `what` if there is no memory.
template <class T>
T& shared_with_children(const char* what) {
    void* const page = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) throw std::system_error{errno, std::generic_category(), what};
    return *new (page) T{};
}

/// Returns false if /proc is missing, or belongs to another namespace of processes.
bool proc_shows_our_processes();

/// Returns true if a process has ended. `file` is its /proc/PID/stat. It may be relative to `directory`, as
/// for openat(). The file is gone with the process (ENOENT), or does not belong to a process any more
/// (ESRCH). Any other error says nothing about the process. A process is shown as a zombie (Z) when its first
/// thread has ended, even if other threads of it run.
bool has_ended(int directory, const char* file);

class GroupMembers {
public:
    /// Returns false if the group has no process, or if all its processes are zombies. Returns true if /proc
    /// does not show whether they are.
    bool any_alive(pid_t group);

private:
    pid_t last_found_ = 0;  // as long as this process lives, /proc need not be searched
};

}  // namespace redlock::tool
