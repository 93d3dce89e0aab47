// Waiting in a queue (LockOptions::fair). A client that is refused enters the queue, and a release wakes the
// waiter that came first.
//
// This is an extension to the Redlock specification. Mutual exclusion does not depend on it: a waiter holds
// the lock only if its own round gets a majority of grants. One node, the home node, keeps the queue, and the
// queue only decides which client tries next.
//
//   1. A refused client enters the queue of its home node. This is the first possible home, in the configured
//      order, on which it can subscribe to a channel (possible_homes() chooses them by the votes of the
//      attempt). The *ticket*, its entry in the queue, names this channel. The client also tells the node how
//      long it has waited already. The node reports who has the resource there, and how many waiters are in
//      front.
//   2. The waiter sleeps until it is woken, or until it is time to ask the home node again.
//   3. A release deletes the key on every node. If a node has a queue, the same command takes the first
//      waiter out of it and sends this waiter a message. If the waiter is subscribed, the node also reserves
//      the resource for it, so that newcomers are refused there for a while.
//   4. The woken waiter makes an attempt. In that round, the command for the home node replaces its
//      reservation by the lock. If the waiter is still in the queue, the command also takes it out.
//
// The queue may be lost, exist on two nodes at once, or be full of waiters that have died. The worst effect
// is that a client acquires the lock late or out of order:
//
//     event                                  | what ends the wait
//     ---------------------------------------+---------------------------------------------------------
//     a waiter has died                      | a release finds no subscriber and wakes the next waiter.
//                                            | While the resource is held, each question of another
//                                            | waiter lets the node drop tickets that have no
//                                            | subscriber, or that have not been renewed for long
//     a woken waiter makes no attempt        | its reservation ends after reservation_ttl()
//     a holder has died                      | its key expires, and the waiters ask at that time
//     a message is lost, or the home node    | the waiters ask again after one to four poll intervals,
//     has lost its data                      | and report how long they have waited, so they keep their
//                                            | order
//     the home node does not answer          | the waiter goes to the next node; it comes back when the
//                                            | earlier node has answered an attempt again, but not
//                                            | before shortest_stay is over
//     the release wakes no waiter, because   | the first waiter asks the home node again after the pause
//     the holder uses another library, or    | of LockOptions::retry, or after the poll interval if that
//     a lock without `fair`                  | is shorter
//     the home node has a key of the         | the first waiter cannot tell it from the key of a holder.
//     resource that belongs to no holder     | It makes an attempt every poll interval in any case
//     (a *stray key*)                        |
//     the home node reports something false  | every waiter makes an attempt after 7 to 14 s
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

/// How long a waiter that has received no message waits before it asks again. Waiters far behind in the queue
/// wait up to four times as long.
inline constexpr Clock::duration poll_interval = std::chrono::milliseconds{250};

/// The shortest time between two questions of one waiter, whatever the home node reports.
inline constexpr Clock::duration shortest_sleep = std::chrono::milliseconds{10};

/// The longest time between two attempts of a waiter that is not woken. The actual time is random, between
/// half of this time and the whole. It does not depend on what the home node reports, because otherwise this
/// one node could keep all waiters from the lock. If 1,000 clients begin to wait at once, their attempts fall
/// into the 7 s from 7 s to 14 s, so they are about 143 per second.
inline constexpr Clock::duration longest_without_attempt = std::chrono::seconds{14};

/// If the home node reports no holder, it may have lost the holder's key. Therefore the waiters then make
/// attempts one after the other, in the order of their places. This is the time between two of these
/// attempts.
inline constexpr Clock::duration attempt_spacing = std::chrono::milliseconds{6};

/// How long a waiter stays at a node before it tries to listen at an earlier node again. An earlier node may
/// answer attempts, but accept no subscription. Without this limit the waiter would connect to the earlier
/// node again and again.
inline constexpr Clock::duration shortest_stay = std::chrono::seconds{5};

/// Returns how long a resource stays reserved for a woken waiter. This is the delay that a woken waiter
/// causes if it makes no attempt.
inline std::chrono::milliseconds reservation_ttl(std::chrono::milliseconds node_timeout) {
    return std::max(std::chrono::milliseconds{100}, 2 * node_timeout);
}

/// Returns the nodes that can be a home node. A node can be one if it has voted, if the attempt did not ask
/// it because the votes had decided before, or if it was left alone after an earlier failure. If a probe of
/// such a node is due, the waiter begins it. Otherwise nobody would: an attempt that other nodes refuse ends
/// before it asks this node.
inline NodeSet possible_homes(std::span<const NodeReport> reports) {
    NodeSet result;
    for (std::size_t node = 0; node < reports.size(); ++node)
        result[node] = reports[node].left_alone || !detail::failed_to_vote(reports[node]);
    return result;
}

/// Records whether other clients wait for the resources. The replies to the release of a lock with
/// LockOptions::fair show this: NodeReport::count is then the number of waiters that the node has woken. If a
/// client that has just released a contended resource wants it again, it enters the queue before its first
/// attempt. If no reply reports a woken waiter, but a node has not replied, nothing is recorded: that node
/// may be the home node. If there are several resources, a reply does not say for which one a waiter was
/// woken, so all of them count as contended.
inline void record_contention(Nodes& nodes, Resources resources, const Tally& tally) {
    const bool woken =
        std::ranges::any_of(tally.reports(), [](const NodeReport& it) { return it.count > 0; });
    const bool unknown = std::ranges::any_of(
        tally.reports(), [](const NodeReport& it) { return it.sent && it.vote == Vote::unknown; });
    if (woken || !unknown)
        for (const auto& resource : resources) nodes.contended().set(resource, woken);
}

}  // namespace redlock::algorithm
