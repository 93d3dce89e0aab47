// The extension and the release of a lease, and what the votes on them mean (algorithm.hpp).
#include "lease.hpp"

#include <redlock/algorithm/waiting.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string_view>

namespace redlock::flow {

using namespace algorithm;

namespace {

/// Returns true if less than a majority of the nodes can still have the key, after a round that extends or
/// releases. A node that refused in this round does not have the key. The others that may have executed the
/// SET count as holders, even if they refused it.
bool is_lost(const Tally& tally, const Lease& lease) {
    std::size_t may_have_it = 0;
    for (std::size_t node = 0; node < tally.size(); ++node)
        if (lease.may_hold_key[node] && tally[node].vote != Vote::refused) ++may_have_it;
    return may_have_it < quorum(tally.size());
}

/// Returns how much of LockOptions::min_hold is left if the lease is released at `now`; 0 if nothing is left.
std::chrono::milliseconds remaining_min_hold(const Lease& lease, Clock::time_point now) {
    return std::chrono::ceil<std::chrono::milliseconds>(
        std::max(lease.min_hold_until - now, Clock::duration::zero()));
}

}  // namespace

Flow Release::run() {
    votes_ = nodes().blank_tally();
    const bool again = lease_.released;
    const auto now = clock_.now();
    const bool in_time = now < lease_.valid_until;
    const auto request = request_at(now);
    lease_.released = true;
    const RoundLimits limits{.awaits_answers = awaited_};
    co_await ask(request, limits, votes_);
    if (!awaited_) {
        lease_ = {};
        co_return std::error_code{};
    }
    if (request.command.queue) record_contention(nodes(), resources_, votes_);
    // The refusal of a repeated release is a confirmation (algorithm.hpp).
    const auto gone = votes_.granted() + (again ? votes_.refused() : 0);
    std::error_code error;
    if (!in_time || (!again && is_lost(votes_, lease_)))
        error = Errc::lost;
    else if (gone < quorum(votes_.size()))
        error = Errc::no_quorum;
    // The lease ends if a majority has answered and nothing has to be repeated, or if the keys have expired.
    const bool answered = votes_.granted() + votes_.refused() >= quorum(votes_.size());
    if ((answered && error != Errc::no_quorum) || clock_.now() >= lease_.valid_until) lease_ = {};
    co_return error;
}

Request Release::request_at(Clock::time_point now) noexcept {
    const auto hold_remaining = remaining_min_hold(lease_, now);
    const bool wakes = fair_ && hold_remaining == hold_remaining.zero();
    queue_ = {.reservation_ttl = reservation_ttl(nodes().node_timeout()), .only_passes_on = lease_.released};
    return delete_request(resources_, lease_, wakes ? &queue_ : nullptr, hold_remaining);
}

}  // namespace redlock::flow

namespace redlock::algorithm {

Result apply_extension(RoundResult&& round, const RoundLimits& limits, Lease& lease) {
    auto error = outcome(round, limits);
    if (!lease.valid_at(round.ended) || flow::is_lost(round.tally, lease)) {
        error = Errc::lost;
        lease.valid_until = std::min(lease.valid_until, round.ended);
    } else if (error == Errc::held_by_other) {
        error = Errc::no_quorum;
    } else if (!error) {
        lease.valid_until = round.valid_until = std::max(lease.valid_until, round.valid_until);
    }
    return result_of(error, std::move(round));
}

Result release(Nodes& nodes, Clock& clock, Resources resources, Lease& lease, bool fair) {
    flow::BlockingOperation operation{nodes};
    flow::Release release{operation, clock, resources, lease, fair, flow::Replies::awaited};
    const auto error = flow::run_blocking(operation, release.run());
    return release.take_result(error);
}

void describe_holder(Nodes& nodes, Resources resources, const Lease& lease, std::string_view description,
                     std::chrono::milliseconds ttl, Clock::time_point deadline) noexcept {
    if (description.empty()) return;
    try {
        (void)nodes.ask({.command = {.verb = Verb::describe_holder,
                                     .resources = resources,
                                     .owner = lease.owner.view(),
                                     .ttl = ttl,
                                     .description = description},
                         .to = lease.may_hold_key},
                        {.deadline = deadline, .awaits_answers = false});
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory, or a Nodes that does not know this verb
    }
}

}  // namespace redlock::algorithm
