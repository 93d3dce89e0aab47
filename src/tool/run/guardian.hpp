// Ends the command when `redlock run` has died without a chance to do it: killed, or for want of memory.
//
// A process of a session of its own, which what ends our group, our session or our terminal does not reach.
// It waits for the end of a pipe that we alone hold open: that comes with our end, however we end.
#pragma once

#include <redlock/clock.hpp>

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace redlock::tool {

class Guardian {
public:
    /// Starts it. With `kills` it ends what is left by SIGKILL after the grace, and when the lease ends at
    /// the latest; without, it tells it to end and no more. Throws std::system_error where no process is to
    /// be had.
    Guardian(bool kills, std::chrono::nanoseconds grace);
    /// Nothing is to be ended any more. What it had open stays so: the program is about to end.
    ~Guardian();
    Guardian(const Guardian&) = delete;
    Guardian& operator=(const Guardian&) = delete;

    /// The process group that it is to end. In the child, before it becomes the command: then there is no
    /// moment at which our death would go unnoticed. Returns when what ends our group does not reach the
    /// guardian any more.
    void guard(pid_t group) const noexcept;

    /// Others may hold the lock from then on. Where the guardian was killed, another takes its place.
    void lease_ends(Clock::time_point instant) noexcept;

    /// What waitpid() for any child has come to: this may be the guardian.
    void record_exit(pid_t process, int status) noexcept;

private:
    /// What both processes see.
    struct Shared {
        std::atomic<pid_t> group = 0;
        std::atomic<std::int64_t> lease_ends = 0;  // nanoseconds of boot_clock()
    };

    int start() noexcept;  // errno, or 0
    [[noreturn]] void wait_for_our_end(int ready) const noexcept;
    void end(pid_t group) const noexcept;

    const bool kills_;
    const std::chrono::nanoseconds grace_;
    Shared* shared_ = nullptr;
    std::array<int, 2> pipe_{-1, -1};  // its writing end is ours alone
    int ready_ = -1;                   // of another pipe, which ends when the guardian has left our session
    pid_t id_ = -1;                    // none where it has ended
    Clock::time_point started_at_{};
};

}  // namespace redlock::tool
