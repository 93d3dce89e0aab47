// What wakes a thread that waits: signals, and events that other threads post. A pipe to oneself, written by
// signal handlers, so that nothing that comes between two waits is missed.
#pragma once

#include <redlock/clock.hpp>

#include <array>
#include <csignal>
#include <initializer_list>
#include <map>
#include <optional>

namespace redlock::tool {

/// One at a time in a process. Signals that it catches are what they were before when it is gone.
class EventPipe {
public:
    /// What woke us: the number of a signal, or one of these.
    static constexpr int finished = 0;  ///< a worker has done its work
    static constexpr int loss = -1;     ///< the lock was lost

    /// Throws std::system_error where there is no pipe to be had.
    EventPipe();
    ~EventPipe();
    EventPipe(const EventPipe&) = delete;
    EventPipe& operator=(const EventPipe&) = delete;

    /// Signals that were ignored when the process was started stay ignored (nohup, background jobs of sh);
    /// those that were blocked are not any more.
    void catch_signals(std::initializer_list<int> signals);

    /// Ignores `signal`, but not in a child.
    void ignore(int signal);

    /// What the signals did before: for a child. Safe between fork() and exec().
    void restore_all() const noexcept;
    void restore_mask() const noexcept;

    /// From any thread or signal handler.
    static void post(int event) noexcept;

    /// The next event, for which it waits until `deadline` at most.
    std::optional<int> wait(Clock::time_point deadline = Clock::never());

private:
    std::map<int, struct sigaction> before_{};
    sigset_t mask_before_{};
    std::array<int, 2> pipe_{-1, -1};
};

}  // namespace redlock::tool
