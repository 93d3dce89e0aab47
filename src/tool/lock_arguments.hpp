// The arguments of the subcommands that acquire or extend.
#pragma once

#include "value_options.hpp"

#include <redlock/error.hpp>
#include <redlock/options.hpp>
#include <redlock/result.hpp>

#include <chrono>
#include <optional>

namespace redlock::tool {

/// The arguments about the duration of a lease.
struct LeaseArguments {
    std::chrono::milliseconds ttl = std::chrono::seconds{30};
    double drift_factor = LockOptions{}.drift_factor;

    void add_to(CLI::App& app);
};

/// The arguments about acquiring.
struct AcquireArguments {
    bool nonblock = false;
    std::optional<std::chrono::nanoseconds> wait{};  ///< none: wait as long as another client holds the lock
    int conflict_exit_code = 1;
    bool quiet = false;
    bool verbose = false;  ///< also say how each node voted; each subcommand has its own text for this option
    bool fencing = false;
    std::chrono::milliseconds retry_delay = Retry{}.delay;

    /// Returns true if the command must not wait for another holder.
    bool once() const noexcept { return nonblock || wait == std::chrono::nanoseconds::zero(); }

    /// Returns true if a message about this result must be printed: it is a failure, and --quiet does not
    /// suppress it.
    bool is_worth_a_word(const Result& result) const noexcept {
        return !result && !(quiet && result.error() == Errc::held_by_other);
    }

    void add_to(CLI::App& app);
};

}  // namespace redlock::tool
