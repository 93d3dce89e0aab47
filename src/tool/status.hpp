// redlock status and redlock who: report who holds a resource, for each node or in one line. They only read.
//
// Exit status: 0 if it is held; 1 if nobody holds it; 69 if too few nodes answered to know; 77 if the reason
// is that nodes refused the login or a command.
#pragma once

#include "arguments.hpp"

namespace redlock::tool {

void add_status(CommandLine& line);
void add_who(CommandLine& line);

}  // namespace redlock::tool
