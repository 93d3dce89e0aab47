// One attempt to acquire a lock, as a flow.
#pragma once

#include <redlock/algorithm/algorithm.hpp>

#include "flow.hpp"

#include <optional>

namespace redlock::flow {

/// One attempt. The arguments must outlive it.
class Attempt final : public Steps {
public:
    /// `queue` has the ticket of a client that has waited in the queue, and is null for any other client.
    /// `round` must be blank, and must live as long as the flow and until take_result().
    Attempt(Operation& operation, Clock& clock, Entropy& entropy, const algorithm::LeaseRequest& request,
            const RoundLimits& limits, const QueueTerms* queue, algorithm::RoundResult& round);

    /// Makes the attempt. If it ends with an error, its keys were deleted on every node that answers.
    Flow run();

    /// Returns the acquired lease. Requires that run() has ended without an error.
    const Lease& lease() const noexcept { return candidate_; }
    /// Returns true if run() has ended and has made its round. Without random numbers it makes none.
    bool made_round() const noexcept { return !candidate_.owner.empty(); }
    /// Returns the votes on the SET, or of the round of confirm_fencing_token() that has decided the outcome.
    const Tally& votes() const noexcept { return round_.tally; }
    /// Returns the result of run(), which has ended with this error.
    Result take_result(std::error_code error);
    /// Returns the release that is left to do if the flow was destroyed or has thrown, or if the receiver of
    /// the lease has not taken it. If no key can be left, returns nothing. If the attempt was fair, the
    /// release also wakes the next waiter, but only passes on (QueueTerms) if such a release may have been
    /// sent before. The request is valid as long as this object.
    std::optional<Request> unreleased() noexcept;

private:
    Flow confirm_fencing_token();

    // Constant after construction.
    Clock& clock_;
    Entropy& entropy_;
    const algorithm::LeaseRequest& request_;
    const RoundLimits& limits_;
    const RoundLimits no_limits_{};
    const QueueTerms* const queue_;

    QueueTerms waking_;              ///< The terms of a release that wakes the next waiter.
    Lease candidate_{};              ///< The lease that the attempt tries to get.
    bool may_have_woken_ = false;    ///< True if a release that wakes a waiter may have been sent.
    algorithm::RoundResult& round_;  ///< The votes on the SET, or on the counts that confirm the token.
};

}  // namespace redlock::flow
