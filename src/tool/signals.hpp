// The signals that a thread waits for. They are blocked, and taken one at a time: no handler runs anywhere,
// and nothing that comes between two waits is missed. What they do is left as it was, so that a child has
// only the mask to restore.
#pragma once

#include <redlock/clock.hpp>

#include <csignal>
#include <initializer_list>
#include <optional>

namespace redlock::tool {

/// One at a time in a process. They stay blocked when it is gone: the program is about to end.
class Signals {
public:
    /// Those to wait for; SIGCHLD is always one of them.
    explicit Signals(std::initializer_list<int> signals) noexcept;
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    /// These, too, from now on. A thread that is started then, or a child, does not get them.
    void add(std::initializer_list<int> signals) noexcept;

    /// In a child: as it was before. What has come in between has its effect now. Safe between fork() and
    /// exec().
    void restore() const noexcept;

    /// The next one, for which it waits until `deadline` at most. Signals that were ignored when the process
    /// was started stay ignored (nohup, background jobs of sh).
    std::optional<int> wait(Clock::time_point deadline = Clock::never()) const noexcept;

    /// From any thread: wait() returns SIGCHLD, after which one looks what is new.
    static void wake() noexcept;

private:
    sigset_t awaited_{};
    sigset_t mask_before_{};
    void (*on_child_before_)(int);
};

}  // namespace redlock::tool
