// The Redlock algorithm, step by step, as "Distributed Locks with Redis" in the documentation of Redis
// describes it. In this project that document is called the *Redlock specification*, or *the spec*.
//
// To acquire the lock, a client does these steps:
//   1. It reads the time.
//   2. It tries to set the key to one random value on all N nodes, and spends at most node_timeout on each.
//   3. It holds the lock if, and only if, a majority granted it before the validity ended. The *validity*
//      ends at the instant start + ttl − drift, where start is the time of step 1.
//   4. If it holds the lock, it may work until the validity ends.
//   5. If it does not hold the lock, it deletes the key on every node that the command of step 2 may have
//      reached. Then it tries again after a random pause (acquire.hpp).
//
// To extend the lock, the client does steps 1 to 4 with a script that raises the expiry of the keys that
// still hold its value. The script goes to every node that may hold the key.
//
// This file decides what is sent and what the votes on an extension mean. outcome.hpp decides what the votes
// on an attempt mean. At its end, this file declares blocking functions for extensions and releases. The
// steps themselves are in src/flow: read attempt.cpp first, then lease.cpp. None of these files knows
// sockets, real clocks or real randomness: tests run the same functions in a simulation. Programs do not call
// them; they use Lock (lock.hpp).
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/export.hpp>
#include <redlock/lease.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>
#include <redlock/outcome.hpp>
#include <redlock/result.hpp>
#include <redlock/waiting.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>

