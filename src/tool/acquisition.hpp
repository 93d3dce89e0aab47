// Acquiring for a user who may want to stop waiting: by -n, by -w, or by a signal.
#pragma once

#include "any_lock.hpp"
#include "lock_arguments.hpp"
#include "signals.hpp"

#include <redlock/result.hpp>

#include <optional>
#include <stop_token>

namespace redlock::tool {

struct Acquisition {
    Result result;
    std::optional<int> interrupted{};  ///< by this signal
};

/// Waits as the arguments say. Without a limit also for nodes: then it says once on stderr that too few
/// answer. `fair`: the lock waits in a queue.
Result acquire_as_told(Acquirable& lock, const AcquireArguments& arguments, bool fair,
                       const std::stop_token& stop);

/// The same in a thread of its own, so that one of `signals` can end it.
Acquisition acquire(AnyLock& lock, const AcquireArguments& arguments, bool fair, const Signals& signals);

}  // namespace redlock::tool
