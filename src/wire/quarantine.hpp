// The quarantine of a node (NodesOptions::quarantine): a node that has lost its data may have forgotten who
// holds what, so it has no vote until every lease that it may have forgotten is over.
//
// The node itself decides this, in src/wire/lua/quarantine.lua, by a *marker*: a key with the identity of its
// data, and the instant since which it has had them. docs/protocol.md has the reasons (Quarantine).
#pragma once

#include <chrono>
#include <string_view>

namespace redlock::detail {

/// The key of the marker. Its value is the identity of the data (the run id, a colon, and the replication
/// id), a colon, and the instant in microseconds since 1970 by the clock of the server.
inline constexpr std::string_view marker_key = "redlock:since";

/// Returns how long a counter of holders (docs/protocol.md, Fencing tokens) is kept: for longer than a node
/// can be without a vote, because it must not be forgotten while smaller counts can still be given. The day
/// is for clocks that are wrong by some hours.
constexpr std::chrono::milliseconds counters_expiry(std::chrono::milliseconds quarantine) noexcept {
    return std::chrono::hours{24} + 2 * quarantine;
}

}  // namespace redlock::detail
