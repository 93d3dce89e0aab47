// redlock status: who holds a resource, node by node. It only reads: GET, PTTL, TYPE and INFO.
//
// Exit status: 0 a majority of the nodes answered, whatever they said; 69 no majority did.
#pragma once

#include "arguments.hpp"

namespace redlock::tool {

void add_status(CommandLine& line);

}  // namespace redlock::tool
