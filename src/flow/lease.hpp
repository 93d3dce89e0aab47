// The release of a lease, as a flow.
#pragma once

#include <redlock/algorithm/algorithm.hpp>

#include "flow.hpp"

#include <system_error>
#include <utility>

namespace redlock::flow {

/// Whether a release waits for the replies of the nodes. A fair lock waits for them in any case, because they
/// say whether other clients wait for the lock.
enum class Replies : bool { not_awaited, awaited };

/// The release of a lease. The arguments must outlive it. If a flow is destroyed before its end, the release
/// can be repeated.
class Release final : public Steps {
public:
    Release(Operation& operation, Clock& clock, Resources resources, Lease& lease, bool fair, Replies replies)
        : Steps(operation),
          clock_(clock),
          resources_(resources),
          lease_(lease),
          fair_(fair),
          awaited_(fair || replies == Replies::awaited) {}

    /// See algorithm::release(). If the replies are not awaited, ends without an error, and the lease is
    /// empty afterwards.
    Flow run();
    /// Returns the result of run(), which has ended with this error.
    Result take_result(std::error_code error) noexcept {
        return awaited_ ? Result{error, std::move(votes_), 1, {}} : Result{error};
    }
    /// Returns the command that releases the lease at this instant, for a release without a flow. It refers
    /// to this object.
    Request request_at(Clock::time_point now) noexcept;

private:
    Clock& clock_;
    const Resources resources_;
    Lease& lease_;
    const bool fair_;
    const bool awaited_;
    QueueTerms queue_{};
    Tally votes_{};
};

}  // namespace redlock::flow
