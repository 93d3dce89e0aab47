// The steps of one attempt, in the order of the Redlock specification (algorithm.hpp), and the choice of its
// fencing token (fencing.hpp).
#include "attempt.hpp"

#include <redlock/algorithm/fencing.hpp>
#include <redlock/algorithm/outcome.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <utility>

namespace redlock::flow {

using namespace algorithm;

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
    std::exception_ptr failure;
    try {
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
            const bool wakes = wakes_next_waiter(request_, error);
            const auto undo = delete_request(request_.resources, candidate_, wakes ? &waking_ : nullptr);
            const auto undo_votes = blank_votes();
            may_have_woken_ = wakes;
            co_await ask(undo, no_limits_, *undo_votes);
            // The other refusals may come from the same server, so nobody may hold the resource.
            if (record_same_servers(round_.tally, *undo_votes) && error == Errc::held_by_other)
                error = Errc::no_quorum;
            record_wrong_types(round_.tally, std::move(*undo_votes));
        }
        made_round_ = true;
        released_ = static_cast<bool>(error);  // in step 5
        co_return error;
    } catch (...) {  // no memory, or a Nodes of the user that throws
        failure = std::current_exception();
    }
    // Step 5 after an exception.
    const auto undo = delete_request(request_.resources, candidate_);
    const auto undo_votes = blank_votes();
    co_await ask(undo, no_limits_, *undo_votes);
    released_ = true;
    std::rethrow_exception(failure);
}

/// Chooses the fencing token, and makes sure that a majority of the nodes has at least this count. Each node
/// counts the holders of a resource, and returns its count with the grant (fencing.hpp).
///
/// 1. The token is the largest count. If a majority has returned this count, it is confirmed.
/// 2. Otherwise another round asks all nodes that may hold the key to raise their counts to the token. If a
///    majority does so, it is confirmed.
/// 3. A node refuses a token that is far ahead of its clock. If the round failed for this reason, the nodes
///    that had returned this token lose their votes, and step 1 begins again with the others, which must be a
///    majority.
///
/// An example with three nodes. 999 stands for a count that is far ahead of the clocks:
///
///     counts 7 7 7     a majority has counted 7                                              token 7
///     counts 7 9 8     the second round raises the counts to 9                               token 9
///     counts 7 999 8   the first and the third node refuse 999, so the second node
///                      loses its vote; a third round raises the other counts to 8            token 8
Flow Attempt::confirm_fencing_token() {
    const auto needed = quorum(nodes().size());
    const RoundLimits limits{.deadline = std::min(limits_.deadline, candidate_.valid_until),
                             .stop = limits_.stop};
    for (auto accepted = candidate_.may_hold_key;;) {
        candidate_.fencing_token = largest_count(round_.tally);
        const auto counted = nodes_that_counted(round_.tally, candidate_.fencing_token);
        // The rounds have taken time, so the validity is checked again.
        if (counted.count() >= needed) co_return outcome(round_, limits_);
        const auto raise = raise_request(accepted);
        const auto votes = blank_votes();
        auto& raised = *votes;
        co_await ask(raise, limits, raised);
        round_.ended = clock_.now();
        // A node returns its own count if it refuses the token as too far ahead of its clock.
        const bool refused_as_too_large = std::ranges::any_of(raised.reports(), own_count_in_refusal);
        // The nodes in `counted` have this count already, so an unknown vote of theirs is a grant.
        grant_unknown(raised, counted);
        if (raised.granted() >= needed || !refused_as_too_large) {
            carry_over_rejections(round_.tally, raised);
            round_.tally = std::move(raised);
            co_return outcome_of_confirmation(round_, limits_);
        }
        take_own_counts(round_.tally, raised);
        reject_counts(round_.tally, counted);
        accepted &= ~counted;
        if (round_.tally.granted() < needed) co_return Errc::no_quorum;
    }
}

Request Attempt::raise_request(const NodeSet& to) const {
    return {.command = {.verb = Verb::raise_count,
                        .resources = request_.resources,
                        .owner = candidate_.owner.view(),
                        .fence = candidate_.fencing_token,
                        .shared = candidate_.shared},
            .to = to};
}

Result Attempt::take_result(std::error_code error) {
    if (!made_round()) return Result{error};
    return result_of(error, std::move(round_));
}

std::optional<Request> Attempt::unreleased() noexcept {
    if (released_ || candidate_.may_hold_key.none()) return std::nullopt;
    waking_.repeated = std::exchange(may_have_woken_, true);  // so that it wakes no second waiter
    return delete_request(request_.resources, candidate_, request_.fair ? &waking_ : nullptr);
}

}  // namespace redlock::flow
