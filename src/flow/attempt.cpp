// The steps of one attempt, in the order of the Redlock specification (algorithm.hpp). With
// LockOptions::fencing, step 4 also chooses the fencing token. If this fails, step 5 follows.
#include "attempt.hpp"

#include <redlock/algorithm/outcome.hpp>
#include <redlock/algorithm/waiting.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace redlock::flow {

using namespace algorithm;

namespace {

/// Adds the cause `wrong_type` to the refusals of an attempt, for each node on which the resource is a key of
/// another type, such as a hash. SET NX refuses every existing key, so only the refusal of step 5, which
/// reads the value, has this cause.
void record_wrong_types(Tally& attempt_votes, Tally&& undo_votes) {
    for (std::size_t node = 0; node < attempt_votes.size(); ++node) {
        auto& attempt = attempt_votes[node];
        auto& undo = undo_votes[node];
        if (attempt.vote != Vote::refused || undo.cause != Errc::wrong_type) continue;
        attempt.cause = undo.cause;
        attempt.detail = std::move(undo.detail);
    }
}

/// Finds nodes that lead to the same server as another node, after a failed attempt and the release of
/// step 5. Such a node has refused the SET because the key of this owner was there already, and has then
/// deleted the key that the other node had set. Makes their votes unknown, with the cause `same_server`.
/// Returns true if there are any.
bool record_same_servers(Tally& attempt_votes, const Tally& undo_votes) {
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

}  // namespace

Attempt::Attempt(Operation& operation, Clock& clock, Entropy& entropy, const LeaseRequest& request,
                 const RoundLimits& limits, const QueueTerms* queue, RoundResult& round)
    : Steps(operation),
      clock_(clock),
      entropy_(entropy),
      request_(request),
      limits_(limits),
      queue_(queue),
      waking_{.reservation_ttl = reservation_ttl(nodes().node_timeout())},
      round_(round) {}

Flow Attempt::run() {
    if (const auto error = candidate_.owner.draw(entropy_)) co_return error;
    candidate_.may_hold_key.set();  // until the votes are known, every node may have the key
    candidate_.shared = request_.shared;

    // Step 1: read the time, before the first byte is sent.
    const auto start = clock_.now();

    // Step 2: set the key, if it is free, on all N nodes to the same random value.
    const auto set = acquire_request(request_, candidate_, queue_);
    co_await ask(set, limits_, round_.tally);
    candidate_.may_hold_key = round_.tally.sent();

    // Step 3: hold the lock if, and only if, a majority granted it before the validity ended.
    round_.valid_until = valid_until(start, request_);
    round_.ended = clock_.now();
    auto error = outcome(round_, limits_);

    // Step 4: the lock is valid until start + ttl − drift.
    candidate_.valid_until = round_.valid_until;
    if (!error && request_.fencing) {
        const auto confirmation = confirm_fencing_token();
        error = co_await confirmation;
    }

    // Step 5: if the lock is not held, delete the key on every node that the SET may have reached.
    if (error && candidate_.may_hold_key.any()) {
        // A release may have woken this client. If the attempt then ends early, because of its deadline or a
        // stop request, the wake-up must be passed on to the next client in the queue. After other errors,
        // this client mostly makes another attempt, and otherwise the next question of a waiter finds the
        // free resource.
        const bool wakes = request_.fair && (error == Errc::deadline || error == Errc::cancelled);
        const auto undo = delete_request(request_.resources, candidate_, wakes ? &waking_ : nullptr);
        const auto undo_votes = blank_votes();
        may_have_woken_ = wakes;
        co_await ask(undo, no_limits_, *undo_votes);  // a stop request must not end it
        // Some refusals came from the key of this client, so perhaps no other client holds the lock.
        if (record_same_servers(round_.tally, *undo_votes) && error == Errc::held_by_other)
            error = Errc::no_quorum;
        record_wrong_types(round_.tally, std::move(*undo_votes));
    }
    if (error) candidate_.may_hold_key.reset();  // the round of step 5 sees to the releases
    co_return error;
}

// ---- The fencing token
//
// Each node counts the holders of a resource, and grants a lock with its new count. The token is the largest
// of these counts, once a majority of the nodes has at least this count. docs/protocol.md has the reasons.
//
// A node refuses to raise its count to one that is ahead of its wall clock by more than a day plus twice
// NodesOptions::quarantine.
//
// In these functions, `tally` has the votes of the round that acquired, and `raised` those of a round that
// raised the counts.

namespace {

/// Returns the largest count that came with a grant. It is the token, unless other nodes refuse it.
std::uint64_t largest_count(const Tally& tally) {
    std::uint64_t result = 0;
    for (const auto& node : tally.reports())
        if (node.vote == Vote::granted) result = std::max(result, node.count);
    return result;
}

/// Returns the nodes that granted with exactly the count `fence`.
NodeSet nodes_that_counted(const Tally& tally, std::uint64_t fence) {
    NodeSet result;
    for (std::size_t node = 0; node < tally.size(); ++node)
        result[node] = tally[node].vote == Vote::granted && tally[node].count == fence;
    return result;
}

/// Returns true if the node refused to raise its count because the token is too far ahead of its wall clock.
/// Only such a refusal comes with the node's own count.
bool own_count_in_refusal(const NodeReport& node) {
    return node.vote == Vote::refused && node.count > 0;
}

/// Counts unknown votes of these nodes as grants, because they have returned the token with their grants. But
/// a node whose server has voted for another node has no vote.
void grant_unknown(Tally& raised, const NodeSet& counted) {
    for (std::size_t node = 0; node < raised.size(); ++node)
        if (counted[node] && raised[node].vote == Vote::unknown && raised[node].cause != Errc::same_server)
            raised.grant(node);
}

/// Corrects the votes in `tally` after nodes have refused the token. If a node has reported its own count,
/// this count replaces the one that came with its grant. (They can differ if the lock is shared, because the
/// node may have counted other readers meanwhile.) A node that has lost the key of this client no longer
/// grants. The votes of the nodes that had counted exactly the token are rejected, because their counts
/// are wrong.
void correct_votes(Tally& tally, const Tally& raised, const NodeSet& counted) {
    for (std::size_t node = 0; node < tally.size(); ++node) {
        if (own_count_in_refusal(raised[node]))
            tally.grant(node, raised[node].count);
        else if (raised[node].vote == Vote::refused)
            tally.refuse(node);
        if (!counted[node]) continue;
        tally[node].detail = "counts " + std::to_string(tally[node].count) + ", far ahead of the other nodes";
        tally.mark_unknown(node, Errc::unexpected_reply);
    }
}

/// Copies the reports of the rejected nodes, which the last round did not ask.
void carry_over_rejections(const Tally& tally, Tally& raised) {
    for (std::size_t node = 0; node < tally.size(); ++node)
        if (tally[node].cause == Errc::unexpected_reply && raised[node].cause == Errc::not_asked)
            raised[node] = tally[node];
}

/// Returns the outcome of a round that raised the counts of the nodes. It differs from outcome() in two
/// cases:
///
/// - Refusals make it `no_quorum` and not `held_by_other`. A node refuses here if it no longer has the key.
/// - If the validity ended before the deadline of the caller, it is `validity_exhausted` and not `deadline`.
std::error_code outcome_of_confirmation(const RoundResult& round, const RoundLimits& limits) {
    const auto error = outcome(round, limits);
    if (error == Errc::held_by_other) return Errc::no_quorum;
    const bool callers = limits.deadline <= round.valid_until;
    return error == Errc::deadline && !callers ? Errc::validity_exhausted : error;
}

}  // namespace

/// Chooses the fencing token, and makes sure that a majority of the nodes has at least this count.
///
/// 1. The token is the largest count. If a majority has returned this count, it is confirmed.
/// 2. Otherwise another round asks all nodes that may hold the key to raise their counts to the token. If a
///    majority does so, it is confirmed.
/// 3. A node refuses a token that is far ahead of its clock. If the round failed for this reason, the nodes
///    that had returned this token lose their votes (they are *rejected*), and this list begins again with
///    the others (the *accepted* ones), which must be a majority.
///
/// An example with three nodes. 999 stands for a count that is far ahead of the clocks:
///
///     counts 7 7 7     a majority has counted 7                                              token 7
///     counts 7 9 8     another round raises the counts to 9                                  token 9
///     counts 7 999 8   the first and the third node refuse 999, so the second node
///                      loses its vote; a further round raises the other counts to 8          token 8
Flow Attempt::confirm_fencing_token() {
    const auto needed = quorum(nodes().size());
    const RoundLimits limits{.deadline = std::min(limits_.deadline, candidate_.valid_until),
                             .stop = limits_.stop};
    for (auto accepted = candidate_.may_hold_key;;) {
        candidate_.fencing_token = largest_count(round_.tally);
        const auto counted = nodes_that_counted(round_.tally, candidate_.fencing_token);
        // From the second pass on, the rounds have taken time, so the validity is checked again.
        if (counted.count() >= needed) co_return outcome(round_, limits_);
        const Request raise{.command = {.verb = Verb::raise_count,
                                        .resources = request_.resources,
                                        .owner = candidate_.owner.view(),
                                        .fence = candidate_.fencing_token,
                                        .shared = candidate_.shared},
                            .to = accepted};
        const auto votes = blank_votes();
        auto& raised = *votes;
        co_await ask(raise, limits, raised);
        round_.ended = clock_.now();
        const bool refused_as_too_large = std::ranges::any_of(raised.reports(), own_count_in_refusal);
        grant_unknown(raised, counted);
        if (raised.granted() >= needed || !refused_as_too_large) {
            carry_over_rejections(round_.tally, raised);
            round_.tally = std::move(raised);
            co_return outcome_of_confirmation(round_, limits_);
        }
        correct_votes(round_.tally, raised, counted);
        accepted &= ~counted;
        if (round_.tally.granted() < needed) co_return Errc::no_quorum;
    }
}

Result Attempt::take_result(std::error_code error) {
    if (!made_round()) return Result{error};
    return result_of(error, std::move(round_));
}

std::optional<Request> Attempt::unreleased() noexcept {
    if (candidate_.may_hold_key.none()) return std::nullopt;
    waking_.only_passes_on = std::exchange(may_have_woken_, true);  // so that it wakes no second waiter
    return delete_request(request_.resources, candidate_, request_.fair ? &waking_ : nullptr);
}

}  // namespace redlock::flow
