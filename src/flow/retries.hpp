// Attempts to acquire with pauses in between, as a flow.
#pragma once

#include <redlock/algorithm/acquire.hpp>

#include "attempt.hpp"
#include "flow.hpp"

#include <optional>
#include <system_error>
#include <utility>

namespace redlock::flow {

/// Makes attempts until one succeeds, no further one can succeed, or a limit is reached. The derived class
/// defines an attempt. The arguments must outlive the object.
///
/// If the flow is destroyed before its end, or has thrown an exception, for_each_unreleased() has the release
/// that is left to do. An acquired lease whose flow has not ended is released, too.
class Retries : public Steps {
public:
    /// Returns the acquired lease. Requires that the flow has ended without an error.
    const Lease& lease() const noexcept { return attempt_->lease(); }
    /// Returns the outcome of the last attempt that was not cut short by the deadline.
    Result take_result() noexcept { return std::move(last()); }
    /// Calls `send` with each command that is left to do after the flow was destroyed or has thrown. The
    /// commands are valid during the call, and need not be awaited. If `send` throws, the function can be
    /// called again. It must not be called if the flow has ended without an exception.
    template <class Send>
    void for_each_unreleased(Send send) {
        const auto release = attempt_ ? attempt_->unreleased() : std::nullopt;
        if (release) send(*release);
    }

protected:
    /// `waits` is true if only failures in a row for other reasons than another holder count towards
    /// `limits.attempts`.
    Retries(Operation& operation, Clock& clock, Entropy& entropy, const Retry& retry,
            const algorithm::AcquireLimits& limits, bool waits);
    ~Retries() = default;

    Flow repeat();
    /// Returns the error of the last attempt that was not cut short by the deadline.
    std::error_code last_error() noexcept { return last().error(); }

    /// Returns the flow of an attempt. Writes the Attempt into `attempt_`.
    virtual Flow attempt(const RoundLimits& limits) = 0;
    /// Is called when an attempt has ended with this error.
    virtual void attempted(std::error_code) {}
    /// Returns the flow that waits between two attempts while another client holds the resource.
    virtual Flow wait_while_held() { return pause_at_random(); }
    /// Pauses for a random time (rule S20 in docs/requirements.md), but not longer than until `latest_`.
    Flow pause_at_random();

    Clock& clock_;
    Entropy& entropy_;
    const Retry& retry_;
    const algorithm::AcquireLimits& limits_;
    std::optional<Attempt> attempt_{};         ///< The present attempt, or the last one.
    algorithm::RoundResult* round_ = nullptr;  ///< The votes of the present attempt.
    Clock::time_point latest_{};               ///< When the present wait must end at the latest.
    bool last_attempt_ = false;                ///< True if no further attempt is made after the next one.

private:
    void record(std::error_code error, int attempts);
    /// Returns the result of the last attempt that was not cut short by the deadline, or `deadline`.
    Result& last() noexcept { return last_ ? *last_ : last_.emplace(Errc::deadline); }

    const RoundLimits round_limits_;
    const bool waits_;
    std::optional<Result> last_{};  // empty before the first attempt
};

}  // namespace redlock::flow
