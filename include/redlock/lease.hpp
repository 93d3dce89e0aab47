// One acquisition: the owner that signs it, until when it may be counted on, and which nodes may have its
// key.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/entropy.hpp>
#include <redlock/nodes.hpp>

#include <cstdint>

namespace redlock {

struct Lease {
    Owner owner{};                    ///< empty: there is no lease
    Clock::time_point valid_until{};  ///< start + ttl − drift of the round that was won last (S15, S16)
    std::uint64_t fencing_token = 0;  ///< larger than that of every earlier holder; 0 without fencing
    NodeSet may_hold_key{};           ///< nodes that a byte of its SET may have reached (rule B1)
    bool shared = false;              ///< it is that of a reader, beside others
    Clock::time_point keep_until{};   ///< released before, the resource is kept from everybody until then
    bool released = false;            ///< given up; kept only so that the release can be repeated (rule B4)

    bool empty() const noexcept { return owner.empty(); }
    bool valid_at(Clock::time_point now) const noexcept { return !empty() && !released && now < valid_until; }
};

}  // namespace redlock
