// The Redlock algorithm. The *Redlock specification* is "Distributed Locks with Redis" in the documentation
// of Redis.
//
// To acquire a lock, a client does five steps:
//
//   1. It reads the time, the *start*.
//   2. It sets the key to one random value, the *owner*, on all N nodes where the key is free. It spends at
//      most node_timeout on each node.
//   3. It holds the lock if a majority of the nodes set the key before the instant start + ttl − drift. (The
//      drift allows for clocks that run at different rates.)
//   4. If it holds the lock, it may work until this instant, which is called `valid_until`.
//   5. If it does not hold the lock, it deletes the key on every node that the command of step 2 may have
//      reached. This includes the nodes that refused, as the specification says. After a random pause, it
//      begins again with step 1 (acquire.hpp).
//
// To extend the lock, the client does steps 1 to 4 with another command. If the key still has the owner, this
// command sets the expiry to the ttl, unless the remaining time is longer. It goes to every node that the
// command of step 2 may have reached.
//
// Words from other files: a *request* is a command, and the set of nodes to which it is sent. In a *round*,
// the client sends a request and collects the votes. The vote of a node is granted, refused, or unknown if
// the node gave no usable answer. A *tally* has the votes of all nodes (nodes.hpp). A *lease* is what the
// client knows about one acquisition (lease.hpp). A lease without an owner is empty.
//
// The steps are in src/flow: attempt.cpp acquires, lease.cpp extends and releases. This file has the requests
// of the steps, and applies the votes on an extension to the lease. outcome.hpp decides whether a round was
// successful. Programs use Lock (lock.hpp) and not this file.
#pragma once

#include <redlock/algorithm/lease.hpp>
#include <redlock/algorithm/outcome.hpp>
#include <redlock/algorithm/waiting.hpp>
#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/export.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>
#include <redlock/result.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>

