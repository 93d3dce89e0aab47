// What a command does to the keys on a node. The table of verbs (verbs.hpp) has the effect of each verb, and
// effect_of() returns that of a command. (The writing of a description with a ttl of 0 deletes it.)
#pragma once

#include <cstdint>

namespace redlock::detail {

enum class KeyEffect : std::uint8_t {
    none,
    acquires,     ///< Sets the resource to the owner.
    extends,      ///< Raises the expiry of the resource.
    releases,     ///< Deletes the resource. Goes to each node of its request, whatever the others answer.
    enqueues,     ///< Adds the ticket of a waiter to the queue of the resource.
    describes,    ///< Writes the description of a holder. Nobody waits for the reply.
    undescribes,  ///< Deletes the description after the release.
};

/// Returns true if a command with this effect deletes what a lease has left on a node. The command does no
/// harm if it is executed late, or more than once.
constexpr bool cleans_up(KeyEffect effect) noexcept {
    return effect == KeyEffect::releases || effect == KeyEffect::undescribes;
}

/// Returns true if later commands of the same owner must follow it (pending_replies.hpp).
constexpr bool binds(KeyEffect effect) noexcept {
    return effect == KeyEffect::acquires || effect == KeyEffect::enqueues;
}

}  // namespace redlock::detail
