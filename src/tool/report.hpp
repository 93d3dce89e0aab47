// Prints what happened on each node, for people. See json.hpp for programs.
#pragma once

#include <redlock/result.hpp>

#include <ostream>

namespace redlock::tool {

/// Prints one line for each node: its vote, the cause if it gave none, and the time it took.
void print_votes(std::ostream& out, const Result& result);

/// Returns "granted", "refused" or "unknown".
const char* name_of(Vote vote) noexcept;

}  // namespace redlock::tool
