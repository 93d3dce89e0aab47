// Makes attempts to acquire a lock, until one succeeds, a retry is pointless, or a limit is reached. An
// attempt is steps 1 to 5 of the Redlock algorithm (algorithm.hpp). Between two attempts the client pauses
// for a random time. With LockOptions::fair it waits in a queue instead, while another client holds the
// resource (waiting.hpp).
//
// The loop itself is in src/flow/retries.cpp.
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
    /// so that Lock::lock() waits without limit. For a client in a queue, such attempts never count.
    bool wait_while_held = false;
    /// How long a request with LeaseRequest::fair waits in the queue. Zero means that it does not queue.
    std::chrono::milliseconds queue_timeout = std::chrono::milliseconds::max();
};

/// Returns true if another attempt could have another outcome: the holder can release the resource, the next
/// round can be faster, or enough nodes can recover without an operator. For example, a node that times out
/// can recover, and a node that rejects the password cannot (is_transient() in error.hpp).
inline bool worth_retrying(const Result& result) {
    if (result.error() == Errc::held_by_other || result.error() == Errc::validity_exhausted) return true;
    if (result.error() != Errc::no_quorum) return false;
    const auto hopeless = std::ranges::count_if(result.nodes(), [](const NodeReport& node) {
        return node.vote == Vote::unknown && !is_transient(node.cause);
    });
    return result.nodes().size() - static_cast<std::size_t>(hopeless) >= quorum(result.nodes().size());
}

/// Returns when the pause after an attempt has to end at the latest, so that the next attempt fits before the
/// deadline. The next attempt gets twice the time that the one before the pause took, and at least 1 ms. For
/// example, if that one took 20 ms and the deadline is in 1 s, the pause ends in 960 ms at the latest.
///
/// The next attempt gets at most half of the time until the deadline. Otherwise there would be no pause after
/// a slow attempt. The nodes that slowed it down may recover during the pause.
inline Clock::time_point latest_attempt(Clock::time_point now, Clock::time_point deadline,
                                        Clock::duration last_attempt_took) {
    const auto left = deadline - now;
    const auto attempt = std::max<Clock::duration>(2 * last_attempt_took, std::chrono::milliseconds{1});
    return deadline - std::min(attempt, left / 2);
}

/// Acquires the resources of a request, and blocks until the end. On success `lease` is the new lease,
/// otherwise it is unchanged. The number of attempts is that of `limits`; `retry` only gives the pause.
REDLOCK_EXPORT Result acquire(Nodes& nodes, Clock& clock, Entropy& entropy, const LeaseRequest& request,
                              const Retry& retry, const AcquireLimits& limits, Lease& lease);

/// Acquires one of the resources of a request, as acquire() does, for a Semaphore (semaphore.hpp). `index`
/// becomes the index of the resource that was acquired, or else tried last. If none was tried, it is
/// unchanged.
REDLOCK_EXPORT Result acquire_one(Nodes& nodes, Clock& clock, Entropy& entropy, const LeaseRequest& request,
                                  const Retry& retry, const AcquireLimits& limits, Lease& lease,
                                  std::size_t& index);

}  // namespace redlock::algorithm
