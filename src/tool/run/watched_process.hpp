// Waits for the end of a process that need not be a child.
#pragma once

#include <redlock/clock.hpp>

#include <sys/types.h>

namespace redlock::tool {

/// Holds a descriptor of the process, so the process cannot be mistaken for a later one with the same number.
/// This is the descriptor of pidfd_open(), or, if this system call is missing or forbidden, that of the
/// directory /proc/PID, in which a file is read from time to time.
class WatchedProcess {
public:
    /// Throws std::invalid_argument if there is no such process, or if it can be watched in neither way. The
    /// descriptor stays open, because this process ends soon, or when the other one does.
    explicit WatchedProcess(pid_t process);

    pid_t id() const noexcept { return id_; }

    /// Closes every other descriptor from `number` up, and uses this number.
    void keep_descriptor_only(int number) noexcept;

    /// Blocks until the process has ended, or until the instant. Returns true if the process has ended. A
    /// process lives as long as the system does not say that it has ended.
    bool ends_before(Clock::time_point instant) const noexcept;

private:
    const pid_t id_;
    int descriptor_;
    bool has_pidfd_;  // otherwise the descriptor is that of the directory
};

}  // namespace redlock::tool
