// Redlock, the algorithm of the page "Distributed Locks with Redis", step by step.
//
// To acquire the lock, a client
//   1. reads the time;
//   2. tries to set the key with one random value on all N nodes in turn, none of which may cost it more
//      than a short budget;
//   3. holds the lock if, and only if, a majority granted it and less than the validity has elapsed;
//   4. may then work for ttl − elapsed − drift;
//   5. otherwise deletes the key on all nodes again, also where it does not believe it was set, and tries
//      once more after a random pause (acquire.hpp).
// To extend, it does steps 1 to 4 with a script that lengthens the expiry where the key is still its own.
//
// These functions decide; they do not know sockets, real clocks or real randomness. What they are given can
// be a simulation. Lock (lock.hpp) is their face to the user.
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

/// What is to be locked, and for how long.
struct LeaseRequest {
    Resources resources;
    std::chrono::milliseconds ttl;
    double drift_factor;
    bool fencing = false;
    bool fair = false;
    bool shared = false;
};

/// The votes on one command, and the instant until which a majority of grants may be counted on.
struct RoundResult {
    Tally tally;
    Clock::time_point valid_until;
    Clock::time_point ended;
};

/// MIN_VALIDITY = ttl − (T2 − T1) − CLOCK_DRIFT, kept as the absolute instant it ends at.
inline Clock::time_point valid_until(Clock::time_point start, const LeaseRequest& request) {
    return start + request.ttl - drift(request.ttl, request.drift_factor);
}

/// Whether others stood in the way, and not the nodes: a node refused, and those that answered, or would
/// have been asked had it still mattered, form a quorum. Clients that collide split the votes like this, too.
inline bool refused_by_holders(const Tally& tally) {
    const auto failed = std::ranges::count_if(tally.reports(), detail::failed_to_vote);
    return tally.refused() > 0 && tally.size() - static_cast<std::size_t>(failed) >= quorum(tally.size());
}

/// Whether refusals alone rule out a majority.
inline bool ruled_out(const Tally& tally) {
    return tally.size() - tally.refused() < quorum(tally.size());
}

/// Whether the caller's deadline left some node too little time to answer: the tally is incomplete.
inline bool cut_short(const Tally& tally) {
    return std::ranges::any_of(tally.reports(),
                               [](const NodeReport& node) { return node.cause == Errc::deadline; });
}

/// No error: a majority of the nodes configured, and time left; else the reason why not.
inline std::error_code outcome(const RoundResult& round, const RoundLimits& limits) {
    const auto& tally = round.tally;
    if (tally.granted() >= quorum(tally.size()))
        return round.ended < round.valid_until ? std::error_code{} : Errc::validity_exhausted;
    if (ruled_out(tally)) return Errc::held_by_other;
    if (limits.stop.stop_requested()) return Errc::cancelled;
    if (round.ended >= limits.deadline || cut_short(tally)) return Errc::deadline;
    return refused_by_holders(tally) ? Errc::held_by_other : Errc::no_quorum;
}

inline Result result_of(std::error_code error, RoundResult&& round) {
    const auto validity = error ? Clock::duration::zero() : round.valid_until - round.ended;
    return Result{error, std::move(round.tally), 1, validity};
}

inline Request acquire_request(const LeaseRequest& request, const Lease& candidate, const QueueTerms* queue) {
    return {.command = {.verb = request.fencing ? Verb::set_and_count : Verb::set_if_absent,
                        .resources = request.resources,
                        .owner = candidate.owner.view(),
                        .ttl = request.ttl,
                        .queue = queue,
                        .shared = candidate.shared}};
}

/// To the nodes that can have our key.
inline Request extend_request(const LeaseRequest& request, const Lease& lease) {
    return {.command = {.verb = Verb::compare_and_expire,
                        .resources = request.resources,
                        .owner = lease.owner.view(),
                        .ttl = request.ttl,
                        .shared = lease.shared},
            .to = lease.may_hold_key};
}

/// Deletes the key wherever a byte of the SET may have gone, if it is still ours (S8, S26, rule B1). Not
/// under the caller's deadline, which may be over: each node's own budget bounds it (rule B6). With `queue`
/// it wakes the next waiter; with a `rest` the resource is kept from everybody for so long instead.
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

/// Step 5 of an attempt. One that is fair, and ends for its caller's sake, wakes the next waiter: it may have
/// been the one to be woken.
inline Tally undo(Nodes& nodes, const LeaseRequest& request, const Lease& candidate, std::error_code error) {
    const bool wakes = request.fair && (error == Errc::deadline || error == Errc::cancelled);
    const QueueTerms queue{.patience = patience(nodes.node_timeout())};
    return delete_keys(nodes, request.resources, candidate, wakes ? &queue : nullptr);
}

/// SET NX refuses a key of any type alike, but the release of the attempt reads the value: a node that
/// refused the attempt, and whose release fails because the key has another type, gets this as the cause of
/// its refusal.
inline void note_wrong_types(Tally& attempted, Tally&& released) {
    for (std::size_t node = 0; node < attempted.size(); ++node) {
        if (attempted[node].vote != Vote::refused || released[node].cause != Errc::wrong_type) continue;
        attempted[node].cause = released[node].cause;
        attempted[node].detail = std::move(released[node].detail);
    }
}

/// What the round that raises the counts has come to. A majority of refusals means that our keys have gone,
/// and nobody took them; and the deadline may have been the end of the validity, and not the caller's.
inline std::error_code outcome_of_confirmation(const RoundResult& round, const RoundLimits& limits) {
    const auto error = outcome(round, limits);
    if (error == Errc::held_by_other) return Errc::no_quorum;
    const bool callers = limits.deadline <= round.valid_until;
    return error == Errc::deadline && !callers ? Errc::validity_exhausted : error;
}