namespace redlock::algorithm {

/// The resources to lock, and the options of the lock that its rounds need. The functions below make the
/// Request (nodes.hpp) of each round from it.
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
/// returns T2 + MIN_VALIDITY, in which T2 cancels out.
inline Clock::time_point valid_until(Clock::time_point start, const LeaseRequest& request) {
    return start + request.ttl - drift(request.ttl, request.drift_factor);
}

/// Returns the request of step 2, which goes to all nodes. `candidate` is the lease that the attempt tries to
/// get. With `fencing`, each node also increments its counter of holders (fencing.hpp). `queue` is null
/// unless the client waits in a queue (waiting.hpp).
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
/// ticket, so the command deletes the key and wakes the next client. The arguments must outlive the request.
inline Request withdraw_request(Resources resource, const QueueTerms& terms, std::size_t node) {
    return {.command = {.verb = Verb::compare_and_delete,
                        .resources = resource,
                        .owner = terms.ticket,
                        .queue = &terms},
            .to = NodeSet{}.set(node)};
}

/// Returns true if step 5 has to wake the next client in the queue, after the attempt of this client has
/// failed with this error. A release may have woken this client. If its attempt then ends early, because of
/// its deadline or a stop request, the wake-up must be passed on to the next client.
inline bool wakes_next_waiter(const LeaseRequest& request, std::error_code error) {
    return request.fair && (error == Errc::deadline || error == Errc::cancelled);
}

/// Adds the cause `wrong_type` to the refusals of an attempt, for each node on which the resource is a key of
/// another type, such as a hash. SET NX refuses every existing key, so only the refusal of step 5, which
/// reads the value, has this cause.
inline void record_wrong_types(Tally& attempt_votes, Tally&& undo_votes) {
    for (std::size_t node = 0; node < attempt_votes.size(); ++node) {
        auto& attempt = attempt_votes[node];
        auto& undo = undo_votes[node];
        if (attempt.vote != Vote::refused || undo.cause != Errc::wrong_type) continue;
        attempt.cause = undo.cause;
        attempt.detail = std::move(undo.detail);
    }
}

/// Finds nodes that are the server of another node, after a failed attempt and the release of step 5. Such a
/// node has refused the SET because the key of this owner was there already, and has deleted the key instead
/// of the node that had granted it. Makes their votes unknown, with the cause `same_server`. Returns true if
/// there are any.
inline bool record_same_servers(Tally& attempt_votes, const Tally& undo_votes) {
    std::size_t granted = 0;  // the first node whose key another one has deleted
    while (granted < attempt_votes.size() &&
           (attempt_votes[granted].vote != Vote::granted || undo_votes[granted].vote != Vote::refused))
        ++granted;
    if (granted == attempt_votes.size()) return false;
    bool any = false;
    for (std::size_t node = 0; node < attempt_votes.size(); ++node) {
        auto& attempt = attempt_votes[node];
        if (attempt.vote != Vote::refused || undo_votes[node].vote != Vote::granted) continue;
        attempt.vote = Vote::unknown;
        attempt.cause = Errc::same_server;
        attempt.detail = "as " + std::string{attempt_votes[granted].name};
        any = true;
    }
    return any;
}

/// Writes `description`, the text of LockOptions::holder, beside the keys, or deletes the text if `ttl` is
/// zero. Sends until `deadline` at the latest, does not wait for the replies, and swallows every failure,
/// because no lock depends on the text.
REDLOCK_EXPORT void describe_holder(Nodes& nodes, Resources resources, const Lease& lease,
                                    std::string_view description, std::chrono::milliseconds ttl,
                                    Clock::time_point deadline = Clock::never()) noexcept;

/// Returns true if the nodes that can still have the key are no majority, after a round that extends or
/// releases. A node that refused does not have the key. A node with an unknown vote can still have the key.
inline bool is_lost(const Tally& tally, const Lease& lease) {
    std::size_t may_have_it = 0;
    for (std::size_t node = 0; node < tally.size(); ++node)
        if (lease.may_hold_key[node] && tally[node].vote != Vote::refused) ++may_have_it;
    return may_have_it < quorum(tally.size());
}

/// Applies the round of an extension to `lease`, and returns the result. There are three cases:
///
/// - The lease is lost if is_lost() is true, or if the round ended after the old valid_until, because another
///   client may have held the lock since then. A lost lease is not valid any more.
/// - Otherwise, if a majority granted, valid_until becomes the later one of the old and the new instant.
/// - Otherwise the lease is unchanged, and the extension can be repeated. The error is `validity_exhausted`
///   if a majority granted, but the new instant has passed already, as it can with a shorter ttl. It is
///   `deadline` or `cancelled` if the
///   round was ended by its `limits`, and otherwise `no_quorum`. It is never `held_by_other`, because a
///   refusal means here that the node has lost the key.
inline Result apply_extension(RoundResult&& round, const RoundLimits& limits, Lease& lease) {
    auto error = outcome(round, limits);
    if (!lease.valid_at(round.ended) || is_lost(round.tally, lease)) {
        error = Errc::lost;
        lease.valid_until = std::min(lease.valid_until, round.ended);
    } else if (error == Errc::held_by_other) {
        error = Errc::no_quorum;
    } else if (!error) {
        lease.valid_until = round.valid_until = std::max(lease.valid_until, round.valid_until);
    }
    return result_of(error, std::move(round));
}

/// Makes the round of an extension, which ends at `lease.valid_until` at the latest. Returns the votes, and
/// the instant that becomes the new valid_until if a majority has granted. apply_extension() decides what the
/// votes mean.
REDLOCK_EXPORT RoundResult ask_to_extend(Nodes& nodes, Clock& clock, const LeaseRequest& request,
                                         const Lease& lease);

/// Makes the round of an extension, and applies it to the lease.
inline Result extend(Nodes& nodes, Clock& clock, const LeaseRequest& request, Lease& lease) {
    const RoundLimits limits{.deadline = lease.valid_until};
    return apply_extension(ask_to_extend(nodes, clock, request, lease), limits, lease);
}

/// Returns how much of LockOptions::min_hold is left if the lease is released at `now`; 0 if nothing is left.
inline std::chrono::milliseconds remaining_min_hold(const Lease& lease, Clock::time_point now) {
    return std::chrono::ceil<std::chrono::milliseconds>(
        std::max(lease.min_hold_until - now, Clock::duration::zero()));
}

/// Releases the lease, and waits for the replies. If `fair`, the release wakes the next client in the queue,
/// unless LockOptions::min_hold still blocks the resource.
///
/// - Success: Lease::valid_until had not passed before the call, and a majority has confirmed the release.
/// - `lost`: Lease::valid_until had passed before the call, or is_lost() is true. is_lost() is not used in a
///   repeated release (Lease::released is true). A refusal is a confirmation then, because the first release
///   may have deleted the key.
/// - `no_quorum`: all other cases.
///
/// If the release can be repeated, `lease` is left as it is. Otherwise it is empty afterwards. The first row
/// that applies decides:
///
///     at the end of the call        | `lease`
///     ------------------------------+-------------------------------------------
///     Lease::valid_until has passed | empty
///     the error is `no_quorum`      | can be released again
///     the error is `lost`           | can be released again if no majority has
///                                   | answered, otherwise empty
///     success                       | empty
REDLOCK_EXPORT Result release(Nodes& nodes, Clock& clock, Resources resources, Lease& lease,
                              bool fair = false);

/// Releases the lease as release() does, but without waiting for the replies or waking a client. `lease` is
/// empty afterwards. Always returns success.
REDLOCK_EXPORT Result release_without_waiting(Nodes& nodes, Clock& clock, Resources resources, Lease& lease);

}  // namespace redlock::algorithm
