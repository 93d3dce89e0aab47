// redlock status and who: who holds a resource, node by node or in a line. They only read.
//
// Exit status: 0 it is held, 1 nobody holds it, 69 too few nodes answered to know.
#pragma once

#include "arguments.hpp"

namespace redlock::tool {

void add_status(CommandLine& line);
void add_who(CommandLine& line);

}  // namespace redlock::tool
