#include "acquire.hpp"

#include <algorithm>
#include <utility>

namespace redlock::flow {

using namespace algorithm;

Acquire::Acquire(Operation& operation, Clock& clock, Entropy& entropy, const LeaseRequest& request,
                 const Retry& retry, const AcquireLimits& limits, detail::Acquires acquires)
    : Steps(operation),
      clock_(clock),
      entropy_(entropy),
      request_(request),
      retry_(retry),
      limits_(limits),
      round_limits_{.deadline = limits.deadline, .stop = limits.stop},
      acquires_(acquires),
      slot_request_(request) {
    if (request.fair && request.resources.size() == 1 && limits.queue_timeout > limits.queue_timeout.zero())
        place_.emplace(operation, clock, entropy, request.resources, retry.delay,
                       deadline_after(clock.now(), limits.queue_timeout), limits.stop);
}

Flow Acquire::run() {
    if (place_ && nodes().contended().contains(request_.resources.front())) {
        // The attempt must follow before the deadline, because only an attempt can report that the resource
        // is held. latest_attempt() leaves time for it, as if an earlier one had taken half a node_timeout.
        const auto waiting =
            place_->wait(latest_attempt(clock_.now(), limits_.deadline, nodes().node_timeout() / 2));
        co_await waiting;
        // If latest_attempt() has ended the wait, and not queue_timeout, further attempts may follow.
        last_attempt_ = place_->wake() == PlaceInQueue::Wake::over && clock_.now() >= place_->until();
    }
    {
        const auto attempts = make_attempts();
        co_await attempts;
    }
    if (place_) place_->leave();
    co_return last_.error();
}

Flow Acquire::make_attempts() {
    int counted = 0;  // the attempts that count towards limits_.attempts
    for (int attempts = 1;; ++attempts) {
        const auto start = clock_.now();
        if (limits_.stop.stop_requested()) co_return last_.conclude(Errc::cancelled, attempts - 1).error();
        if (start >= limits_.deadline) co_return last_.error();

        std::error_code error;
        {
            const auto round = make_in_frames([this] { return RoundResult{.tally = nodes().blank_tally()}; });
            round_ = round.get();
            {
                const auto attempting =
                    acquires_ == detail::Acquires::one ? attempt_slots() : try_to_acquire(request_);
                error = co_await attempting;
            }
            record(error, attempts, start);
        }

        const bool held = last_.error() == Errc::held_by_other;
        counted = held && (place_ || limits_.wait_while_held) ? 0 : counted + 1;
        // After an attempt that the deadline has cut short, time may be left.
        const bool again = error == Errc::deadline || worth_retrying(last_);
        if (!error || counted >= limits_.attempts || last_attempt_ || !again) co_return last_.error();
        const auto now = clock_.now();
        if (now >= limits_.deadline) co_return last_.error();
        latest_ = latest_attempt(now, limits_.deadline, now - start);
        const auto waiting = held && place_ ? wait_in_queue() : pause_at_random();
        co_await waiting;
    }
}

/// Returns the flow of an Attempt, which writes its votes into `round_`.
Flow Acquire::try_to_acquire(const LeaseRequest& request) {
    const auto* const terms = place_ ? place_->terms() : nullptr;
    return attempt_.emplace(operation(), clock_, entropy_, request, round_limits_, terms, *round_).run();
}

/// Records the result of an attempt. If the deadline has cut the attempt short, it says nothing about the
/// resource, so the result of the earlier attempt stays.
void Acquire::record(std::error_code error, int attempts, Clock::time_point start) {
    if (place_ && attempt_->made_round()) place_->attempted(error, attempt_->votes(), clock_.now() - start);
    if (error == Errc::deadline && attempts > 1) return;
    last_ = attempt_ ? attempt_->take_result(error) : Result{error};
    // An attempt without a round has no nodes, and does not count.
    if (!last_.nodes().empty()) last_.conclude(error, attempts);
}

Flow Acquire::wait_in_queue() {
    {
        const auto waiting = place_->wait(latest_);
        co_await waiting;
    }
    // The next attempt is the last one, whether queue_timeout or `latest_` has ended the wait.
    last_attempt_ = place_->wake() == PlaceInQueue::Wake::over;
    if (place_->wake() == PlaceInQueue::Wake::no_queue) {
        // No node keeps a queue. Pause as without LockOptions::fair, but not beyond queue_timeout.
        latest_ = std::min(latest_, place_->until());
        const auto pausing = pause_at_random();
        co_await pausing;
    }
    co_return std::error_code{};
}

/// Pauses for a random time (rule S20 in docs/requirements.md), but not longer than until `latest_`. If
/// `latest_` has cut the pause short, the next attempt is the last one.
Flow Acquire::pause_at_random() {
    const auto wanted = clock_.now() + random_pause(retry_.delay, entropy_);
    last_attempt_ = wanted > latest_;
    co_await pause(clock_, std::min(latest_, wanted), limits_.stop);
    co_return std::error_code{};
}

Result Acquire::take_result() noexcept {
    auto result = std::move(last_);
    if (!place_) return result;
    if (place_->last()) result.set_place(*place_->last());
    result.set_queue_refusals(place_->take_refusals());
    return result;
}

}  // namespace redlock::flow
