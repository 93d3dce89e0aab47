// Attempts to acquire a lock until one succeeds, no further one can succeed, or a limit is reached. This is
// the retry of step 5 of the specification.
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
    /// True if attempts that fail because another client holds the resource do not count towards `attempts`.
    /// acquire() then waits like std::mutex::lock(). If the client waits in a queue, such attempts do not
    /// count either.
    bool wait_while_held = false;
    /// How long a fair request waits in the queue. Zero means that it does not queue.
    std::chrono::milliseconds queue_timeout = std::chrono::milliseconds::max();
};

/// Returns true if another attempt could have another outcome, because the holder can release the resource or
/// enough nodes can recover without help.
inline bool worth_retrying(const Result& result) {
    if (result.error() == Errc::held_by_other || result.error() == Errc::validity_exhausted) return true;
    if (result.error() != Errc::no_quorum) return false;
    const auto hopeless = std::ranges::count_if(result.nodes(), [](const NodeReport& node) {
        return node.vote == Vote::unknown && !is_transient(node.cause);
    });
    return result.nodes().size() - static_cast<std::size_t>(hopeless) >= quorum(result.nodes().size());
}

/// Returns when the pause after an attempt has to end at the latest, so that there is time for one more
/// attempt before the deadline (rule A8). This is twice the time that the last attempt took before the
/// deadline. If that is more than half of the remaining time, it is half of the remaining time, because nodes
/// that slowed down the last attempt may have recovered.
inline Clock::time_point latest_attempt(Clock::time_point now, Clock::time_point deadline,
                                        Clock::duration last_attempt_took) {
    const auto left = deadline - now;
    const auto attempt = std::max<Clock::duration>(2 * last_attempt_took, std::chrono::milliseconds{1});
    return deadline - std::min(attempt, left / 2);
}

/// Pauses for a random time (S20), but not longer than until `latest`. Returns true if `latest` has cut the
/// pause short. The next attempt is then the last one.
inline bool pause(Clock& clock, Entropy& entropy, const Retry& retry, Clock::time_point latest,
                  const std::stop_token& stop) {
    const auto wanted = clock.now() + random_pause(retry.delay, entropy);
    clock.sleep_until(std::min(latest, wanted), stop);
    return wanted > latest;
}

/// Waits until the next attempt while another client holds the resource: in the queue, or by a pause if the
/// request has no place in a queue. Returns true if the next attempt is the last one.
inline bool wait_or_pause(PlaceInQueue* place, Clock& clock, Entropy& entropy, const Retry& retry,
                          Clock::time_point latest, const std::stop_token& stop) {
    if (place) {
        const auto wake = place->wait(latest, stop);
        if (wake != PlaceInQueue::Wake::no_queue) return wake == PlaceInQueue::Wake::over;
        latest = std::min(latest, place->until());
    }
    return pause(clock, entropy, retry, latest, stop);
}

/// Makes attempts until one succeeds, no further one can succeed, or a limit is reached. Returns the outcome
/// of the last attempt that was not cut short by the deadline.
///
/// - `make_attempt` makes one attempt within the limits of a round, and returns its outcome.
/// - `wait_for_next` waits between two attempts. It gets the instant at which the wait must end at the
///   latest, and whether another client holds the resource. It returns true if the next attempt is the last
///   one.
/// - `waits`: attempts that fail because another client holds the resource do not count towards
///   `limits.attempts`.
/// - `last_attempt`: makes one attempt only.
template <class MakeAttempt, class WaitForNext>
Result repeat(Clock& clock, const AcquireLimits& limits, bool waits, bool last_attempt,
              MakeAttempt make_attempt, WaitForNext wait_for_next) {
    const RoundLimits round_limits{.deadline = limits.deadline, .stop = limits.stop};
    Result last{Errc::deadline};
    int counted = 0;
    for (int attempts = 1;; ++attempts) {
        const auto start = clock.now();
        if (limits.stop.stop_requested()) return last.conclude(Errc::cancelled, attempts - 1);
        if (start >= limits.deadline) return last;

        auto result = make_attempt(round_limits);
        if (!result.nodes().empty()) result.conclude(result.error(), attempts);
        const bool cut_short = result.error() == Errc::deadline;
        // An attempt that the deadline has cut short says nothing about the resource.
        if (!cut_short || attempts == 1) last = std::move(result);

        const bool held = last.error() == Errc::held_by_other;
        counted += waits && held ? 0 : 1;
        if (last || counted >= limits.attempts || last_attempt || !(cut_short || worth_retrying(last)))
            return last;
        const auto now = clock.now();
        if (now >= limits.deadline) return last;
        last_attempt = wait_for_next(latest_attempt(now, limits.deadline, now - start), held);
    }
}

/// Acquires the resources of one request. Each attempt has an owner of its own (rule A5). While another
/// client holds the resource, a fair request waits in the queue. A request for several resources does not
/// queue, because a waiter for one resource would keep the others from clients that could have them.
inline Result acquire(Nodes& nodes, Clock& clock, Entropy& entropy, const LeaseRequest& request,
                      const Retry& retry, const AcquireLimits& limits, Lease& lease) {
    std::optional<PlaceInQueue> queued;
    bool last_attempt = false;
    if (request.fair && request.resources.size() == 1 && limits.queue_timeout > limits.queue_timeout.zero()) {
        const auto now = clock.now();
        queued.emplace(nodes, clock, entropy, request.resources, retry.delay,
                       deadline_after(now, limits.queue_timeout));
        if (nodes.contended().contains(request.resources.front())) {
            // Other clients wait for the resource already, so this client queues before its first attempt. It
            // does not know yet how long an attempt takes. Only an attempt can report that the resource is
            // held, so the wait leaves it one node_timeout, the double of the time that is passed here. If
            // time remains after the attempt, the client waits again.
            const auto latest = latest_attempt(now, limits.deadline, nodes.node_timeout() / 2);
            const bool over = queued->wait(latest, limits.stop) == PlaceInQueue::Wake::over;
            last_attempt = over && clock.now() >= queued->until();
        }
    }
    auto* const place = queued ? &*queued : nullptr;
    auto result = repeat(
        clock, limits, place || limits.wait_while_held, last_attempt,
        [&](const RoundLimits& round_limits) {
            if (!place) return attempt(nodes, clock, entropy, request, round_limits, lease);
            const auto start = clock.now();
            auto made = attempt(nodes, clock, entropy, request, round_limits, lease, place->terms());
            place->attempted(made, clock.now() - start);
            return made;
        },
        [&](Clock::time_point latest, bool held) {
            return held ? wait_or_pause(place, clock, entropy, retry, latest, limits.stop)
                        : pause(clock, entropy, retry, latest, limits.stop);
        });
    if (!place) return result;
    if (place->last()) result.set_place(*place->last());
    result.set_queue_refusals(place->refusals());
    return result;
}

}  // namespace redlock::algorithm
