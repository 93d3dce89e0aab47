// One acquire() of a semaphore with all its attempts, as a flow.
#pragma once

#include <redlock/algorithm/acquire.hpp>

#include "acquire.hpp"

#include <cstddef>

namespace redlock::flow {

/// Acquires one of the slots of a semaphore (semaphore.hpp): a random one, or if it is held, one of the slots
/// that a query reports as free. Each try of a slot is an Attempt. A semaphore has no queue.
class AcquireSlot final : public Acquire {
public:
    /// `request.resources` has the keys of all slots.
    AcquireSlot(Operation& operation, Clock& clock, Entropy& entropy, const algorithm::LeaseRequest& request,
                const Retry& retry, const algorithm::AcquireLimits& limits)
        : Acquire(operation, clock, entropy, request, retry, limits),
          slots_(request.resources),
          slot_request_(request) {}

    /// Returns the slot that was tried last. It is acquired if run() has ended without an error.
    std::size_t slot() const noexcept { return slot_; }
    bool tried() const noexcept { return tried_; }

private:
    Flow attempt(const RoundLimits& limits) override;
    Flow attempt_slots();
    Flow try_slot(std::size_t slot);

    const Resources slots_;
    algorithm::LeaseRequest slot_request_;         // for the slot that was tried last
    const RoundLimits* attempt_limits_ = nullptr;  // of the present attempt
    std::size_t slot_ = 0;
    bool tried_ = false;
};

}  // namespace redlock::flow
