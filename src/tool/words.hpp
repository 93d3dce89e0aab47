// What the command says on stderr, line by line. Words that others have supplied are escaped (escaped.hpp).
#pragma once

#include <string_view>

namespace redlock::tool {

/// Says "redlock: " and the line.
void say(std::string_view line);

/// Says the same while nothing may keep the command waiting: the line is not said if stderr takes nothing
/// now, like a pipe without a reader. SIGPIPE and SIGTTOU must be ignored.
void say_without_waiting(std::string_view line);

}  // namespace redlock::tool
