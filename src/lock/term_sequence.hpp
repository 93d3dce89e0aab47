// Decides what a Leader and an AsyncLeader do next (leader.hpp), and reports what has failed. A *term* is one
// leadership, from the election to the end of the work.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/entropy.hpp>
#include <redlock/error.hpp>
#include <redlock/leader.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>
#include <redlock/result.hpp>

#include "../round/back_off.hpp"

#include <chrono>
#include <exception>
#include <stop_token>
#include <system_error>
#include <utility>

namespace redlock::detail {

/// Returns the options of the lock of a leader. Throws std::invalid_argument if they cannot work.
LockOptions lock_options(const LeaderOptions& options, Renewer* watchdog, const Nodes& nodes);

/// The class does no I/O, and reads no clock. Its owner, a Leader or an AsyncLeader, does what the state
/// says, and then calls a function that leaves the state:
///
///     state       | the owner            | transitions
///     ------------+----------------------+-----------------------------------------------------------------
///     idle        | does nothing         | begin() → pausing, without a pause
///                 |                      | begin_term() → campaigning
///     campaigning | acquires the lock    | campaigned(): elected → leading
///                 |                      | elected, but the work must not begin → resigning
///                 |                      | not elected → resigned
///     leading     | has the work done    | work_ended() or work_failed() → resigning
///     resigning   | releases the lock    | released() → resigned
///                 |                      | work_failed() → resigning, with the exception
///     resigned    | looks at the outcome | report() → pausing, or idle if it throws
///     pausing     | waits for the pause  | pause_ended(): a stop is requested → idle
///                 |                      | otherwise → campaigning
///
/// end() leads from each state to idle. The other functions must only be called in the states of the table.
/// There are three exceptions: in another state begin(), begin_term() and work_failed() do nothing, because
/// the work may have ended the sequence and then throw.
class TermSequence : NotCopied {
public:
    enum class State { idle, campaigning, leading, resigning, resigned, pausing };

    /// The arguments must outlive the object.
    TermSequence(const LeaderOptions& options, Entropy& entropy) : options_(options), entropy_(entropy) {}

    State state() const noexcept { return state_; }
    /// Returns the token of the present begin() or begin_term(), or of the last one.
    const std::stop_token& stop() const noexcept { return stop_; }

    /// Begins to run terms until a stop is requested on `stop`.
    void begin(std::stop_token stop) noexcept { begin(State::pausing, std::move(stop)); }

    /// Begins one term. The caller of this function ends it by outcome(), and not by report().
    void begin_term(std::stop_token stop) noexcept { begin(State::campaigning, std::move(stop)); }

    /// The acquisition of the lock has this result, and `remaining` is left of the validity.
    ///
    /// The work must not begin if a stop is requested, or if no more than the margin is left, because the
    /// watchdog would end the term at once. The term then fails with `cancelled` or `validity_exhausted`.
    void campaigned(Result result, std::chrono::nanoseconds remaining) noexcept {
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

    /// The work has ended without an exception. `lost` is Term::lost(). The term fails if a stop is requested
    /// on it. A stop that the caller has requested also stops Term::lost(), so it always counts as the cause.
    void work_ended(const std::stop_token& lost) noexcept {
        if (lost.stop_requested() && !stop_.stop_requested()) error_ = Errc::lost;
        state_ = State::resigning;
    }

    /// The work has failed with this exception. AsyncTerm can have ended the work before the exception comes.
    void work_failed(std::exception_ptr failure) noexcept {
        if (state_ != State::leading && state_ != State::resigning) return;
        failure_ = std::move(failure);
        state_ = State::resigning;
    }

    /// The release of the lock has this result. It is the result of the term, with the reason why the term
    /// has failed, if it has.
    void released(Result result) noexcept {
        if (error_) result.conclude(error_, result.attempts());
        error_ = {};
        result_ = std::move(result);
        state_ = State::resigned;
    }

    /// Returns the result of the term, or throws the exception of the work.
    Result outcome() {
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
        return std::move(result_);
    }

    /// Reports the outcome of the term to the functions of the user. They may call end(). Returns the pause
    /// before the next term:
    ///
    ///     outcome         | pause
    ///     ----------------+--------------------------------------------------------------------------------
    ///     success         | the usual pause
    ///     failure         | the usual pause, after a call of on_failure unless a stop is requested
    ///     exception       | a pause that has doubled with each exception since the last success, after a
    ///                     | call of on_error. Without on_error, the exception is thrown.
    ///
    /// An exception of on_failure counts as the outcome. An exception of on_error is thrown.
    Clock::duration report() {
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

    /// The pause is over, or a stop is requested.
    void pause_ended() noexcept { state_ = stop_.stop_requested() ? State::idle : State::campaigning; }

    void end() noexcept { state_ = State::idle; }

private:
    void begin(State state, std::stop_token stop) noexcept {
        if (state_ != State::idle) return;
        state_ = state;
        stop_ = std::move(stop);
        errors_ = 0;
        error_ = {};
        failure_ = nullptr;
    }

    /// Returns how often the pause doubles.
    int report_outcome() {
        try {
            const auto result = outcome();
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

    const LeaderOptions& options_;
    Entropy& entropy_;
    State state_ = State::idle;
    std::stop_token stop_{};
    int errors_ = 0;  // exceptions since the last success

    // Of the present term.
    std::error_code error_{};  // why it has failed
    std::exception_ptr failure_{};
    Result result_{error_};
};

}  // namespace redlock::detail
