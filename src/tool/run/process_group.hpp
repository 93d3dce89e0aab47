// The process group of the program. It has the program and the processes that the program starts, so that all
// of them can be signalled together.
#pragma once

#include "guardian.hpp"
#include "process/signals.hpp"
#include "processes.hpp"
#include "terminal.hpp"

#include <sys/types.h>
#include <sys/wait.h>

#include <atomic>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::tool {

class ProcessGroup : detail::NotCopied {
public:
    struct Start {
        std::vector<std::string> words;        ///< the program, looked up in PATH, and its arguments
        std::vector<std::string> environment;  ///< more variables, "NAME=value", of which we have none
        bool in_foreground = false;            ///< the group gets the terminal
        Guardian* guardian = nullptr;          ///< ends the group if redlock dies before it
    };

    /// Starts the program. Its signals are as `signals` found them. If it cannot be executed, the exit status
    /// is 126 or 127, as in a shell. Throws std::system_error if no process can be started.
    ProcessGroup(const Start& start, const Signals& signals, const Terminal& terminal);
    /// Kills the group if an exception ends its supervision, because it must not go on without the lock.
    ~ProcessGroup() {
        if (std::uncaught_exceptions() > 0) (void)signal(SIGKILL);
    }

    pid_t id() const noexcept { return id_; }

    /// Takes notice of the processes that have ended, stopped or continued since the last call. Never waits.
    void refresh();

    /// Returns the exit status of the program itself, or 128 + the signal that killed it. Returns nothing
    /// while the program runs.
    std::optional<int> status() const noexcept;

    /// Returns the signal that killed the program, otherwise 0.
    int killed_by() const noexcept { return end_ && WIFSIGNALED(*end_) ? WTERMSIG(*end_) : 0; }

    /// Returns the errno of a program that could not be executed, otherwise 0.
    int failure() const noexcept { return failure_; }

    /// Returns the signal that has stopped a process of the group since the last call, if one did.
    std::optional<int> take_stop() noexcept { return std::exchange(stop_, std::nullopt); }

    /// Returns true if anybody has continued the program since the last call.
    bool take_continuation() noexcept { return std::exchange(continued_, false); }

    /// Returns true if a process of the group was stopped and not continued.
    bool stopped() const noexcept { return stopped_; }

    /// Returns true if a process of the group is alive, also after the end of the program. Zombies do not
    /// count: those of our children are gone after refresh(), and those of a daemon may stay while it lives.
    bool alive() { return !end_ || (alive_ = find_alive(id_, alive_)) != 0; }

    /// Sends a signal to the whole group. Continues the stopped processes, so that they can handle it.
    /// Returns false if redlock has no permission to do so.
    bool signal(int number) const noexcept { return signal_group(id_, number); }

private:
    Guardian* const guardian_;
    std::atomic<int>& failure_;  // errno, shared with the child; never unmapped
    pid_t id_ = -1;
    std::optional<int> end_{};  // of the program, as waitpid() reports it
    std::optional<int> stop_{};
    bool stopped_ = false;
    bool continued_ = false;
    pid_t alive_ = 0;  // a process of the group that has outlived the program
};

}  // namespace redlock::tool
