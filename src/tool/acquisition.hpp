// Acquiring for a user who may want to stop waiting: by -n, by -w, or by a signal.
#pragma once

#include "any_lock.hpp"
#include "event_pipe.hpp"
#include "lock_arguments.hpp"
#include "queue_reporter.hpp"

#include <redlock/result.hpp>

#include <optional>

namespace redlock::tool {

struct Acquisition {
    Result result;
    std::optional<int> interrupted{};  ///< by this signal
};

/// Acquires in a thread of its own, so that a signal of `events` can end it; waits as the arguments say.
/// `queue`: of a lock that waits in one, and the observer of its nodes; else null.
Acquisition acquire(AnyLock& lock, const AcquireArguments& arguments, QueueReporter* queue,
                    EventPipe& events);

}  // namespace redlock::tool
