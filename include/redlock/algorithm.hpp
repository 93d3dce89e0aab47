// Redlock, the algorithm of the page "Distributed Locks with Redis", step by step.
//
// To acquire the lock, a client
//   1. reads the time;
//   2. tries to set the key with one random value on all N nodes in turn, none of which may cost it more
//      than a short budget;
//   3. holds the lock if, and only if, a majority granted it and less than the validity has elapsed;
//   4. may then work for ttl − elapsed − drift;
//   5. otherwise deletes the key on all nodes again, also where it does not believe it was set, and tries
//      once more after a random pause.
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
#include <redlock/retry.hpp>

#include <algorithm>
#include <limits>
#include <stop_token>
#include <string_view>
#include <utility>

namespace redlock::algorithm {

/// What is claimed, and for how long.
struct Claim {
    Resources resources;
    std::chrono::milliseconds ttl;
    double drift_factor;
    bool fencing = false;
};

/// When an acquire gives up.
struct Patience {
    int attempts = std::numeric_limits<int>::max();
    Clock::time_point deadline = Clock::never();
    std::stop_token stop{};
    bool outlasts_holders =
        false;  ///< attempts refused by a holder do not count, as std::mutex::lock() waits
};

/// The votes on one command, and the instant until which a majority of grants may be counted on.
struct Ballot {
    Tally tally;
    Clock::time_point valid_until;
    Clock::time_point ended;
};

/// MIN_VALIDITY = ttl − (T2 − T1) − CLOCK_DRIFT, kept as the absolute instant it ends at.
inline Clock::time_point valid_until(Clock::time_point start, const Claim& claim) {
    return start + claim.ttl - drift(claim.ttl, claim.drift_factor);
}

/// Steps 1, 2 and 4, shared by acquire and extend.
inline Ballot ballot(Nodes& nodes, Clock& clock, const Claim& claim, const Request& request,
                     const RoundLimits& limits) {
    // Step 1: the time, before the first byte is sent.
    const auto start = clock.now();
    // Step 2: the command to all N nodes.
    auto tally = nodes.ask(request, limits);
    // Step 4: how long it may be counted on.
    return {std::move(tally), valid_until(start, claim), clock.now()};
}

/// Whether others stood in the way, and not the nodes: somebody refused, and those that answered, or would
/// have been asked had it still mattered, form a quorum. Clients that collide split the votes like this, too.
inline bool refused_by_holders(const Tally& tally) {
    const auto sound = std::ranges::count_if(tally.reports(), [](const NodeReport& node) {
        return node.vote != Vote::unknown || node.cause == Errc::not_asked || node.cause == Errc::not_awaited;
    });
    return tally.refused() > 0 && static_cast<std::size_t>(sound) >= quorum(tally.size());
}

/// Whether refusals alone rule out a majority.
inline bool ruled_out(const Tally& tally) {
    return tally.size() - tally.refused() < quorum(tally.size());
}

/// Step 3: a majority of the nodes configured, and time left; else the reason why not.
inline std::error_code verdict(const Ballot& ballot, const RoundLimits& limits) {
    const auto& tally = ballot.tally;
    if (tally.granted() >= quorum(tally.size()))
        return ballot.ended < ballot.valid_until ? std::error_code{} : Errc::validity_exhausted;
    if (ruled_out(tally)) return Errc::held_by_other;
    if (limits.stop.stop_requested()) return Errc::cancelled;
    if (ballot.ended >= limits.deadline) return Errc::deadline;
    return refused_by_holders(tally) ? Errc::held_by_other : Errc::no_quorum;
}

inline Result result_of(std::error_code error, Ballot&& ballot) {
    const auto validity = error ? Clock::duration::zero() : ballot.valid_until - ballot.ended;
    return Result{error, std::move(ballot.tally), 1, validity};
}

/// Deletes the key wherever a byte of the SET may have gone, if it is still ours (S8, S26, rule B1). Not
/// under the caller's deadline, which may be over: each node's own budget bounds it (rule B6).
inline Ballot give_back(Nodes& nodes, Clock& clock, Resources resources, const Lease& lease) {
    auto tally = nodes.ask(
        {.command = {.verb = Verb::compare_and_delete, .resources = resources, .owner = lease.owner.view()},
         .to = lease.marked});
    return {std::move(tally), lease.valid_until, clock.now()};
}

inline Command claiming(const Claim& claim, std::string_view owner) {
    return {.verb = claim.fencing ? Verb::set_and_count : Verb::set_if_absent,
            .resources = claim.resources,
            .owner = owner,
            .ttl = claim.ttl};
}

/// Beside the page: makes sure that a majority has counted up to the largest count that was granted, in a
/// second round where the first does not show it. Then the next holder, who needs a grant of one of these
/// nodes, gets a larger one. Where other nodes refuse to count that far, the nodes that did are not believed,
/// and it is the next largest count that matters. Any majority of grants will do for the token.
inline std::error_code settle_fence(Nodes& nodes, Clock& clock, const Claim& claim, const RoundLimits& limits,
                                    Lease& bid, Ballot& round) {
    const auto needed = quorum(nodes.size());
    for (auto believed = bid.marked;;) {
        bid.fencing_token = largest_count(round.tally);
        const auto counted = nodes_that_counted(round.tally, bid.fencing_token);
        if (counted.count() >= needed) return verdict(round, limits);
        auto raised =
            nodes.ask({.command = {.verb = Verb::raise_count,
                                   .resources = claim.resources,
                                   .owner = bid.owner.view(),
                                   .fence = bid.fencing_token},
                       .to = believed},
                      {.deadline = std::min(limits.deadline, bid.valid_until), .stop = limits.stop});
        round.ended = clock.now();
        const bool refused_as_absurd = std::ranges::any_of(raised.reports(), own_count_in_refusal);
        for (std::size_t node = 0; node < raised.size(); ++node)
            if (counted[node] && raised[node].vote == Vote::unknown) raised.grant(node);
        if (raised.granted() >= needed || !refused_as_absurd) {
            carry_over_disbelief(round.tally, raised);
            round.tally = std::move(raised);
            const auto error = verdict(round, limits);
            return error == Errc::held_by_other ? Errc::no_quorum
                                                : error;  // our keys have gone: nobody's doing
        }
        take_own_counts(round.tally, raised);
        disbelieve(round.tally, counted);
        believed &= ~counted;
        if (round.tally.granted() < needed) return Errc::no_quorum;
    }
}

/// One attempt, steps 1 to 5. On success `lease` is the new one; else it is untouched and nothing is left
/// of the attempt on any node that can be reached (rule A2).
inline Result attempt(Nodes& nodes, Clock& clock, Entropy& entropy, const Claim& claim,
                      const RoundLimits& limits, Lease& lease) {
    Lease bid;
    if (auto error = bid.owner.draw(entropy)) return Result{error};
    auto round = ballot(nodes, clock, claim, {.command = claiming(claim, bid.owner.view())}, limits);
    bid.valid_until = round.valid_until;
    bid.marked = round.tally.sent();
    auto error = verdict(round, limits);
    if (!error && claim.fencing) error = settle_fence(nodes, clock, claim, limits, bid, round);
    if (!error)
        lease = bid;
    else if (bid.marked.any())
        give_back(nodes, clock, claim.resources, bid);  // Step 5.
    return result_of(error, std::move(round));
}

/// Whether another attempt could end differently: somebody lets go, or enough nodes recover by themselves.
inline bool worth_retrying(const Result& result) {
    if (result.error() == Errc::held_by_other || result.error() == Errc::validity_exhausted) return true;
    if (result.error() != Errc::no_quorum) return false;
    const auto hopeless = std::ranges::count_if(result.nodes(), [](const NodeReport& node) {
        return node.vote == Vote::unknown && !is_transient(node.cause);
    });
    return result.nodes().size() - static_cast<std::size_t>(hopeless) >= quorum(result.nodes().size());
}

/// Pauses for a random time (S20), cut where the deadline would leave no room for an attempt after it (rule
/// A8): one that takes twice as long as the last, but that one may have waited for nodes that are well again,
/// so no more than half of what is left. Answers whether it was cut: then the next attempt is the last.
inline bool pause(Clock& clock, Entropy& entropy, const Retry& retry, const Patience& patience,
                  Clock::duration last_attempt_took) {
    const auto now = clock.now();
    const auto left = patience.deadline - now;
    const auto attempt = std::max<Clock::duration>(2 * last_attempt_took, std::chrono::milliseconds{1});
    const auto room = left - std::min(attempt, left / 2);
    const auto wanted = random_pause(retry.delay, entropy);
    clock.sleep_until(now + std::min(room, wanted), patience.stop);
    return wanted > room;
}

/// Attempts until one succeeds, none can, or the patience is at its end. Each has an owner of its own (rule
/// A5).
inline Result acquire(Nodes& nodes, Clock& clock, Entropy& entropy, const Claim& claim, const Retry& retry,
                      const Patience& patience, Lease& lease) {
    const RoundLimits limits{.deadline = patience.deadline, .stop = patience.stop};
    Result last{Errc::deadline};
    int counted = 0;
    bool last_attempt = false;
    for (int attempts = 1;; ++attempts) {
        const auto start = clock.now();
        if (patience.stop.stop_requested()) return last.conclude(Errc::cancelled, attempts - 1);
        if (start >= patience.deadline) return last;

        auto result = attempt(nodes, clock, entropy, claim, limits, lease);
        if (!result.nodes().empty()) result.conclude(result.error(), attempts);
        if (result.error() == Errc::deadline && attempts > 1) return last;  // it was cut short: no news
        last = std::move(result);

        counted += patience.outlasts_holders && last.error() == Errc::held_by_other ? 0 : 1;
        if (last || counted >= patience.attempts || last_attempt || !worth_retrying(last)) return last;
        if (clock.now() >= patience.deadline) return last;
        last_attempt = pause(clock, entropy, retry, patience, clock.now() - start);
    }
}

/// Whether no majority can have our key any more: it is gone from the nodes that refuse, and the nodes that
/// never were sent the SET cannot have it.
inline bool is_lost(const Tally& tally, const Lease& lease) {
    std::size_t may_have_it = 0;
    for (std::size_t node = 0; node < tally.size(); ++node)
        if (lease.marked[node] && tally[node].vote != Vote::refused) ++may_have_it;
    return may_have_it < quorum(tally.size());
}

/// An extension counts only while the validity lasts.
inline RoundLimits limits_of_extension(const Lease& lease) {
    return {.deadline = lease.valid_until};
}

/// It goes to the nodes that can have our key.
inline Request extending(const Claim& claim, const Lease& lease) {
    return {.command = {.verb = Verb::compare_and_expire,
                        .resources = claim.resources,
                        .owner = lease.owner.view(),
                        .ttl = claim.ttl},
            .to = lease.marked};
}

/// What the round of an extension has come to. Its confirmation counts only if it came within the old
/// validity, for in between another may have held it. On failure the old instant stands, unless a majority
/// has lost our key: then the lease ends here (rule C2).
inline Result settle_extension(Ballot&& round, const RoundLimits& limits, Lease& lease) {
    auto error = verdict(round, limits);
    if (!lease.valid_at(round.ended) || is_lost(round.tally, lease)) {
        error = Errc::lost;
        lease.valid_until = std::min(lease.valid_until, round.ended);
    } else if (error == Errc::held_by_other)
        error = Errc::no_quorum;  // a few nodes have lost the key: no majority has
    else if (!error)
        lease.valid_until = round.valid_until = std::max(lease.valid_until, round.valid_until);
    return result_of(error, std::move(round));
}

/// Lengthens the lease by another ttl (S31, S32).
inline Result extend(Nodes& nodes, Clock& clock, const Claim& claim, Lease& lease) {
    const auto limits = limits_of_extension(lease);
    return settle_extension(ballot(nodes, clock, claim, extending(claim, lease), limits), limits, lease);
}

/// Lets go on every node (S26). Success: a majority deleted our key within its validity. Repeated, a node
/// without the key counts as well: it may have deleted it the first time, unheard. The lease is kept only
/// while a majority has given no answer, so that the release can be repeated (rule B4).
inline Result release(Nodes& nodes, Clock& clock, Resources resources, Lease& lease) {
    const bool again = lease.released;
    const bool in_time = clock.now() < lease.valid_until;
    lease.released = true;
    auto round = give_back(nodes, clock, resources, lease);
    const auto gone = round.tally.granted() + (again ? round.tally.refused() : 0);
    std::error_code error;
    if (!in_time || (!again && is_lost(round.tally, lease)))
        error = Errc::lost;
    else if (gone < quorum(round.tally.size()))
        error = Errc::no_quorum;
    const bool answered = round.tally.granted() + round.tally.refused() >= quorum(round.tally.size());
    if ((answered && error != Errc::no_quorum) || round.ended >= lease.valid_until) lease = {};
    return Result{error, std::move(round.tally), 1, {}};
}

}  // namespace redlock::algorithm
