// How to lock: the arguments of the subcommands that acquire or extend.
#pragma once

#include "arguments.hpp"

#include <redlock/error.hpp>
#include <redlock/options.hpp>
#include <redlock/result.hpp>

#include <chrono>
#include <optional>

namespace redlock::tool {

/// How long a lease lasts.
struct LeaseArguments {
    std::chrono::milliseconds ttl = std::chrono::seconds{30};
    double drift_factor = LockOptions{}.drift_factor;

    void add_to(Arguments& arguments);
};

/// How to come by it.
struct AcquireArguments {
    bool nonblock = false;
    std::optional<std::chrono::nanoseconds> wait{};  ///< none: for as long as others hold it
    int conflict_exit_code = 1;
    bool quiet = false;
    bool fencing = false;
    std::chrono::milliseconds retry_delay = Retry{}.delay;

    /// No waiting for another holder.
    bool once() const noexcept { return nonblock || wait == std::chrono::nanoseconds::zero(); }

    /// A word about a failure: not where it was not to be said.
    bool is_worth_a_word(const Result& result) const noexcept {
        return !result && !(quiet && result.error() == Errc::held_by_other);
    }

    void add_to(Arguments& arguments);
};

}  // namespace redlock::tool
