// The Redlock algorithm. The *Redlock specification* is "Distributed Locks with Redis" in the documentation
// of Redis.
//
// To acquire a lock, a client does five steps:
//
//   1. It reads the time, the *start*.
//   2. It sets the key to one random value, the *owner*, on all N nodes where the key is free. It spends at
//      most node_timeout on each node.
//   3. It holds the lock if a majority of the nodes set the key, and step 2 ended before the instant
//      start + ttl − drift. (The drift allows for clocks that run at different rates.)
//   4. If it holds the lock, it may work until this instant, which is called `valid_until`.
//   5. If it does not hold the lock, it deletes the key on every node that the command of step 2 may have
//      reached. This includes the nodes that refused, as the specification says. It does not include a node
//      that has answered with an error such as BUSY, which says that nothing was executed. After a random
//      pause, the client begins again with step 1 (acquire.hpp).
//
// To extend the lock, the client does steps 1 to 4 with another command. If the key still has the owner, this
// command sets the expiry to the ttl, unless the remaining time is longer. It goes to every node that the
// command of step 2 may have reached.
//
// nodes.hpp explains the words, and algorithm/lease.hpp what a lease is.
//
// This file has the requests of the steps. The steps are in src/flow: attempt.cpp acquires, lease.cpp extends
// and releases. At the end of this file are the functions that a Lock and its watchdog use on a lease, and
// release() for the command `redlock release`, which has no Lock. outcome.hpp decides whether a round
// was successful. Programs use Lock (lock.hpp) and not this file.
#pragma once

#include <redlock/algorithm/lease.hpp>
#include <redlock/algorithm/outcome.hpp>
#include <redlock/clock.hpp>
#include <redlock/export.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>
#include <redlock/result.hpp>

#include <chrono>
#include <cstddef>
#include <string_view>

namespace redlock::algorithm {

/// The resources to lock, and the options of the lock that its rounds need. acquire_request() and
/// extend_request() make a Request from it. The arguments of every function that makes a Request must outlive
/// the Request.
struct LeaseRequest {
    Resources resources;
    std::chrono::milliseconds ttl;
    double drift_factor;
    bool fencing = false;
    bool fair = false;
    bool shared = false;  ///< Becomes Lease::shared.
};

/// Returns the instant at which the validity ends. The specification computes the time that remains when the
/// round ends at T2: MIN_VALIDITY = ttl − (T2 − T1) − CLOCK_DRIFT, in which T1 is the start. This function
/// returns T2 + MIN_VALIDITY. T2 cancels out.
inline Clock::time_point valid_until(Clock::time_point start, const LeaseRequest& request) {
    return start + request.ttl - drift(request.ttl, request.drift_factor);
}

/// Returns the request of step 2, which goes to all nodes. `candidate` is the lease that the attempt tries to
/// get. With `fencing`, each node also counts the holder. `queue` is null unless the client waits in a queue
/// (waiting.hpp).
inline Request acquire_request(const LeaseRequest& request, const Lease& candidate, const QueueTerms* queue) {
    return {.command = {.verb = request.fencing ? Verb::set_and_count : Verb::set_if_absent,
                        .resources = request.resources,
                        .owner = candidate.owner.view(),
                        .ttl = request.ttl,
                        .queue = queue,
                        .shared = candidate.shared}};
}

/// Returns the request of an extension.
inline Request extend_request(const LeaseRequest& request, const Lease& lease) {
    return {.command = {.verb = Verb::compare_and_expire,
                        .resources = request.resources,
                        .owner = lease.owner.view(),
                        .ttl = request.ttl,
                        .shared = lease.shared},
            .to = lease.may_hold_key};
}

/// Returns the request of a release or of step 5. It goes to the nodes that the command of step 2 may have
/// reached, and deletes the key if its value is still the owner.
///
/// - If `hold_remaining` is positive, the key is not deleted, but keeps all clients out for this time, the
///   rest of LockOptions::min_hold.
/// - If `queue` is not null, the command also wakes the next client in the queue.
inline Request delete_request(Resources resources, const Lease& lease, const QueueTerms* queue = nullptr,
                              std::chrono::milliseconds hold_remaining = {}) {
    return {.command = {.verb = Verb::compare_and_delete,
                        .resources = resources,
                        .owner = lease.owner.view(),
                        .hold_remaining = hold_remaining,
                        .queue = queue,
                        .shared = lease.shared},
            .to = lease.may_hold_key};
}

/// Returns the request that removes the ticket in `terms` from the queue of this node. A ticket is the entry
/// of a waiting client there. If the resource was reserved for it (waiting.hpp), the value of the key is the
/// ticket, so the command deletes the key and wakes the next client.
inline Request withdraw_request(Resources resource, const QueueTerms& terms, std::size_t node) {
    return {.command = {.verb = Verb::compare_and_delete,
                        .resources = resource,
                        .owner = terms.ticket,
                        .queue = &terms},
            .to = NodeSet{}.set(node)};
}

// ---- The functions that a Lock and its watchdog use on a lease, and release() for programs without a Lock.
// They are in src/flow/lease.cpp.

/// Writes `description`, the text of LockOptions::holder, beside the keys, or deletes the text if `ttl` is
/// zero. Sends until `deadline` at the latest, does not wait for the replies, and swallows every failure,
/// because no lock depends on the text.
REDLOCK_EXPORT void describe_holder(Nodes& nodes, Resources resources, const Lease& lease,
                                    std::string_view description, std::chrono::milliseconds ttl,
                                    Clock::time_point deadline = Clock::never()) noexcept;

/// Applies the round of an extension to `lease`, and returns the result. There are three cases:
///
/// - The lease is lost if less than a majority of the nodes can still have the key, or if the round ended
///   after the old valid_until, because another client may have held the lock since then. A lost lease is not
///   valid any more.
/// - Otherwise, if a majority granted and the new instant has not passed, valid_until becomes the later
///   one of the old and the new instant.
/// - Otherwise the lease is unchanged, and the extension can be repeated. The error is `validity_exhausted`
///   if a majority granted, but the new instant has passed already, as it can with a shorter ttl. It is
///   `deadline` or `cancelled` if the round was ended by its `limits`, and otherwise `no_quorum`. It is never
///   `held_by_other`, because a refusal means here that the node has lost the key.
REDLOCK_EXPORT Result apply_extension(RoundResult&& round, const RoundLimits& limits, Lease& lease);

/// Releases the lease, and waits for the replies. If `fair`, the release wakes the next client in the queue,
/// unless LockOptions::min_hold still blocks the resource.
///
/// The result is that of Lock::release(), for a lease that is not empty. In a repeated release
/// (Lease::released is true), a refusal is a confirmation, because the first release may have deleted the
/// key.
///
/// If no majority has answered, or if the result is `no_quorum`, `lease` is kept, and can be released again.
/// Otherwise, and always if Lease::valid_until has passed at the end of the call, it is empty.
REDLOCK_EXPORT Result release(Nodes& nodes, Clock& clock, Resources resources, Lease& lease,
                              bool fair = false);

}  // namespace redlock::algorithm
