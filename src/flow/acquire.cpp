#include "acquire.hpp"

#include "blocking_acquire.hpp"

#include <algorithm>
#include <exception>

namespace redlock::flow {

using namespace algorithm;

namespace {

/// Returns true if the client waits in a queue while another client holds the resource.
bool may_queue(const LeaseRequest& request, const AcquireLimits& limits) {
    return request.fair && request.resources.size() == 1 &&
           limits.queue_timeout > limits.queue_timeout.zero();
}

}  // namespace

Acquire::Acquire(Operation& operation, Clock& clock, Entropy& entropy, const LeaseRequest& request,
                 const Retry& retry, const AcquireLimits& limits)
    : Retries(operation, clock, entropy, retry, limits, limits.wait_while_held || may_queue(request, limits)),
      request_(request) {
    if (may_queue(request, limits))
        place_.emplace(operation, clock, entropy, request.resources, retry.delay,
                       deadline_after(clock.now(), limits.queue_timeout), limits.stop);
}

Flow Acquire::run() {
    return place_ ? run_with_place() : repeat();
}

Flow Acquire::run_with_place() {
    std::exception_ptr failure;
    try {
        if (nodes().contended().contains(request_.resources.front())) {
            // Other clients have waited for the resource a moment ago, so this client queues before its first
            // attempt. The attempt must follow before the deadline, because only an attempt can report that
            // the resource is held. latest_attempt() leaves the attempt twice the time that is passed here.
            const auto waiting =
                place_->wait(latest_attempt(clock_.now(), limits_.deadline, nodes().node_timeout() / 2));
            co_await waiting;
            // If only the limit of this wait has passed, and not queue_timeout, further attempts may follow.
            last_attempt_ = place_->wake() == PlaceInQueue::Wake::over && clock_.now() >= place_->until();
        }
        const auto attempts = repeat();
        co_await attempts;
    } catch (...) {  // no memory, or a Nodes of the user that throws
        failure = std::current_exception();
    }
    const auto leaving = place_->leave();
    co_await leaving;
    if (failure) std::rethrow_exception(failure);
    co_return last_error();
}

Flow Acquire::attempt(const RoundLimits& limits) {
    began_ = clock_.now();
    return attempt_
        .emplace(operation(), clock_, entropy_, request_, limits, place_ ? place_->terms() : nullptr, *round_)
        .run();
}

void Acquire::attempted(std::error_code error) {
    if (place_ && attempt_->made_round()) place_->attempted(error, attempt_->votes(), clock_.now() - began_);
}

Flow Acquire::wait_while_held() {
    return place_ ? wait_in_queue() : pause_at_random();
}

Flow Acquire::wait_in_queue() {
    {
        const auto waiting = place_->wait(latest_);
        co_await waiting;
    }
    // If the time for waiting is over, the next attempt is the last one.
    last_attempt_ = place_->wake() == PlaceInQueue::Wake::over;
    if (place_->wake() == PlaceInQueue::Wake::no_queue) {
        // No node keeps a queue. Pause as without LockOptions::fair, but not beyond queue_timeout.
        latest_ = std::min(latest_, place_->until());
        const auto pausing = pause_at_random();
        co_await pausing;
    }
    co_return std::error_code{};
}

Result Acquire::take_result() noexcept {
    auto result = Retries::take_result();
    if (!place_) return result;
    if (place_->last()) result.set_place(*place_->last());
    result.set_queue_refusals(place_->take_refusals());
    return result;
}

}  // namespace redlock::flow

namespace redlock::algorithm {

Result acquire(Nodes& nodes, Clock& clock, Entropy& entropy, const LeaseRequest& request, const Retry& retry,
               const AcquireLimits& limits, Lease& lease) {
    flow::BlockingOperation operation{nodes};
    flow::Acquire acquire{operation, clock, entropy, request, retry, limits};
    const auto error = flow::run_blocking_and_release(operation, acquire, clock);
    if (!error) lease = acquire.lease();
    return acquire.take_result();
}

}  // namespace redlock::algorithm
