// The command and all that it starts: a process group of its own, so that they can be signalled together.
#pragma once

#include "group_members.hpp"
#include "group_signals.hpp"
#include "guardian.hpp"
#include "signals.hpp"
#include "terminal.hpp"

#include <sys/types.h>

#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::tool {

class ProcessGroup {
public:
    struct Start {
        std::vector<std::string> words;        ///< the program, looked up in PATH, and its arguments
        std::vector<std::string> environment;  ///< "NAME=value", in addition to ours or in place of it
        std::vector<std::string> hidden{};     ///< "NAME=" of ours that it is not to have
        bool in_foreground = false;            ///< gets the terminal
        Guardian* guardian = nullptr;          ///< ends it, should we die before it
    };

    /// Starts it. Its signals are as `signals` found them. A program that cannot be executed has ended with
    /// 126 or 127, as in a shell. Throws std::system_error when no process can be made.
    ProcessGroup(const Start& start, const Signals& signals, const Terminal& terminal);
    ProcessGroup(const ProcessGroup&) = delete;
    ProcessGroup& operator=(const ProcessGroup&) = delete;

    pid_t id() const noexcept { return id_; }

    /// Takes notice of what has ended or stopped since. Never waits.
    void refresh();

    /// Of the command itself: its exit status, or 128 + the signal that killed it; none while it runs.
    std::optional<int> status() const noexcept { return status_; }

    /// The signal that killed it.
    std::optional<int> killed_by() const noexcept { return killed_by_; }

    /// Why it could not be executed, once it has ended for that.
    std::optional<int> failure() const noexcept;

    /// The signal that stopped the command, or what it has left behind, since this was last asked.
    std::optional<int> take_stop() noexcept { return std::exchange(stop_, std::nullopt); }

    /// Whether the command was continued, by anybody, since this was last asked.
    bool take_continuation() noexcept { return std::exchange(continued_, false); }

    /// Whether the command, or what it has left behind, was stopped and not continued.
    bool stopped() const noexcept { return stopped_; }

    /// Returns true if a process of the group is alive, also after the end of the command. Zombies do not
    /// count: those of our children are gone after refresh(), and those of a daemon may stay while it lives.
    bool alive() { return !status_ || members_.any_alive(id_); }

    /// To all of it; what is stopped is continued, so that it can take notice. False: we may not.
    bool signal(int number) const noexcept { return signal_group(id_, number); }

private:
    [[noreturn]] static void become(const Start& start, const std::vector<char*>& words,
                                    const std::vector<char*>& environment, const Signals& signals,
                                    const Terminal& terminal, std::atomic<int>& failure) noexcept;
    void record_stop(int status) noexcept;
    void record_exit(int status) noexcept;

    Guardian* const guardian_;
    std::atomic<int>& failure_;  // errno; the child sees it, too. Never unmapped: the program is about to end
    pid_t id_ = -1;
    std::optional<int> status_{};
    std::optional<int> killed_by_{};
    std::optional<int> stop_{};
    bool stopped_ = false;
    bool continued_ = false;
    GroupMembers members_{};
};

}  // namespace redlock::tool
