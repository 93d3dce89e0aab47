// What stands under a resource, in words. Pure.
#pragma once

#include <redlock/query.hpp>

#include <string>

namespace redlock::tool {

/// Whether it is what this library signs with.
bool is_ours(const std::string& owner);

/// For a table: an owner of ours as it is, another value in quotes, printable and not too long.
std::string shown(const std::string& owner);

/// One line: "held by 1f... on 3 of 5 nodes, expires in 12.3 s".
std::string summary_of(const LockStatus& status);

/// "held", "free", "split", "uncertain", "no_quorum"; "unknown", "free", "held", "no_lock".
const char* name_of(LockStatus::Kind kind) noexcept;
const char* name_of(NodeStatus::State state) noexcept;

}  // namespace redlock::tool
