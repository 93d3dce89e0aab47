// redlock bench: measures how fast locks are on the user's own nodes, with sequential rounds and with rounds
// that ask all nodes at once.
//
// Each thread uses a random resource of its own. Therefore it disturbs no lock in use, and leaves no lock
// behind. Ctrl-C ends the measurement early, and the result so far is printed. Exit status: 0; 69 or 77 if
// nothing could be acquired; 128 plus the number of the signal if it was interrupted.
#pragma once

#include "arguments.hpp"

namespace redlock::tool {

void add_bench(CommandLine& line);

}  // namespace redlock::tool
