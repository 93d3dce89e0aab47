// The arguments of the subcommands that acquire, extend or release.
#pragma once

#include "node_arguments.hpp"

#include <redlock/error.hpp>
#include <redlock/options.hpp>
#include <redlock/result.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace redlock::tool {

/// Adds the arguments about the duration of a lease.
void add_lease(CLI::App& app, LockOptions& lock);

/// The arguments of one lock. A subcommand that does not acquire has only some of them.
struct LockArguments {
    NodeArguments nodes{};
    std::string resource{};
    /// The defaults are those of the library, but a program may need longer than a function, and nothing
    /// limits how long it holds the lock.
    LockOptions lock{.ttl = std::chrono::seconds{30}, .max_hold = std::chrono::nanoseconds::max()};
    bool nonblock = false;
    std::optional<std::chrono::nanoseconds> wait{};  ///< none: wait as long as another client holds the lock
    int conflict_exit_code = 1;
    bool quiet = false;
    bool verbose = false;  ///< also say how each node voted; each subcommand has its own text for this option

    /// Returns true if redlock must not wait for another holder.
    bool once() const noexcept { return nonblock || wait == std::chrono::nanoseconds::zero(); }

    /// Returns true if a message about this result must be printed: it is a failure, and --quiet does not
    /// suppress it.
    bool is_worth_a_word(const Result& result) const noexcept {
        return !result && !(quiet && result.error() == Errc::held_by_other);
    }

    /// Adds the arguments about acquiring.
    void add_acquisition(CLI::App& app);
};

}  // namespace redlock::tool