/// Not part of the page: makes sure that a majority has counted up to the largest count that was granted, in
/// a second round where the first does not show it. Then the next holder, who needs a grant of one of these
/// nodes, gets a larger one. Where other nodes refuse to count that far, the counts of the nodes that did are
/// rejected, and it is the next largest count that matters. Any majority of grants will do for the token.
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
                raised.grant(node);  // in the first round, with just this count: that stands
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

/// One attempt. On success `lease` is the new one; else it is untouched and nothing is left of the attempt on
/// any node that can be reached (rule A2), also where memory runs out in between. `queue` is that of a
/// waiter.
inline Result attempt(Nodes& nodes, Clock& clock, Entropy& entropy, const LeaseRequest& request,
                      const RoundLimits& limits, Lease& lease, const QueueTerms* queue = nullptr) {
    Lease candidate;
    if (auto error = candidate.owner.draw(entropy)) return Result{error};
    candidate.may_hold_key.set();
    candidate.shared = request.shared;
    try {
        // Step 1: the time, before the first byte is sent.
        const auto start = clock.now();

        // Step 2: the key, if it is free, on all N nodes with the one random value.
        auto tally = nodes.ask(acquire_request(request, candidate, queue), limits);
        candidate.may_hold_key = tally.sent();

        // Step 3: held if, and only if, a majority granted it and less than the validity has elapsed.
        RoundResult round{std::move(tally), valid_until(start, request), clock.now()};
        auto error = outcome(round, limits);

        // Step 4: it may be counted on for ttl − elapsed − drift.
        candidate.valid_until = round.valid_until;
        if (!error && request.fencing)
            error = confirm_fencing_token(nodes, clock, request, limits, candidate, round);
        if (!error) lease = candidate;

        // Step 5: otherwise the key is deleted wherever it may have been set.
        if (error && candidate.may_hold_key.any())
            note_wrong_types(round.tally, undo(nodes, request, candidate, error));
        return result_of(error, std::move(round));
    } catch (...) {  // no memory, or a Nodes of the user's own that breaks its contract: step 5
        (void)delete_keys(nodes, request.resources, candidate);
        throw;
    }
}

/// Not part of the page: what the holder says of itself, for as long as it holds. It is written, and not
/// waited for, and what becomes of it matters to no lock. Without `ttl`: it no longer holds.
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
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory, or nodes that know nothing of it
    }
}

/// Whether no majority can have our key any more: it is gone from the nodes that refuse, and the nodes that
/// never were sent the SET cannot have it.
inline bool is_lost(const Tally& tally, const Lease& lease) {
    std::size_t may_have_it = 0;
    for (std::size_t node = 0; node < tally.size(); ++node)
        if (lease.may_hold_key[node] && tally[node].vote != Vote::refused) ++may_have_it;
    return may_have_it < quorum(tally.size());
}

/// What the round of an extension has come to. Its confirmation counts only if it came within the old
/// validity, for in between another may have held it. On failure the old instant stands, unless a majority
/// has lost our key: then the lease ends here (rule C2).
inline Result apply_extension(RoundResult&& round, const RoundLimits& limits, Lease& lease) {
    auto error = outcome(round, limits);
    if (!lease.valid_at(round.ended) || is_lost(round.tally, lease)) {
        error = Errc::lost;
        lease.valid_until = std::min(lease.valid_until, round.ended);
    } else if (error == Errc::held_by_other) {
        error = Errc::no_quorum;  // a few nodes have lost the key: no majority has
    } else if (!error) {
        lease.valid_until = round.valid_until = std::max(lease.valid_until, round.valid_until);
    }
    return result_of(error, std::move(round));
}

/// Steps 1 to 4 with a script that lengthens the expiry (S31), while the validity lasts. What they come to is
/// for apply_extension().
inline RoundResult ask_to_extend(Nodes& nodes, Clock& clock, const LeaseRequest& request,
                                 const Lease& lease) {
    const auto start = clock.now();
    auto tally = nodes.ask(extend_request(request, lease), {.deadline = lease.valid_until});
    return {std::move(tally), valid_until(start, request), clock.now()};
}

/// Lengthens the lease by another ttl (S31, S32).
inline Result extend(Nodes& nodes, Clock& clock, const LeaseRequest& request, Lease& lease) {
    const RoundLimits limits{.deadline = lease.valid_until};
    return apply_extension(ask_to_extend(nodes, clock, request, lease), limits, lease);
}

/// How long the resource is still to be kept from everybody when it is released now.
inline std::chrono::milliseconds rest_of(const Lease& lease, Clock::time_point now) {
    return std::chrono::ceil<std::chrono::milliseconds>(
        std::max(lease.keep_until - now, Clock::duration::zero()));
}

/// Lets go on every node (S26). Success: a majority deleted our key within its validity. Repeated, a node
/// without the key counts as well: it may have deleted it the first time, unheard. Until it
/// expires, the lease is kept while no majority has confirmed that, so that the release can be repeated (rule
/// B4). If it is fair, it
/// wakes the next waiter, unless the resource is to be kept for longer: then nobody can have it yet.
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

/// The same where nobody hears the answers: it is written, and not waited for. What acquires the same
/// resources next goes behind it. Success: more is not known.
inline Result release_without_waiting(Nodes& nodes, Clock& clock, Resources resources, Lease& lease) {
    (void)delete_keys(nodes, resources, lease, nullptr, {.awaits_answers = false},
                      rest_of(lease, clock.now()));
    lease = {};
    return Result{std::error_code{}};
}

}  // namespace redlock::algorithm
