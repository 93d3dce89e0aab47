// Watches over a command that runs under a lock: passes signals on to it, stops and continues with it, ends
// it when the lock is lost, and comes back when nothing of it is left.
#pragma once

#include "process_group.hpp"
#include "signals.hpp"
#include "terminal.hpp"

#include <redlock/clock.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace redlock::tool {

/// What becomes of the command when its lock is lost.
enum class OnLost : std::uint8_t {
    stop,   ///< SIGTERM, the grace, SIGKILL
    term,   ///< SIGTERM only
    ignore  ///< it goes on
};

class Supervisor {
public:
    struct Policy {
        OnLost on_lost = OnLost::stop;
        std::chrono::nanoseconds grace = std::chrono::seconds{5};
        std::chrono::nanoseconds look_every = std::chrono::seconds{5};  ///< at the lock
        Clock::time_point look_at = Clock::never();                     ///< and once at that instant
    };

    /// `has_terminal`: the command got it when it was started. `look_at_lock` says why the lock was lost,
    /// once it is.
    Supervisor(ProcessGroup& command, const Signals& signals, Terminal& terminal, bool has_terminal,
               Policy policy, std::function<std::optional<std::string>()> look_at_lock);

    struct Ending {
        int status;        ///< that of the command, or exit_status::lost where it had to be stopped
        bool interrupted;  ///< by Ctrl-C, which reached the command alone
    };

    /// Returns when the whole group has ended.
    Ending run();

private:
    void handle(int signal);
    Clock::time_point next_look() const;
    bool command_runs() const noexcept { return !command_.status(); }

    void handle_stop(int signal);
    void resume();
    void lend_terminal_to_pipeline();
    void take_terminal_back();

    void handle_loss();
    void handle_leftovers();
    void kill();

    ProcessGroup& command_;
    const Signals& signals_;
    Terminal& terminal_;
    const Policy policy_;
    const std::function<std::optional<std::string>()> look_at_lock_;

    bool has_terminal_;         // the command has the terminal that we had
    bool wants_terminal_;       // and is to have it again when it goes on
    bool told_to_end_ = false;  // by a signal from outside
    bool loss_handled_ = false;
    bool stopped_for_loss_ = false;
    bool leftovers_handled_ = false;
    std::optional<Clock::time_point> kill_at_{};
};

}  // namespace redlock::tool
