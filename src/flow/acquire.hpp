// One acquire() with all its attempts, as a flow.
#pragma once

#include <redlock/algorithm/acquire.hpp>

#include "../lock/lease_state.hpp"
#include "attempt.hpp"
#include "flow.hpp"
#include "place_in_queue.hpp"

#include <cstddef>
#include <optional>
#include <system_error>

namespace redlock::flow {

/// Acquires the resources of one request: makes attempts until one succeeds, no further one can succeed, or a
/// limit is reached. While another client holds the resource, a fair request waits in the queue
/// (waiting.hpp), unless it has several resources: it would block the others while it waits for one of them.
/// The arguments must outlive the object.
///
/// With Acquires::one, the resources of the request are the slots of a semaphore (semaphore.hpp), of which
/// one is acquired: a random one, or if it is held, one after another of the slots that may be free
/// (Verb::exist). Each try of a slot is an object of the class Attempt. All tries together count as one
/// attempt. A semaphore has no queue.
///
/// After the flow was destroyed or has thrown, for_each_unreleased() has the commands that are left to do.
class Acquire final : public Steps {
public:
    Acquire(Operation& operation, Clock& clock, Entropy& entropy, const algorithm::LeaseRequest& request,
            const Retry& retry, const algorithm::AcquireLimits& limits,
            detail::Acquires acquires = detail::Acquires::all);

    Flow run();

    /// Returns the acquired lease. Requires that run() has ended without an error.
    const Lease& lease() const noexcept { return attempt_->lease(); }
    /// With Acquires::one: returns the slot that was tried last; nothing before the first try. The slot is
    /// acquired if run() has ended without an error.
    std::optional<std::size_t> slot() const noexcept { return slot_; }
    /// Returns the outcome of the last attempt, with what the queue has reported. An attempt that the
    /// deadline has cut short counts only if it is the first.
    Result take_result() noexcept;
    /// Calls `send` with each command that is left to do: the release of the attempt, also if it has acquired
    /// the lease just before, and the one that leaves the queue. The commands are valid during the call, and
    /// need not be awaited. If `send` throws, the function can be called again. It must not be called if the
    /// flow has ended without an exception.
    template <class Send>
    void for_each_unreleased(Send send) {
        const auto release = attempt_ ? attempt_->unreleased() : std::nullopt;
        if (release) send(*release);
        const auto withdrawal = place_ ? place_->unreleased() : std::nullopt;
        if (withdrawal) send(*withdrawal);
    }

private:
    Flow make_attempts();
    Flow attempt_slots();
    Flow try_slot(std::size_t slot);
    Flow try_to_acquire(const algorithm::LeaseRequest& request);
    Flow wait_in_queue();
    Flow pause_at_random();
    void record(std::error_code error, int attempts, Clock::time_point start);

    Clock& clock_;
    Entropy& entropy_;
    const algorithm::LeaseRequest& request_;
    const Retry& retry_;
    const algorithm::AcquireLimits& limits_;
    const RoundLimits round_limits_;
    const detail::Acquires acquires_;
    std::optional<std::size_t> slot_{};        // tried last
    algorithm::LeaseRequest slot_request_;     // for this slot
    std::optional<Attempt> attempt_{};         // the present attempt, or the last one
    algorithm::RoundResult* round_ = nullptr;  // the votes of the present attempt
    std::optional<PlaceInQueue> place_{};
    Result last_{Errc::deadline};  // of the attempt that was recorded last
    Clock::time_point latest_{};   // when the present wait must end at the latest
    bool last_attempt_ = false;    // true if no further attempt is made after the next one
};

}  // namespace redlock::flow