namespace redlock::algorithm {

/// What the caller wants: the resources to lock, and the options of the lock that concern its rounds. A
/// *round* sends one Request, or several with the same verb, and collects the votes of the nodes (nodes.hpp).
/// A LeaseRequest is not a Request: a Request is one command and its nodes.
struct LeaseRequest {
    Resources resources;
    std::chrono::milliseconds ttl;
    double drift_factor;
    bool fencing = false;
    bool fair = false;
    bool shared = false;  ///< An attempt copies it into its lease, because a release has only the lease.
};

/// Returns the instant at which the validity ends. The spec computes the remaining time at the end of the
/// round: MIN_VALIDITY = ttl − (T2 − T1) − CLOCK_DRIFT. T1 is the start and T2 the end of the round. This
/// function returns T2 + MIN_VALIDITY, in which T2 cancels out.
inline Clock::time_point valid_until(Clock::time_point start, const LeaseRequest& request) {
    return start + request.ttl - drift(request.ttl, request.drift_factor);
}

/// Returns the request of step 2, which goes to all nodes (the default of Request::to). `candidate` is the
/// lease that the attempt tries to get. `queue` is null unless this is the attempt of a client that waits in
/// a queue (waiting.hpp).
inline Request acquire_request(const LeaseRequest& request, const Lease& candidate, const QueueTerms* queue) {
    return {.command = {.verb = request.fencing ? Verb::set_and_count : Verb::set_if_absent,
                        .resources = request.resources,
                        .owner = candidate.owner.view(),
                        .ttl = request.ttl,
                        .queue = queue,
                        .shared = candidate.shared}};
}

/// Returns the request of an extension, to the nodes that may hold the key.
inline Request extend_request(const LeaseRequest& request, const Lease& lease) {
    return {.command = {.verb = Verb::compare_and_expire,
                        .resources = request.resources,
                        .owner = lease.owner.view(),
                        .ttl = request.ttl,
                        .shared = lease.shared},
            .to = lease.may_hold_key};
}

/// Returns the request of a release, to every node that a byte of the SET may have reached. The command
/// changes the key only if its value is still the owner, the random value of this lease. Mostly it deletes
/// the key. If `hold_remaining`, the remaining minimum hold time (LockOptions::min_hold), is positive, the
/// key gets another value instead, and keeps all clients out until it expires. If there is a `queue`, the
/// command also wakes the next waiter.
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

/// Returns true if step 5 of an attempt with this error wakes the next waiter in the queue. An attempt of a
/// `fair` lock does so if it ends because of the caller's deadline or stop request. The reason is that a
/// release may have woken this client. It does not use its turn, so another waiter must be woken.
inline bool wakes_next_waiter(const LeaseRequest& request, std::error_code error) {
    return request.fair && (error == Errc::deadline || error == Errc::cancelled);
}

/// Sets the cause `wrong_type` in the attempt's report of each node that refused because the resource is a
/// key of another type. SET NX refuses such a key like any other, but the release of the attempt reads the
/// value and fails with `wrong_type`. It is the only cause that a refusal can have.
inline void record_wrong_types(Tally& attempted, Tally&& released) {
    for (std::size_t node = 0; node < attempted.size(); ++node) {
        if (attempted[node].vote != Vote::refused || released[node].cause != Errc::wrong_type) continue;
        attempted[node].cause = released[node].cause;
        attempted[node].detail = std::move(released[node].detail);
    }
}

/// Writes the holder description (LockOptions::holder) beside the keys. If `ttl` is zero, deletes the
/// description after a release. Does not wait for the replies, and swallows every failure, because no lock
/// depends on the description. The spec has no such description.
REDLOCK_EXPORT void describe_holder(Nodes& nodes, Resources resources, const Lease& lease,
                                    std::string_view description, std::chrono::milliseconds ttl,
                                    Clock::time_point deadline = Clock::never()) noexcept;

/// Returns true if the nodes that can still have the key are fewer than a majority. A node that has refused
/// does not have the key, and neither does a node to which the SET was never sent. A node with an unknown
/// vote can still have it.
inline bool is_lost(const Tally& tally, const Lease& lease) {
    std::size_t may_have_it = 0;
    for (std::size_t node = 0; node < tally.size(); ++node)
        if (lease.may_hold_key[node] && tally[node].vote != Vote::refused) ++may_have_it;
    return may_have_it < quorum(tally.size());
}

/// Applies the outcome of an extension to `lease`.
///
/// - The lease is lost if the round ended after the old validity, because another client may have held the
///   lock since. It is also lost if is_lost() is true. A lost lease is not valid any more.
/// - Otherwise, if a majority granted, the validity ends at the later one of the old instant and the new one
///   (`round.valid_until`).
/// - Otherwise the old validity is unchanged. `no_quorum` takes the place of `held_by_other`, because a
///   refusal means here that the node has lost the key, and not that another client holds the lock.
inline Result apply_extension(RoundResult&& round, const RoundLimits& limits, Lease& lease) {
    auto error = outcome(round, limits);
    if (!lease.valid_at(round.ended) || is_lost(round.tally, lease)) {
        error = Errc::lost;
        lease.valid_until = std::min(lease.valid_until, round.ended);
    } else if (error == Errc::held_by_other) {
        error = Errc::no_quorum;  // some nodes have lost the key, but the others are a majority
    } else if (!error) {
        lease.valid_until = round.valid_until = std::max(lease.valid_until, round.valid_until);
    }
    return result_of(error, std::move(round));
}

/// Makes the round of an extension, with the deadline `lease.valid_until`, and returns the votes with the end
/// of the validity that the extension gives (RoundResult::valid_until). apply_extension() decides what the
/// votes mean for the lease. Its `limits` are those of the round.
REDLOCK_EXPORT RoundResult ask_to_extend(Nodes& nodes, Clock& clock, const LeaseRequest& request,
                                         const Lease& lease);

/// Resets the remaining time of the lease to the ttl of the request, in one round.
inline Result extend(Nodes& nodes, Clock& clock, const LeaseRequest& request, Lease& lease) {
    const RoundLimits limits{.deadline = lease.valid_until};
    return apply_extension(ask_to_extend(nodes, clock, request, lease), limits, lease);
}

/// Returns the remaining minimum hold time of a lease that is released at `now`. It is the `hold_remaining`
/// of the release.
inline std::chrono::milliseconds remaining_min_hold(const Lease& lease, Clock::time_point now) {
    return std::chrono::ceil<std::chrono::milliseconds>(
        std::max(lease.keep_until - now, Clock::duration::zero()));
}

/// Releases the lease on every node that may hold the key, and waits for the replies.
///
/// - Success means that the validity had not ended before the release, and that a majority of the nodes has
///   confirmed the release. If the release is repeated (Lease::released), a node without the key confirms it
///   as well, because it may have deleted the key the first time.
/// - `lost` means that the validity had ended before the release, or that is_lost() is true. If the release
///   is repeated, is_lost() does not matter.
/// - `no_quorum` is the outcome in all other cases.
/// - If `fair` is true, the release wakes the next waiter, unless the minimum hold time still blocks the
///   resource.
///
/// `lease` is empty afterwards, so that there is nothing left to release. It is kept, so that the release can
/// be repeated, if its validity has not ended and one of these conditions is true:
///
/// - The outcome is `no_quorum`.
/// - The outcome is `lost`, but fewer than a majority of the nodes have answered. For example, the SET has
///   reached three of five nodes. One of these has lost the key, and the others do not answer the release.
REDLOCK_EXPORT Result release(Nodes& nodes, Clock& clock, Resources resources, Lease& lease,
                              bool fair = false);

/// Releases the lease on every node that may hold the key, without waiting for the replies. `lease` is empty
/// afterwards. Always returns success, because the replies are not awaited. The return type is that of
/// release(), so that callers can use either.
REDLOCK_EXPORT Result release_without_waiting(Nodes& nodes, Clock& clock, Resources resources, Lease& lease);

}  // namespace redlock::algorithm
