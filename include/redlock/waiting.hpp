// Waiting in a queue (LockOptions::fair). Clients that were refused queue up, and a release wakes the client
// that has waited longest.
//
// The queue only decides which client tries next. Mutual exclusion does not depend on it, because a woken
// client holds the lock only if a majority of the nodes grants it, like any other client. The Redlock
// specification has no queue.
//
//   1. A refused client becomes a *waiter*. It chooses one node, its *home node*, subscribes to a channel
//      there, and *asks* this node: it sends a command that puts its *ticket*, which names the channel, into
//      the queue. The home node is the first node in the configured order that accepts the subscription.
//      Therefore almost all waiters have the same home node.
//   2. The reply says when the holder's key expires, and how many waiters are in front. The waiter sleeps
//      until a message wakes it. If no message comes, it asks again: after a poll_interval, later if many
//      waiters are in front, and sooner if it is one of the first (place_in_queue.cpp). With each question it
//      says how long it has waited, so a node that has lost its queue puts the waiters in order again. After
//      each question, the first waiter makes an *attempt* to acquire the lock, even if the node reports a
//      holder, but not if the resource is reserved for another waiter.
//   3. A release deletes the key on every node. If a node has a queue, the same command takes out the first
//      waiter that is still subscribed, and sends it a message. It also reserves the resource for this
//      waiter: other clients are refused at this node for a while.
//   4. The woken waiter makes an attempt. At its home node, the command of the attempt replaces the
//      reservation by the key of the lock.
//
// If something goes wrong with the queue, a client acquires the lock late or out of order:
//
//     event                                  | what happens then
//     ---------------------------------------+---------------------------------------------------------
//     a waiter has died                      | it is not subscribed any more, so a release skips it
//     a woken waiter makes no attempt        | its reservation ends after reservation_ttl()
//     a holder has died                      | its key expires, and the first four waiters ask then (step 2)
//     a message is lost, or the home node    | the waiters ask again (step 2)
//     has lost its data                      |
//     the home node does not answer          | the waiter goes to the next node. After 5 s (shortest_stay)
//                                            | it goes back, if the old node answers attempts again
//     the release wakes no waiter, because   | the first waiter asks again (step 2)
//     the holder uses another library, or    |
//     a lock without `fair`                  |
//     the home node has a key that belongs   | the attempts of the first waiter succeed if the other nodes
//     to no holder                           | are free (step 2)
//     the home node reports something false  | every waiter makes an attempt every 7 to 14 s
//                                            | (longest_without_attempt)
//
// The steps of a waiter are in src/flow/place_in_queue.cpp.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/nodes.hpp>
#include <redlock/result.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>

namespace redlock::algorithm {

/// How long a waiter waits for a message before it asks the home node again. Waiters far behind in the queue
/// wait up to four times as long.
inline constexpr Clock::duration poll_interval = std::chrono::milliseconds{250};

/// The shortest time after which a waiter asks again, whatever the home node reports.
inline constexpr Clock::duration shortest_sleep = std::chrono::milliseconds{10};

/// The longest time between two attempts of a waiter that is not woken. The actual time is random, between
/// half of this time and the whole. It does not depend on what the home node reports, because otherwise this
/// one node could keep all waiters from the lock.
inline constexpr Clock::duration longest_without_attempt = std::chrono::seconds{14};

/// Another reason for an attempt without a message: the home node has reported no holder for two poll
/// intervals, so the waiters in front seem to be unable to acquire the lock. Then each waiter makes one
/// attempt, this much later than the waiter in front of it.
inline constexpr Clock::duration attempt_spacing = std::chrono::milliseconds{6};

/// How long a waiter stays at its home node before it tries to subscribe at an earlier one in the configured
/// order. The earlier one may answer attempts, but accept no subscription. Without this limit the waiter
/// would connect to it again and again.
inline constexpr Clock::duration shortest_stay = std::chrono::seconds{5};

/// Returns how long a resource stays reserved for a woken waiter. If this waiter makes no attempt, all others
/// are delayed by this time.
inline std::chrono::milliseconds reservation_ttl(std::chrono::milliseconds node_timeout) {
    return std::max(std::chrono::milliseconds{100}, 2 * node_timeout);
}

/// Returns the nodes that can be a home node after an attempt with these reports: all nodes except those that
/// failed in this attempt. A node that was not asked because it had failed before (`left_alone`) can be a
/// home node, because it may have recovered, and only a connection can show that.
inline NodeSet possible_homes(std::span<const NodeReport> reports) {
    NodeSet result;
    for (std::size_t node = 0; node < reports.size(); ++node)
        result[node] = reports[node].left_alone || !detail::failed_to_vote(reports[node]);
    return result;
}

/// Records after the release of a lock with LockOptions::fair whether other clients wait for its resources.
/// If they do, the next acquisition by this process enters the queue before its first attempt.
///
/// NodeReport::count is the number of waiters that a node has woken. If no node has woken a waiter, but a
/// node that was sent the release has not replied, nothing is recorded, because this node may be the home
/// node. All resources get the same record, because a reply does not say which of them has a waiter.
inline void record_contention(Nodes& nodes, Resources resources, const Tally& tally) {
    const bool woken =
        std::ranges::any_of(tally.reports(), [](const NodeReport& it) { return it.count > 0; });
    const bool unknown = std::ranges::any_of(
        tally.reports(), [](const NodeReport& it) { return it.sent && it.vote == Vote::unknown; });
    if (woken || !unknown)
        for (const auto& resource : resources) nodes.contended().set(resource, woken);
}

}  // namespace redlock::algorithm
