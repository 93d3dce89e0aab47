// redlock acquire, extend, release, break: the verbs one by one, for scripts. The lease outlives the process;
// any process that knows its owner may extend and release it.
#pragma once

#include "arguments.hpp"

namespace redlock::tool {

void add_acquire(CommandLine& line);
void add_extend(CommandLine& line);
void add_release(CommandLine& line);
void add_break(CommandLine& line);

}  // namespace redlock::tool
