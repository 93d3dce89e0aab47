// Attempts at a lock until one succeeds, none can, or a limit is reached: the "tries once more" of step 5.
//
// Between two attempts it pauses for a random time; or, with LockOptions::fair, it waits in a queue while
// others hold the resource (waiting.hpp).
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

/// When an acquire gives up.
struct AcquireLimits {
    int attempts = std::numeric_limits<int>::max();
    Clock::time_point deadline = Clock::never();
    std::stop_token stop{};
    bool wait_while_held =
        false;  ///< attempts refused by a holder are not counted: waits as std::mutex::lock()
    /// How long a fair request waits in the queue; zero if it does not queue.
    std::chrono::milliseconds queue_timeout = std::chrono::milliseconds::max();
};

/// Whether another attempt could end differently: the holder releases, or enough nodes recover by themselves.
inline bool worth_retrying(const Result& result) {
    if (result.error() == Errc::held_by_other || result.error() == Errc::validity_exhausted) return true;
    if (result.error() != Errc::no_quorum) return false;
    const auto hopeless = std::ranges::count_if(result.nodes(), [](const NodeReport& node) {
        return node.vote == Vote::unknown && !is_transient(node.cause);
    });
    return result.nodes().size() - static_cast<std::size_t>(hopeless) >= quorum(result.nodes().size());
}

/// When the pause after an attempt has to end at the latest, so that there is room for one more before the
/// deadline (rule A8): twice the time of the last one, but not more than half of what is left, for that one
/// may have been slowed by nodes that are well again.
inline Clock::time_point latest_attempt(Clock::time_point now, Clock::time_point deadline,
                                        Clock::duration last_attempt_took) {
    const auto left = deadline - now;
    const auto attempt = std::max<Clock::duration>(2 * last_attempt_took, std::chrono::milliseconds{1});
    return deadline - std::min(attempt, left / 2);
}

/// Pauses for a random time (S20), but not longer than until `latest`. Answers whether that came first: then
/// the next attempt is the last.
inline bool pause(Clock& clock, Entropy& entropy, const Retry& retry, Clock::time_point latest,
                  const std::stop_token& stop) {
    const auto wanted = clock.now() + random_pause(retry.delay, entropy);
    clock.sleep_until(std::min(latest, wanted), stop);
    return wanted > latest;
}

/// Waits in the queue, if there is one, or pauses while others hold the resource. Answers as pause() does.
inline bool wait_or_pause(PlaceInQueue* place, Clock& clock, Entropy& entropy, const Retry& retry,
                          Clock::time_point latest, const std::stop_token& stop) {
    if (place) {
        const auto wake = place->wait(latest, stop);
        if (wake != PlaceInQueue::Wake::no_queue) return wake == PlaceInQueue::Wake::over;
        latest = std::min(latest, place->until());
    }
    return pause(clock, entropy, retry, latest, stop);
}

/// Attempts until one succeeds, none can, or a limit is reached: `attempt` is given its limits and number,
/// and `pause`, which is given when it has to end at the latest and whether others were in the way, answers
/// whether the next attempt is the last. `waits`: those that others were in the way of do not count.
/// `last_attempt`: the first is the last.
template <class Attempt, class Pause>
Result repeat(Clock& clock, const AcquireLimits& limits, bool waits, bool last_attempt, Attempt attempt,
              Pause pause) {
    const RoundLimits round_limits{.deadline = limits.deadline, .stop = limits.stop};
    Result last{Errc::deadline};
    int counted = 0;
    for (int attempts = 1;; ++attempts) {
        const auto start = clock.now();
        if (limits.stop.stop_requested()) return last.conclude(Errc::cancelled, attempts - 1);
        if (start >= limits.deadline) return last;

        auto result = attempt(round_limits);
        if (!result.nodes().empty()) result.conclude(result.error(), attempts);
        const bool cut_short = result.error() == Errc::deadline;
        if (!cut_short || attempts == 1) last = std::move(result);  // one that was cut short is no news

        const bool held = last.error() == Errc::held_by_other;
        counted += waits && held ? 0 : 1;
        if (last || counted >= limits.attempts || last_attempt || !(cut_short || worth_retrying(last)))
            return last;
        const auto now = clock.now();
        if (now >= limits.deadline) return last;
        last_attempt = pause(latest_attempt(now, limits.deadline, now - start), held);
    }
}

/// Acquires one request; each attempt has an owner of its own (rule A5). While others hold the resource a
/// fair request waits in the queue. Several resources have no queue: waiting for one of them would keep the
/// others from clients that could have them.
inline Result acquire(Nodes& nodes, Clock& clock, Entropy& entropy, const LeaseRequest& request,
                      const Retry& retry, const AcquireLimits& limits, Lease& lease) {
    std::optional<PlaceInQueue> queued;
    bool last_attempt = false;
    if (request.fair && request.resources.size() == 1 && limits.queue_timeout > limits.queue_timeout.zero()) {
        const auto now = clock.now();
        queued.emplace(nodes, clock, entropy, request.resources, retry.delay,
                       deadline_after(now, limits.queue_timeout));
        if (nodes.contended().contains(request.resources.front())) {
            // Nothing is known yet of how long an attempt takes. There has to be time for a whole one,
            // because only an attempt can say that the resource is held; what is left after it is waited for
            // as well.
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
