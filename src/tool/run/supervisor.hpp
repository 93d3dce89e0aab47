// Supervises a program that runs under a lock. The supervisor passes signals on to the program, and stops and
// continues together with it. It ends the program if the lock is lost.
#pragma once

#include "process/signals.hpp"
#include "process_group.hpp"
#include "terminal.hpp"

#include <redlock/clock.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace redlock::tool {

/// What happens to the program if its lock is lost.
enum class OnLost : std::uint8_t {
    stop,   ///< it gets SIGTERM, and SIGKILL after the grace
    term,   ///< it gets SIGTERM only
    ignore  ///< it goes on
};

/// How the program is supervised.
struct SupervisionPolicy {
    OnLost on_lost = OnLost::stop;
    std::chrono::nanoseconds grace = std::chrono::seconds{5};
    std::chrono::nanoseconds look_every = std::chrono::seconds{5};  ///< how often the lock is checked
    Clock::time_point look_at = Clock::never();                     ///< it is also checked at this instant
    /// Returns the reason if the lock is lost.
    std::function<std::optional<std::string>()> look_at_lock{};
    bool has_terminal = false;  ///< the program got the terminal when it was started
};

struct Ending {
    int status;  ///< the exit status of the program, or exit_status::lost if it was ended for a loss
    /// SIGINT or SIGQUIT if Ctrl-C or Ctrl-\ has killed the program, which alone got the signal.
    std::optional<int> interrupted_by;
    bool has_run;  ///< the program was executed
};

/// Returns when the whole group has ended.
Ending supervise(ProcessGroup& program, const Signals& signals, Terminal& terminal,
                 const SupervisionPolicy& policy);

}  // namespace redlock::tool
