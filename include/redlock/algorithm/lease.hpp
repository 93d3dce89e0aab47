// One acquisition of a lock: its owner, its validity, and the nodes that may hold its key.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/nodes.hpp>

#include <cstdint>

namespace redlock {

/// The data of one acquisition. Empty if its owner is empty.
struct Lease {
    Owner owner{};                       ///< The value of the keys; empty if there is no lease.
    Clock::time_point valid_until{};     ///< The latest start + ttl − drift; earlier after a loss.
    std::uint64_t fencing_token = 0;     ///< Larger than every earlier holder's; 0 without fencing.
    NodeSet may_hold_key{};              ///< The nodes that may have executed its SET (Tally::sent()).
    bool shared = false;                 ///< The lease of a reader.
    Clock::time_point min_hold_until{};  ///< The end of the minimum hold time (LockOptions::min_hold).
    bool released = false;               ///< True from the beginning of a release on.

    bool empty() const noexcept { return owner.empty(); }
    /// Returns true if the lease is not released and its validity is not over at `now`.
    bool valid_at(Clock::time_point now) const noexcept { return !empty() && !released && now < valid_until; }
};

}  // namespace redlock
