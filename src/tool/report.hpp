// What happened on each node, for people, on stderr. See json.hpp for programs.
#pragma once

#include <redlock/result.hpp>

#include <ostream>

namespace redlock::tool {

/// One line a node: its vote, the cause if it gave none, and the time it took.
void print_votes(std::ostream& out, const Result& result);

/// "granted", "refused", "unknown".
const char* name_of(Vote vote) noexcept;

}  // namespace redlock::tool
