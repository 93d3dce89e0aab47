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

/// How the command is watched.
struct SupervisionPolicy {
    OnLost on_lost = OnLost::stop;
    std::chrono::nanoseconds grace = std::chrono::seconds{5};
    std::chrono::nanoseconds look_every = std::chrono::seconds{5};  ///< at the lock
    Clock::time_point look_at = Clock::never();                     ///< and once at that instant
    /// Says why the lock was lost, once it is.
    std::function<std::optional<std::string>()> look_at_lock{};
    bool has_terminal = false;  ///< the command got it when it was started
};

struct Ending {
    int status;  ///< that of the command, or exit_status::lost where it had to be stopped
    /// SIGINT or SIGQUIT if Ctrl-C or Ctrl-\ has killed the command, which alone got the signal.
    std::optional<int> interrupted_by;
};

/// Returns when the whole group has ended.
Ending supervise(ProcessGroup& command, const Signals& signals, Terminal& terminal,
                 const SupervisionPolicy& policy);

}  // namespace redlock::tool
