// The state of a resource in words. Pure, without I/O.
#pragma once

#include <redlock/query.hpp>

#include <string>

namespace redlock::tool {

/// Returns true if the text has the form of an owner of this library.
bool is_ours(const std::string& owner);

/// Returns the owner for a table. An owner of this library is returned unchanged. Another value is quoted,
/// escaped and cut off if it is long.
std::string shown(const std::string& owner);

/// Returns one line: "held by 1f... on 3 of 5 nodes, expires in 12.3 s".
std::string summary_of(const LockStatus& status);

/// Returns "held", "free", "split", "uncertain" or "no_quorum"; for a node "unknown", "free", "held" or
/// "no_lock".
const char* name_of(LockStatus::Kind kind) noexcept;
const char* name_of(NodeStatus::State state) noexcept;

}  // namespace redlock::tool
