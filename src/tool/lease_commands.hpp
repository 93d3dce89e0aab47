// redlock acquire, extend, release, break: the operations of a lock one by one, for scripts. The lease
// outlives the process. Any process that knows the owner may extend and release the lease.
#pragma once

#include "arguments.hpp"

namespace redlock::tool {

void add_acquire(CommandLine& line);
void add_extend(CommandLine& line);
void add_release(CommandLine& line);
void add_break(CommandLine& line);

}  // namespace redlock::tool
