// The signals that a thread waits for. They are blocked, and wait() takes them one at a time. Therefore no
// handler runs, and a signal that arrives between two calls of wait() is not missed. SIGPIPE and SIGXFSZ are
// ignored, because a process that dies of a failed write would leave its lock. No other disposition is
// changed (except that of SIGCHLD), so a child only has to call restore().
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/not_copied.hpp>

#include <unistd.h>

#include <array>
#include <csignal>
#include <initializer_list>
#include <optional>
#include <utility>

namespace redlock::tool {

/// The signals that end this process unless it waits for them, and that people, shells, timers and limits
/// send. While `run` or `acquire` has a lock or waits for one, it handles all of them. Otherwise it would die
/// and leave its keys.
inline constexpr std::initializer_list<int> ending_signals{SIGTERM, SIGINT,  SIGHUP,    SIGQUIT, SIGUSR1,
                                                           SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU};

/// There may be one object in a process. The signals stay blocked after its destruction, because redlock is
/// about to end then.
class Signals : detail::NotCopied {
public:
    /// Waits for `signals` and for SIGCHLD.
    explicit Signals(std::initializer_list<int> signals) noexcept;

    /// Also waits for these signals from now on. Threads and children that are started later do not receive
    /// them.
    void add(std::initializer_list<int> signals) noexcept;

    /// In a child: restores the state before the constructor. Signals that have arrived since take effect
    /// now. Safe between fork() and exec().
    void restore() const noexcept;

    /// Has a write into a pipe without a reader end this process again, if it did so before the constructor.
    /// For a process that holds no lock.
    void end_on_broken_pipe() const noexcept { (void)::signal(SIGPIPE, changed_.front().second); }

    /// Returns the next signal, or nothing if none arrives until `deadline`. Signals that were ignored when
    /// the process was started stay ignored, for example under nohup or in background jobs of sh.
    std::optional<int> wait(Clock::time_point deadline = Clock::never()) const noexcept;

    /// Makes wait() return SIGCHLD. The caller of wait() then checks everything that may have changed. May be
    /// called from any thread.
    static void wake() noexcept { ::kill(::getpid(), SIGCHLD); }

private:
    sigset_t awaited_{};
    sigset_t mask_before_{};
    /// The signals whose disposition the constructor changes, with the disposition to set, and from then on
    /// with the one from before.
    std::array<std::pair<int, void (*)(int)>, 3> changed_{
        {{SIGPIPE, SIG_IGN}, {SIGXFSZ, SIG_IGN}, {SIGCHLD, SIG_DFL}}};
};

/// Ends this process as `signal` would have ended it without a handler, so that the parent process sees the
/// signal. Returns the exit status if the process survives, as the first process of a container does. The
/// kernel writes no core file, because there may be passwords in it.
int die_of(int signal);

}  // namespace redlock::tool
