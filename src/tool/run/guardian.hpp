// Ends the program of `redlock run` if redlock dies without a chance to do so, because it was killed or the
// system has no memory left.
//
// The guardian is a process in a session of its own. Therefore a signal to the process group, the session or
// the terminal of redlock does not reach it. It reads from a pipe whose writing end only redlock has open.
// The pipe ends when redlock ends, whatever the reason is.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/not_copied.hpp>

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace redlock::tool {

class Guardian : detail::NotCopied {
public:
    /// Starts the guardian, which will end the program with SIGTERM. If `kills` is true, the guardian also
    /// sends SIGKILL to the processes that are left after the grace, or when the lease ends if that is
    /// earlier. Throws std::system_error if no process can be started.
    Guardian(bool kills, std::chrono::nanoseconds grace);
    /// Ends the guardian. The program stays as it is. The pipes stay open, because redlock is about to end.
    ~Guardian();

    /// Tells the guardian which process group it has to end. The child calls this function before it executes
    /// the program, so that no death of redlock can go unnoticed. Returns when the guardian has left the
    /// session of redlock, and has asked not to be killed before the program when memory is short.
    void guard(pid_t group) const noexcept;

    /// Tells the guardian when the lease ends. Another client can hold the lock from then on. Starts another
    /// guardian if this one was killed.
    void lease_ends(Clock::time_point instant) noexcept;

    /// Takes notice of a result of waitpid() for any child. Does nothing if that is not the guardian.
    void record_exit(pid_t process, int status) noexcept;

private:
    /// The memory that redlock and the guardian share.
    struct Shared {
        std::atomic<pid_t> group = 0;
        std::atomic<std::int64_t> lease_ends = 0;  // nanoseconds of boot_clock()
    };

    int start() noexcept;  // returns 0 or an errno
    [[noreturn]] void wait_for_our_end(int ready) const noexcept;
    void end(pid_t group) const noexcept;

    const bool kills_;
    const std::chrono::nanoseconds grace_;
    Shared& shared_;
    std::array<int, 2> pipe_{-1, -1};  // only redlock has the writing end
    int ready_ = -1;                   // another pipe, which ends when guard() may return
    pid_t id_ = -1;                    // -1 if the guardian has ended
    Clock::time_point started_at_{};
};

}  // namespace redlock::tool
