// Ends the command when `redlock run` has died without a chance to do it: killed, or for want of memory.
//
// A process of a session of its own, which what ends our group, our session or our terminal does not reach.
// It waits for the end of a pipe that we alone hold open: that comes with our end, however we end.
#pragma once

#include <redlock/clock.hpp>

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace redlock::tool {

class Guardian {
public:
    /// Starts it. With `kills` it ends what is left by SIGKILL after the grace, and when the lease ends at
    /// the latest; without, it tells it to end and no more. Throws std::system_error where no process is to
    /// be had.
    Guardian(bool kills, std::chrono::nanoseconds grace);
    /// Nothing is to be ended any more.
    ~Guardian();
    Guardian(const Guardian&) = delete;
    Guardian& operator=(const Guardian&) = delete;

    /// The process group that it is to end. In the child, before it becomes the command: then there is no
    /// moment at which our death would go unnoticed.
    void guard(pid_t group) const noexcept { shared_->group = group; }

    /// Others may hold the lock from then on.
    void lease_ends(Clock::time_point instant) const noexcept;

private:
    /// What both processes see.
    struct Shared {
        std::atomic<pid_t> group = 0;
        std::atomic<std::int64_t> lease_ends = 0;  // nanoseconds of boot_clock()
    };

    [[noreturn]] void wait_for_our_end(int pipe) const noexcept;
    void end(pid_t group) const noexcept;

    const bool kills_;
    const std::chrono::nanoseconds grace_;
    Shared* shared_ = nullptr;
    int pipe_ = -1;  // the writing end
    pid_t id_ = -1;
};

}  // namespace redlock::tool
