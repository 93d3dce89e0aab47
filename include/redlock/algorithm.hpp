// The Redlock algorithm, step by step, as the page "Distributed Locks with Redis" specifies it. That page is
// called "the Redlock specification" or "the spec" in the whole project.
//
// To acquire the lock, a client
//   1. reads the time;
//   2. tries to set the key to one random value on all N nodes, and spends at most node_timeout on each;
//   3. holds the lock if, and only if, a majority granted it and less than the validity has elapsed;
//   4. may then work for ttl − elapsed − drift;
//   5. otherwise deletes the key on all nodes, even on those that probably did not set it, and tries again
//      after a random pause (acquire.hpp).
// To extend the lock, it does steps 1 to 4 with a script that raises the expiry of the keys that are still
// its own.
//
// This file decides what is sent and what the votes mean. It does not know sockets, real clocks or real
// randomness: tests run the same functions in a simulation. Programs do not call them; they use Lock
// (lock.hpp).
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/fencing.hpp>
#include <redlock/lease.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>
#include <redlock/result.hpp>
#include <redlock/waiting.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>

namespace redlock::algorithm {

/// The resources to lock, and the options of the lock that concern a round.
struct LeaseRequest {
    Resources resources;
    std::chrono::milliseconds ttl;
    double drift_factor;
    bool fencing = false;
    bool fair = false;
    bool shared = false;
};

/// The votes on one command, the instant until which the lock is valid if a majority granted, and the end of
/// the round.
struct RoundResult {
    Tally tally;
    Clock::time_point valid_until;
    Clock::time_point ended;
};

/// Returns the instant at which the validity ends. The spec calls the remaining time MIN_VALIDITY = ttl − (T2
/// − T1) − CLOCK_DRIFT; this is the same as an absolute instant.
inline Clock::time_point valid_until(Clock::time_point start, const LeaseRequest& request) {
    return start + request.ttl - drift(request.ttl, request.drift_factor);
}

/// Returns true if the attempt failed because of contention and not because of failed nodes. At least one
/// node has refused then, and the nodes that did not fail still form a quorum. Clients that collide and split
/// the votes see this outcome, too.
inline bool refused_by_holders(const Tally& tally) {
    const auto failed = std::ranges::count_if(tally.reports(), detail::failed_to_vote);
    return tally.refused() > 0 && tally.size() - static_cast<std::size_t>(failed) >= quorum(tally.size());
}

/// Returns true if the refusals alone make a majority impossible.
inline bool ruled_out(const Tally& tally) {
    return tally.size() - tally.refused() < quorum(tally.size());
}

/// Returns true if the caller's deadline left some node too little time to answer. The tally is incomplete
/// then.
inline bool cut_short(const Tally& tally) {
    return std::ranges::any_of(tally.reports(),
                               [](const NodeReport& node) { return node.cause == Errc::deadline; });
}

/// Returns no error if a majority of the configured nodes granted and the validity is not over; otherwise the
/// reason.
inline std::error_code outcome(const RoundResult& round, const RoundLimits& limits) {
    const auto& tally = round.tally;
    if (tally.granted() >= quorum(tally.size()))
        return round.ended < round.valid_until ? std::error_code{} : Errc::validity_exhausted;
    if (ruled_out(tally)) return Errc::held_by_other;
    if (limits.stop.stop_requested()) return Errc::cancelled;
    if (round.ended >= limits.deadline || cut_short(tally)) return Errc::deadline;
    return refused_by_holders(tally) ? Errc::held_by_other : Errc::no_quorum;
}

/// Returns the result of one attempt with this outcome. Its validity is zero if there is an error.
inline Result result_of(std::error_code error, RoundResult&& round) {
    const auto validity = error ? Clock::duration::zero() : round.valid_until - round.ended;
    return Result{error, std::move(round.tally), 1, validity};
}

/// Returns the request of step 2. `queue` is null unless this is the attempt of a waiter.
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

/// Deletes the key, if it still holds our owner, on every node that a byte of the SET may have reached. Only
/// node_timeout limits the round by default, because the caller's deadline may already have passed. With
/// `queue` it also wakes the next waiter. With a positive `rest`, the remaining minimum hold time, the
/// resource is blocked for that long instead of deleted.
inline Tally delete_keys(Nodes& nodes, Resources resources, const Lease& lease,
                         const QueueTerms* queue = nullptr, const RoundLimits& limits = {},
                         std::chrono::milliseconds rest = {}) {
    return nodes.ask({.command = {.verb = Verb::compare_and_delete,
                                  .resources = resources,
                                  .owner = lease.owner.view(),
                                  .rest = rest,
                                  .queue = queue,
                                  .shared = lease.shared},
                      .to = lease.may_hold_key},
                     limits);
}

/// Does step 5 of an attempt. If a fair attempt ends because of the caller's deadline or stop request, it
/// wakes the next waiter, because the wake-up of this client would otherwise be lost.
inline Tally undo(Nodes& nodes, const LeaseRequest& request, const Lease& candidate, std::error_code error) {
    const bool wakes = request.fair && (error == Errc::deadline || error == Errc::cancelled);
    const QueueTerms queue{.patience = patience(nodes.node_timeout())};
    return delete_keys(nodes, request.resources, candidate, wakes ? &queue : nullptr);
}

/// Explains refusals by keys of another type. SET NX refuses such a key like any other, but the release of
/// the attempt reads the value and fails. A node that refused the attempt gets that failure as the cause of
/// its refusal.
inline void note_wrong_types(Tally& attempted, Tally&& released) {
    for (std::size_t node = 0; node < attempted.size(); ++node) {
        if (attempted[node].vote != Vote::refused || released[node].cause != Errc::wrong_type) continue;
        attempted[node].cause = released[node].cause;
        attempted[node].detail = std::move(released[node].detail);
    }
}

/// Returns the outcome of a round that raised the counts. It differs from outcome() in two cases:
///
/// - A majority of refusals is `no_quorum`: our keys have disappeared, but no other client has taken them.
/// - A deadline is `validity_exhausted` if it was the end of the validity and not the caller's deadline.
inline std::error_code outcome_of_confirmation(const RoundResult& round, const RoundLimits& limits) {
    const auto error = outcome(round, limits);
    if (error == Errc::held_by_other) return Errc::no_quorum;
    const bool callers = limits.deadline <= round.valid_until;
    return error == Errc::deadline && !callers ? Errc::validity_exhausted : error;
}

/// Chooses the fencing token, and makes sure that a majority of the nodes has counted that far. Then the next
/// holder, who needs a grant of one of these nodes, gets a larger token. This is an extension to the spec.
///
/// The token is the largest count that came with a grant. If too few nodes have returned exactly this count,
/// another round raises the counts of the others. Nodes refuse that if the count is far ahead of their
/// clocks. Then the nodes that returned it lose their votes, and the next largest count is tried. The
/// remaining nodes must still be a majority.
///
///     counts 7 9 8     the second round raises all to 9                                      token 9
///     counts 7 999 8   nodes 1 and 3 refuse 999, node 2 loses its vote; a third round,
///                      to nodes 1 and 3, raises them to 8                                    token 8
inline std::error_code confirm_fencing_token(Nodes& nodes, Clock& clock, const LeaseRequest& request,
                                             const RoundLimits& limits, Lease& candidate,
                                             RoundResult& round) {
    const auto needed = quorum(nodes.size());
    for (auto accepted = candidate.may_hold_key;;) {
        candidate.fencing_token = largest_count(round.tally);
        const auto counted = nodes_that_counted(round.tally, candidate.fencing_token);
        if (counted.count() >= needed) return outcome(round, limits);
        auto raised =
            nodes.ask({.command = {.verb = Verb::raise_count,
                                   .resources = request.resources,
                                   .owner = candidate.owner.view(),
                                   .fence = candidate.fencing_token,
                                   .shared = candidate.shared},
                       .to = accepted},
                      {.deadline = std::min(limits.deadline, candidate.valid_until), .stop = limits.stop});
        round.ended = clock.now();
        const bool refused_as_too_large = std::ranges::any_of(raised.reports(), own_count_in_refusal);
        for (std::size_t node = 0; node < raised.size(); ++node)
            if (counted[node] && raised[node].vote == Vote::unknown)
                raised.grant(node);  // its grant of the first round stands: it came with exactly this count
        if (raised.granted() >= needed || !refused_as_too_large) {
            carry_over_rejections(round.tally, raised);
            round.tally = std::move(raised);
            return outcome_of_confirmation(round, limits);
        }
        take_own_counts(round.tally, raised);
        reject_counts(round.tally, counted);
        accepted &= ~counted;
        if (round.tally.granted() < needed) return Errc::no_quorum;
    }
}

/// Makes one attempt. On success `lease` is the new lease. Otherwise `lease` is unchanged and no reachable
/// node keeps a key of the attempt, even if there was not enough memory to complete it. `queue` is null
/// unless this is the attempt of a waiter.
inline Result attempt(Nodes& nodes, Clock& clock, Entropy& entropy, const LeaseRequest& request,
                      const RoundLimits& limits, Lease& lease, const QueueTerms* queue = nullptr) {
    Lease candidate;
    if (auto error = candidate.owner.draw(entropy)) return Result{error};
    candidate.may_hold_key.set();
    candidate.shared = request.shared;
    try {
        // Step 1: read the time, before the first byte is sent.
        const auto start = clock.now();

        // Step 2: set the key, if it is free, on all N nodes to the same random value.
        auto tally = nodes.ask(acquire_request(request, candidate, queue), limits);
        candidate.may_hold_key = tally.sent();

        // Step 3: hold the lock if, and only if, a majority granted it and less than the validity has
        // elapsed.
        RoundResult round{std::move(tally), valid_until(start, request), clock.now()};
        auto error = outcome(round, limits);

        // Step 4: the lock is valid for ttl − elapsed − drift.
        candidate.valid_until = round.valid_until;
        if (!error && request.fencing)
            error = confirm_fencing_token(nodes, clock, request, limits, candidate, round);
        if (!error) lease = candidate;

        // Step 5: otherwise delete the key wherever it may have been set.
        if (error && candidate.may_hold_key.any())
            note_wrong_types(round.tally, undo(nodes, request, candidate, error));
        return result_of(error, std::move(round));
    } catch (...) {  // no memory, or a Nodes of the user that throws: do step 5
        (void)delete_keys(nodes, request.resources, candidate);
        throw;
    }
}

/// Writes the holder description (LockOptions::holder) beside the keys; with a `ttl` of zero, deletes it
/// after a release. Does not wait for the replies, and swallows every failure, because no lock depends on the
/// description. This is an extension to the spec.
inline void note_holder(Nodes& nodes, Resources resources, const Lease& lease, std::string_view note,
                        std::chrono::milliseconds ttl, Clock::time_point deadline = Clock::never()) noexcept {
    try {
        if (!note.empty())
            (void)nodes.ask({.command = {.verb = Verb::note_holder,
                                         .resources = resources,
                                         .owner = lease.owner.view(),
                                         .ttl = ttl,
                                         .note = note},
                             .to = lease.may_hold_key},
                            {.deadline = deadline, .awaits_answers = false});
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory, or a Nodes that does not know this verb
    }
}

/// Returns true if a majority can no longer hold the key. A node that refuses has lost it, and a node to
/// which the SET was never sent cannot have it.
inline bool is_lost(const Tally& tally, const Lease& lease) {
    std::size_t may_have_it = 0;
    for (std::size_t node = 0; node < tally.size(); ++node)
        if (lease.may_hold_key[node] && tally[node].vote != Vote::refused) ++may_have_it;
    return may_have_it < quorum(tally.size());
}

/// Applies the outcome of an extension to `lease`. The round counts only if it ended within the old validity,
/// because another client may have held the lock afterwards. If it failed, the old validity is unchanged,
/// unless a majority has lost the key: then the lease ends now.
inline Result apply_extension(RoundResult&& round, const RoundLimits& limits, Lease& lease) {
    auto error = outcome(round, limits);
    if (!lease.valid_at(round.ended) || is_lost(round.tally, lease)) {
        error = Errc::lost;
        lease.valid_until = std::min(lease.valid_until, round.ended);
    } else if (error == Errc::held_by_other) {
        error = Errc::no_quorum;  // some nodes have lost the key, but fewer than a majority
    } else if (!error) {
        lease.valid_until = round.valid_until = std::max(lease.valid_until, round.valid_until);
    }
    return result_of(error, std::move(round));
}

/// Makes the round of an extension, which ends with the old validity at the latest. apply_extension() decides
/// what the votes mean.
inline RoundResult ask_to_extend(Nodes& nodes, Clock& clock, const LeaseRequest& request,
                                 const Lease& lease) {
    const auto start = clock.now();
    auto tally = nodes.ask(extend_request(request, lease), {.deadline = lease.valid_until});
    return {std::move(tally), valid_until(start, request), clock.now()};
}

/// Extends the lease by the ttl of the request, in one round.
inline Result extend(Nodes& nodes, Clock& clock, const LeaseRequest& request, Lease& lease) {
    const RoundLimits limits{.deadline = lease.valid_until};
    return apply_extension(ask_to_extend(nodes, clock, request, lease), limits, lease);
}

/// Returns the remaining minimum hold time of a lease that is released now.
inline std::chrono::milliseconds rest_of(const Lease& lease, Clock::time_point now) {
    return std::chrono::ceil<std::chrono::milliseconds>(
        std::max(lease.keep_until - now, Clock::duration::zero()));
}

/// Releases the lease on every node, and waits for the replies.
///
/// - Success means that a majority deleted our key within its validity. If the release is repeated, a node
///   without the key counts as well, because it may have deleted the key the first time.
/// - If the outcome is `no_quorum`, or fewer than a majority have answered, `lease` is kept until its
///   validity is over, so that the release can be repeated. Otherwise `lease` is empty afterwards.
/// - A fair release wakes the next waiter, unless the minimum hold time blocks the resource for longer.
inline Result release(Nodes& nodes, Clock& clock, Resources resources, Lease& lease, bool fair = false) {
    const bool again = lease.released;
    const auto now = clock.now();
    const bool in_time = now < lease.valid_until;
    const auto rest = rest_of(lease, now);
    fair = fair && rest == rest.zero();
    lease.released = true;
    const QueueTerms queue{.patience = patience(nodes.node_timeout()), .repeated = again};
    auto tally = delete_keys(nodes, resources, lease, fair ? &queue : nullptr, {}, rest);
    if (fair) note_contention(nodes, resources, tally);
    const auto gone = tally.granted() + (again ? tally.refused() : 0);
    std::error_code error;
    if (!in_time || (!again && is_lost(tally, lease)))
        error = Errc::lost;
    else if (gone < quorum(tally.size()))
        error = Errc::no_quorum;
    const bool answered = tally.granted() + tally.refused() >= quorum(tally.size());
    if ((answered && error != Errc::no_quorum) || clock.now() >= lease.valid_until) lease = {};
    return Result{error, std::move(tally), 1, {}};
}

/// Releases the lease without waiting for the replies. Always returns success, because the outcome is not
/// known.
inline Result release_without_waiting(Nodes& nodes, Clock& clock, Resources resources, Lease& lease) {
    (void)delete_keys(nodes, resources, lease, nullptr, {.awaits_answers = false},
                      rest_of(lease, clock.now()));
    lease = {};
    return Result{std::error_code{}};
}

}  // namespace redlock::algorithm
