// Whether a process, or all processes of a process group, have ended, signals to all of a group, and the
// descriptors that a process has inherited.
//
// A process that has ended stays in its group as a zombie until its parent waits for it. A parent that lives
// outside of the group, such as a daemon, may never do that.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

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

/// Closes every descriptor from `number` up, except `kept`, which gets this number. A process that stays
/// behind must not keep those of its parent open: whoever waits for the end of a pipe, or for a lock of
/// flock(), would wait for that process.
inline void keep_descriptor(int kept, int number) noexcept {
    ::dup2(kept, number);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    ::closefrom(number + 1);
#else
    for (long it = ::sysconf(_SC_OPEN_MAX); it > number; --it) ::close(static_cast<int>(it));
#endif
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

/// Returns a process of the group that is alive. Returns 0 if the group has no process, or if all its
/// processes are zombies, and `group` if /proc does not show whether they are. As long as the process `first`
/// of the group lives, /proc is not searched.
pid_t find_alive(pid_t group, pid_t first = 0);

}  // namespace redlock::tool
