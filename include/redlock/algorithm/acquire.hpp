// The limits of an acquisition. An acquisition makes attempts until one succeeds, a retry is pointless, or a
// limit is reached. An attempt sets the key on all nodes, and deletes it again if no majority grants it in
// time (algorithm.hpp). Between two attempts the client pauses for a random time. With LockOptions::fair,
// while another client holds the resource, the client waits in a queue in place of the pause (waiting.hpp).
//
// The loop of the attempts is in src/flow/acquire.cpp.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/error.hpp>
#include <redlock/nodes.hpp>
#include <redlock/result.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <stop_token>

namespace redlock::algorithm {

/// The limits of an acquisition.
struct AcquireLimits {
    int attempts = std::numeric_limits<int>::max();
    Clock::time_point deadline = Clock::never();
    std::stop_token stop{};
    /// If true, an attempt that fails because another client holds the resource sets the count of `attempts`
    /// back to 0, so that Lock::lock() waits without limit. For a client that queues, Acquire
    /// (src/flow/acquire.hpp) always does this.
    bool wait_while_held = false;
    /// How long a client with LockOptions::fair waits in the queue. Zero means that it does not queue. A Lock
    /// computes it from LockOptions::queue_timeout for each function.
    std::chrono::milliseconds queue_timeout = std::chrono::milliseconds::max();
};

/// Returns true if another attempt could succeed: the holder can release the resource, the next round can be
/// faster, or enough nodes can recover without an operator. For example, a node that times out can recover,
/// and a node that rejects the password cannot (is_transient() in error.hpp).
inline bool worth_retrying(const Result& result) {
    if (result.error() == Errc::held_by_other || result.error() == Errc::validity_exhausted) return true;
    if (result.error() != Errc::no_quorum) return false;
    const auto hopeless = std::ranges::count_if(result.nodes(), [](const NodeReport& node) {
        return node.vote == Vote::unknown && !is_transient(node.cause);
    });
    return result.nodes().size() - static_cast<std::size_t>(hopeless) >= quorum(result.nodes().size());
}

/// Returns when the pause before the next attempt ends at the latest: at the later one of two instants.
///
/// - The deadline minus twice the time of the last attempt, but at least 1 ms. So the attempt has time to
///   end. For example, if the last one took 20 ms, this instant is 40 ms before the deadline.
/// - The middle of the time until the deadline. So slow nodes have time to recover.
inline Clock::time_point latest_attempt(Clock::time_point now, Clock::time_point deadline,
                                        Clock::duration last_attempt_took) {
    const auto left = deadline - now;
    const auto time_for_attempt =
        std::max<Clock::duration>(2 * last_attempt_took, std::chrono::milliseconds{1});
    return deadline - std::min(time_for_attempt, left / 2);
}

}  // namespace redlock::algorithm
