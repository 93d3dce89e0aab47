// One attempt to acquire a lock, as a flow.
#pragma once

#include <redlock/algorithm.hpp>

#include "flow/flow.hpp"

#include <optional>

namespace redlock::flow {

/// One attempt. The arguments must outlive it.
///
/// If the flow is destroyed before its end, unreleased() is the release that is left to do. The release needs
/// no more memory, because this object has the owner and the nodes already before the SET is sent.
class Attempt final : public Steps {
public:
    /// `queue` has the ticket of a client that waits in the queue (nodes.hpp). It is null if the client does
    /// not wait.
    Attempt(Operation& operation, Clock& clock, Entropy& entropy, const algorithm::LeaseRequest& request,
            const RoundLimits& limits, const QueueTerms* queue);

    /// Makes the attempt. Ends without an error if the lease is acquired. Otherwise no reachable node keeps a
    /// key of the attempt.
    Flow run();

    /// Returns the acquired lease. Requires that run() has ended without an error.
    const Lease& lease() const noexcept { return candidate_; }
    /// Returns false if run() has ended before its round, because no random owner could be drawn. Requires
    /// that run() has ended: every end after the round sets `settled_`.
    bool made_round() const noexcept { return settled_; }
    /// Returns the votes on the SET. If a second round had to confirm the fencing token, returns the votes of
    /// that round (Attempt::confirm_fencing_token()).
    const Tally& votes() const noexcept { return round_.tally; }
    /// Returns the result with these votes. `error` is the error with which run() has ended.
    Result take_result(std::error_code error);
    /// Returns the release of an attempt whose flow was destroyed. The release of a fair attempt also wakes
    /// the next waiter, because this client gives up. Returns nothing if no key can be left. The request is
    /// valid as long as this object.
    std::optional<Request> unreleased() const;

private:
    Flow confirm_fencing_token();
    Request raise_request(const NodeSet& to) const;

    // Constant after construction.
    Clock& clock_;
    Entropy& entropy_;
    const algorithm::LeaseRequest& request_;
    const RoundLimits& limits_;
    const RoundLimits no_limits_{};
    const QueueTerms* const queue_;
    const QueueTerms wakes_next_;

    Lease candidate_{};             ///< The lease that the attempt tries to get.
    bool settled_ = false;          ///< True if the lease is acquired, or no key is left.
    algorithm::RoundResult round_;  ///< The votes on the SET, or on the counts that confirm the token.
};

}  // namespace redlock::flow
