// Decides when a lease is extended by a watchdog, and when its loss is reported. Its validity ends at
// valid_until, which is ttl − drift after the start of the last acquisition or extension (start).
//
//     start     start + ttl/3                             notify_at   valid_until − margin   valid_until
//     |---------|------------- extensions ----------------|-----------|----------------------|
//
// - The lease is extended from a third of the ttl on, or a little later, so that it can share a round with
//   other leases. A failed extension is tried again after a pause.
// - The loss is reported LockOptions::margin + 5 ms before the validity ends (notify_at), whatever else is
//   under way (rule C6 in docs/rules.md). If the ttl is below 500 ms, a hundredth of the ttl takes the place
//   of the 5 ms. The margin is the time that the holder wants for finishing its work.
// - If the drift and the margin take more than half of the ttl, twice the remaining part is used in place of
//   the ttl. Otherwise there would be too little time for an extension.
#pragma once

#include <redlock/algorithm/algorithm.hpp>
#include <redlock/clock.hpp>

#include <algorithm>
#include <chrono>
#include <optional>

namespace redlock::detail {

/// Three instants. Clock::never() means that there is nothing to do.
struct RenewalPlan {
    Clock::time_point extend_from = Clock::never();  ///< From now on it may share the round of another lease.
    Clock::time_point extend_by = Clock::never();    ///< From now on it gets a round of its own.
    Clock::time_point notify_at = Clock::never();    ///< Its loss is reported.

    /// Returns the first instant at which there is something to do.
    Clock::time_point next() const noexcept { return std::min(extend_by, notify_at); }
};

/// Returns the plan for a lease. `last_failure` is the end of the last extension if this extension has
/// failed. After `hold_until` the lease is not extended any more.
inline RenewalPlan plan_renewal(Clock::time_point valid_until, const algorithm::LeaseRequest& request,
                                std::optional<Clock::time_point> last_failure, Clock::time_point hold_until,
                                Clock::duration margin = {}) {
    using namespace std::chrono_literals;
    const auto validity = algorithm::valid_until({}, request) - Clock::time_point{};
    const auto ttl = std::min<Clock::duration>(request.ttl, 2 * (validity - margin));
    const auto start = valid_until - validity;
    // A thread needs some time to wake up. If the loss were reported at the end, it would mostly be a little
    // late.
    const auto notify_at = valid_until - margin - std::min<Clock::duration>(ttl / 100, 5ms);
    const auto pause = std::clamp<Clock::duration>(ttl / 20, 1ms, 10s);
    const auto from = std::max(start + ttl / 3, last_failure ? *last_failure + pause : start);
    if (from >= std::min(hold_until, notify_at)) return {.notify_at = notify_at};
    const auto by = from + (last_failure ? pause / 2 : ttl / 24);
    return {.extend_from = from, .extend_by = std::min(by, hold_until), .notify_at = notify_at};
}

}  // namespace redlock::detail
