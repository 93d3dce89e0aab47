#include "term_sequence.hpp"

#include <redlock/error.hpp>

#include "../round/back_off.hpp"

namespace redlock::detail {

void TermSequence::begin(State state, std::stop_token stop) noexcept {
    if (state_ != State::idle) return;
    state_ = state;
    stop_ = std::move(stop);
    errors_ = 0;
    error_ = {};
    failure_ = nullptr;
}

void TermSequence::campaigned(Result result, std::chrono::nanoseconds remaining) noexcept {
    if (!result) {
        result_ = std::move(result);
        state_ = State::resigned;
        return;
    }
    if (remaining <= options_.margin)
        error_ = Errc::validity_exhausted;
    else if (stop_.stop_requested())
        error_ = Errc::cancelled;
    state_ = error_ ? State::resigning : State::leading;
}

void TermSequence::work_ended(const std::stop_token& lost) noexcept {
    if (lost.stop_requested() && !stop_.stop_requested()) error_ = Errc::lost;
    state_ = State::resigning;
}

void TermSequence::work_failed(std::exception_ptr failure) noexcept {
    if (state_ != State::leading && state_ != State::resigning) return;
    failure_ = std::move(failure);
    state_ = State::resigning;
}

void TermSequence::released(Result result) noexcept {
    if (error_) result.conclude(error_, result.attempts());
    error_ = {};
    result_ = std::move(result);
    state_ = State::resigned;
}

Result TermSequence::outcome() {
    state_ = State::idle;
    return take_outcome();
}

Result TermSequence::take_outcome() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return std::move(result_);
}

Clock::duration TermSequence::report() {
    state_ = State::pausing;
    try {
        const int doublings = report_outcome();
        const BackOff back_off{.shortest = options_.retry.delay, .longest = options_.longest_pause};
        return back_off.pause(doublings, entropy_);
    } catch (...) {
        state_ = State::idle;
        throw;
    }
}

int TermSequence::report_outcome() {
    try {
        const auto result = take_outcome();
        if (result) errors_ = 0;
        if (!result && options_.on_failure && !stop_.stop_requested()) options_.on_failure(result);
        return 0;
    } catch (...) {
        if (!options_.on_error) throw;
        const int doublings = ++errors_;
        options_.on_error(std::current_exception());
        return doublings;
    }
}

void TermSequence::pause_ended() noexcept {
    state_ = stop_.stop_requested() ? State::idle : State::campaigning;
}

}  // namespace redlock::detail
