// Waiting in a queue (LockOptions::fair). A release wakes the client that has waited longest.
//
// The queue only decides which client tries next. Mutual exclusion does not depend on the queue, because a
// woken client holds the lock only if a majority of the nodes grants it, like any other client. The Redlock
// specification has no queue.
//
//   1. A client becomes a *waiter* when its *attempt* to acquire the lock is refused. If other clients have
//      recently held the resource or waited for it (ContendedResources), the client becomes a waiter before
//      its first attempt. A waiter chooses a *home node*, and subscribes to a channel there. The home node is
//      the first node in the configured order that accepts the subscription. Therefore almost all waiters
//      have the same home node.
//   2. The waiter sends a *question* (the command enter_queue) to the home node. This command puts the
//      *ticket* of the waiter, which names the channel, into the queue. The question says how long the
//      client has waited, because the node sorts the waiters by this time. The reply says who has the
//      resource, when the key expires, and how many waiters are in front.
//   3. The waiter sleeps until a message wakes it, or until it is time for another question.
//   4. A release deletes the key on every node. If a node has a queue, the same script also takes the first
//      waiter that is still subscribed out of the queue, sends a message to this waiter, and *reserves* the
//      resource: it sets the key to the ticket, with reservation_ttl() as the expiry. Until the key
//      expires, the node refuses other clients.
//   5. The woken waiter makes an attempt at all nodes. At the home node, the attempt first deletes the
//      reservation.
//
// If no message comes, the waiter sends another question, and it makes some attempts although it was not
// woken. docs/waiting.md has tables of these times, and of what faults of the queue cost. If something goes
// wrong with the queue, a client acquires the lock late or out of order. The steps of a waiter are in
// src/flow/place_in_queue.cpp.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/nodes.hpp>

#include <algorithm>
#include <chrono>

namespace redlock::algorithm {

/// The unit of most times of a waiter. For example, a waiter that is not the first one sends another question
/// after this time, or after up to four times as long if many waiters are in front.
inline constexpr Clock::duration poll_interval = std::chrono::milliseconds{250};

/// The shortest time between two questions of a waiter, whatever the home node reports.
inline constexpr Clock::duration shortest_sleep = std::chrono::milliseconds{10};

/// The longest time between two attempts of a waiter that is not woken. The actual time is random, between
/// half of this time and the whole. It does not depend on what the home node reports, because otherwise this
/// one node could keep all waiters from the lock.
inline constexpr Clock::duration longest_without_attempt = std::chrono::seconds{14};

/// If the home node reports no holder for two poll intervals, the waiters in front seem to be unable to make
/// attempts. Then each waiter makes one attempt. Each attempt comes this much later than the attempt of the
/// waiter in front, so that the waiters do not collide.
inline constexpr Clock::duration attempt_spacing = std::chrono::milliseconds{6};

/// How long a waiter stays at its home node before it tries to subscribe at a node that is earlier in the
/// configured order. This earlier node may answer attempts, but accept no subscription. Without this limit,
/// the waiter would connect to the earlier node again and again.
inline constexpr Clock::duration shortest_stay = std::chrono::seconds{5};

/// Returns how long a resource stays reserved for a woken waiter. In this time, the message must arrive, and
/// the attempt must reach the home node. If this waiter makes no attempt, all others are delayed by this
/// time.
inline std::chrono::milliseconds reservation_ttl(std::chrono::milliseconds node_timeout) {
    return std::max(std::chrono::milliseconds{100}, 2 * node_timeout);
}

/// Records after the release of a lock with LockOptions::fair whether other clients wait for its resources.
/// If they do, the next acquisition by this process enters the queue before its first attempt.
///
///     the replies to the release                                      | recorded
///     ----------------------------------------------------------------+--------------------
///     A node has woken a waiter: NodeReport::count is positive.       | others wait
///     None has, but a node that may have executed the release has not | nothing, because it
///     voted, or has reported a key of another type.                   | may be the home node
///     otherwise                                                       | nobody waits
///
/// If the lock had several resources, all of them get the same record, because a reply does not say which of
/// them has a waiter.
inline void record_contention(Nodes& nodes, Resources resources, const Tally& tally) {
    const bool woken =
        std::ranges::any_of(tally.reports(), [](const NodeReport& it) { return it.count > 0; });
    const bool unknown = std::ranges::any_of(tally.reports(), [](const NodeReport& it) {
        return it.sent && (it.vote == Vote::unknown || it.cause == Errc::wrong_type);
    });
    if (woken || !unknown)
        for (const auto& resource : resources) nodes.contended().set(resource, woken);
}

}  // namespace redlock::algorithm
