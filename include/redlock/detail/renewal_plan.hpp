// When a lease under a watchdog is extended, and when its loss is reported.
//
//     |--------- extension, from a third of the ttl on ------------|-|
//     start   ttl/3                                   notify_at    ^ ^ valid_until − margin
//
// It is extended from a third of the ttl on (S61), a little later if that lets it be extended in one round
// with others, again and again while that fails. Right before the validity ends, or LockOptions::margin
// earlier, the loss is reported, whatever else is under way (rule C6). Where the drift and the margin take
// more than half of the ttl, everything goes by twice what is left in place of the ttl, so that an extension
// can still be won.
#pragma once

#include <redlock/algorithm.hpp>
#include <redlock/clock.hpp>

#include <algorithm>
#include <chrono>
#include <optional>

namespace redlock::detail {

struct RenewalPlan {
    Clock::time_point extend_from = Clock::never();  ///< may be extended, in one round with others
    Clock::time_point extend_by = Clock::never();    ///< is extended, if need be alone
    Clock::time_point notify_at = Clock::never();    ///< the loss is reported

    Clock::time_point next() const noexcept { return std::min(extend_by, notify_at); }
};

/// The plan for a lease, of the last attempt to extend it if that failed, and of the instant after which it
/// is not extended any more.
inline RenewalPlan plan_renewal(Clock::time_point valid_until, const algorithm::LeaseRequest& request,
                                std::optional<Clock::time_point> last_failure, Clock::time_point hold_until,
                                Clock::duration margin = {}) {
    using namespace std::chrono_literals;
    const auto validity = algorithm::valid_until({}, request) - Clock::time_point{};
    const auto ttl = std::min<Clock::duration>(request.ttl, 2 * (validity - margin));
    const auto start = valid_until - validity;
    // What a thread may need to wake up: told at the end, it would mostly be told a little later.
    const auto notify_at = valid_until - margin - std::min<Clock::duration>(ttl / 100, 5ms);
    const auto pause = std::clamp<Clock::duration>(ttl / 20, 1ms, 10s);
    const auto from = std::max(start + ttl / 3, last_failure ? *last_failure + pause : start);
    if (from >= std::min(hold_until, notify_at)) return {.notify_at = notify_at};
    const auto by = from + (last_failure ? pause / 2 : ttl / 24);
    return {.extend_from = from, .extend_by = std::min(by, hold_until), .notify_at = notify_at};
}

}  // namespace redlock::detail
