#include "lease.hpp"

#include <redlock/algorithm/waiting.hpp>

namespace redlock::flow {

using namespace algorithm;

Flow Extension::run() {
    const auto start = clock_.now();
    const auto request = extend_request(request_, lease_);
    const RoundLimits limits{.deadline = lease_.valid_until};
    co_await ask(request, limits, round_.tally);
    round_.valid_until = valid_until(start, request_);
    round_.ended = clock_.now();
    co_return std::error_code{};
}

Flow Release::run() {
    const bool again = lease_.released;
    const auto now = clock_.now();
    const bool in_time = now < lease_.valid_until;
    const auto request = request_at(now);
    lease_.released = true;
    const RoundLimits limits{};
    co_await ask(request, limits, votes_);
    if (request.command.queue) record_contention(nodes(), resources_, votes_);
    // An earlier release may have deleted the key, so the refusal of a repeated one is a confirmation.
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

Flow Release::run_without_waiting() {
    const auto request = request_at(clock_.now());
    const RoundLimits limits{.awaits_answers = false};
    co_await ask(request, limits, votes_);
    lease_ = {};
    co_return std::error_code{};
}

Request Release::request_at(Clock::time_point now) noexcept {
    const auto hold_remaining = remaining_min_hold(lease_, now);
    const bool wakes = fair_ && hold_remaining == hold_remaining.zero();
    queue_ = {.reservation_ttl = reservation_ttl(nodes().node_timeout()), .repeated = lease_.released};
    return delete_request(resources_, lease_, wakes ? &queue_ : nullptr, hold_remaining);
}

Flow Description::run() {
    try {
        const auto votes = blank_votes();
        co_await ask(request_, limits_, *votes);
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory, or a Nodes that does not know this verb
    }
    co_return std::error_code{};
}

}  // namespace redlock::flow

namespace redlock::algorithm {

RoundResult ask_to_extend(Nodes& nodes, Clock& clock, const LeaseRequest& request, const Lease& lease) {
    flow::BlockingOperation operation{nodes};
    flow::Extension extension{operation, clock, request, lease};
    (void)flow::run_blocking(operation, extension.run());
    return extension.take_round();
}

Result release(Nodes& nodes, Clock& clock, Resources resources, Lease& lease, bool fair) {
    flow::BlockingOperation operation{nodes};
    flow::Release release{operation, clock, resources, lease, fair};
    const auto error = flow::run_blocking(operation, release.run());
    return release.take_result(error);
}

Result release_without_waiting(Nodes& nodes, Clock& clock, Resources resources, Lease& lease) {
    flow::BlockingOperation operation{nodes};
    flow::Release release{operation, clock, resources, lease, false};
    return Result{flow::run_blocking(operation, release.run_without_waiting())};
}

void describe_holder(Nodes& nodes, Resources resources, const Lease& lease, std::string_view description,
                     std::chrono::milliseconds ttl, Clock::time_point deadline) noexcept {
    if (description.empty()) return;
    try {
        flow::BlockingOperation operation{nodes};
        flow::Description text{operation, resources, lease, description, ttl, deadline};
        (void)flow::run_blocking(operation, text.run());
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory
    }
}

}  // namespace redlock::algorithm
