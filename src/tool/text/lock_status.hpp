// The state of a resource in words. Pure, without I/O.
#pragma once

#include <redlock/query.hpp>

#include <string>

namespace redlock::tool {

/// Returns an owner that nobody else has, also for the names of resources. Throws std::system_error if there
/// are no random numbers.
std::string random_owner();

/// Returns true if the text has the form of an owner of this library.
bool is_ours(const std::string& owner);

/// Returns the owner for a table. An owner of this library is returned unchanged. Another value is quoted,
/// escaped and cut off if it is long.
std::string shown(const std::string& owner);

/// Returns one line: "held by 1f... on 3 of 5 nodes, expires in 12.3 s".
std::string summary_of(const LockStatus& status);

/// Returns this line with the reason of each node that did not answer, unless a majority decides without
/// them.
std::string line_of_who(const LockStatus& status);

/// Return the enumerator as text: "held", "free", "split", "uncertain" or "no_quorum"; for a node "unknown",
/// "free", "held" or "no_lock"; for a vote "unknown", "granted" or "refused".
const char* name_of(LockStatus::Kind kind) noexcept;
const char* name_of(NodeStatus::State state) noexcept;
const char* name_of(Vote vote) noexcept;

}  // namespace redlock::tool
