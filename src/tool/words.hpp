// Prints messages on stderr, one line each. Text from others is escaped (escaped.hpp).
#pragma once

#include <string_view>

namespace redlock::tool {

/// Prints "redlock: " and the line.
void say(std::string_view line);

/// Prints the same, but never blocks. If stderr accepts nothing now, for example because nobody reads from
/// the pipe, the line is dropped. SIGPIPE and SIGTTOU must be ignored.
void say_without_waiting(std::string_view line);

}  // namespace redlock::tool
