// Makes attempts to acquire a lock, until an attempt succeeds, no further attempt can succeed, or a limit is
// reached. This is the retry of step 5 of the specification. The loop itself is in src/flow/retries.cpp.
//
// Between two attempts the client pauses for a random time. With LockOptions::fair it waits in a queue while
// another client holds the resource (waiting.hpp).
#pragma once

#include <redlock/algorithm.hpp>
#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/lease.hpp>
#include <redlock/nodes.hpp>
#include <redlock/result.hpp>
#include <redlock/retry.hpp>
#include <redlock/waiting.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <optional>
#include <stop_token>
#include <utility>

namespace redlock::algorithm {

/// The limits at which acquire() gives up.
struct AcquireLimits {
    int attempts = std::numeric_limits<int>::max();
    Clock::time_point deadline = Clock::never();
    std::stop_token stop{};
    /// If true, attempts that fail because another client holds the resource do not count towards `attempts`,
    /// so acquire() waits like std::mutex::lock(). In a queue, such attempts never count, whatever this flag
    /// says.
    bool wait_while_held = false;
    /// How long a fair request waits in the queue. Zero means that it does not queue. The default is no
    /// limit, which is for lock() and the functions with a deadline. acquire() passes
    /// LockOptions::queue_timeout.
    std::chrono::milliseconds queue_timeout = std::chrono::milliseconds::max();
};

/// Returns true if another attempt could have another outcome: the holder can release the resource, the next
/// round can be faster, or enough nodes can recover without an operator (see is_transient() in error.hpp).
inline bool worth_retrying(const Result& result) {
    if (result.error() == Errc::held_by_other || result.error() == Errc::validity_exhausted) return true;
    if (result.error() != Errc::no_quorum) return false;
    const auto hopeless = std::ranges::count_if(result.nodes(), [](const NodeReport& node) {
        return node.vote == Vote::unknown && !is_transient(node.cause);
    });
    return result.nodes().size() - static_cast<std::size_t>(hopeless) >= quorum(result.nodes().size());
}

/// Returns when the pause after an attempt has to end at the latest, so that there is time for one more
/// attempt before the deadline (rule A8). The time for this attempt is twice the time that the last one took,
/// and at least 1 ms. It is at most half of the time until the deadline, because nodes that slowed down the
/// last attempt may have recovered. If the deadline has passed, so has the returned instant.
inline Clock::time_point latest_attempt(Clock::time_point now, Clock::time_point deadline,
                                        Clock::duration last_attempt_took) {
    const auto left = deadline - now;
    const auto attempt = std::max<Clock::duration>(2 * last_attempt_took, std::chrono::milliseconds{1});
    return deadline - std::min(attempt, left / 2);
}

/// Acquires the resources of one request, in this thread. On success `lease` is the new lease. Otherwise
/// `lease` is unchanged.
REDLOCK_EXPORT Result acquire(Nodes& nodes, Clock& clock, Entropy& entropy, const LeaseRequest& request,
                              const Retry& retry, const AcquireLimits& limits, Lease& lease);

/// Acquires one of the resources of the request, in this thread (semaphore.hpp). `index` becomes the index of
/// the resource that was acquired, or else tried last. If none was tried, it is unchanged.
REDLOCK_EXPORT Result acquire_one(Nodes& nodes, Clock& clock, Entropy& entropy, const LeaseRequest& request,
                                  const Retry& retry, const AcquireLimits& limits, Lease& lease,
                                  std::size_t& index);

}  // namespace redlock::algorithm
