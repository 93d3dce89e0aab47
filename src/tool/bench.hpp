// redlock bench: how fast locks are on the user's own nodes, in both kinds of round.
//
// Every thread has a random resource of its own, so it meets no lock in use and leaves none behind. Ctrl-C
// ends it early, and what was measured is printed. Exit status: 0; 69 if nothing could be acquired.
#pragma once

#include "arguments.hpp"

namespace redlock::tool {

void add_bench(CommandLine& line);

}  // namespace redlock::tool
