// What the command says on stderr while it must not be kept: a word too few rather than a word that blocks.
#pragma once

#include <string_view>

namespace redlock::tool {

/// "redlock: " and a line. Not said where stderr takes nothing now, as a pipe without a reader. SIGPIPE and
/// SIGTTOU are to be ignored.
void say_without_waiting(std::string_view line);

}  // namespace redlock::tool
