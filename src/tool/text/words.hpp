// Prints messages on stderr, one line each. Text from others is escaped (escaped.hpp).
#pragma once

#include <redlock/result.hpp>

#include <string_view>

namespace redlock::tool {

/// Prints "redlock: " and the line.
void say(std::string_view line);

/// Prints the same, but never blocks. If stderr accepts nothing now, for example because nobody reads from
/// the pipe, the line is dropped. SIGPIPE and SIGTTOU must be ignored.
void say_without_waiting(std::string_view line);

/// Prints one line for each node: its vote, the cause if it gave none, and the time it took. See json.hpp for
/// programs.
void say_votes(const Result& result);

}  // namespace redlock::tool
