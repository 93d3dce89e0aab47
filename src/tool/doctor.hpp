// redlock doctor: looks at each node, says what is wrong with it for locks, and what to change.
//
// It writes to the nodes a probe, which it takes away again, and with --mark the marker of the quarantine.
// Exit status: 0 all is fine; 1 there are warnings, or a minority of the nodes does not answer; 2 a node is
// unsafe, or no majority has a vote.
#pragma once

#include "arguments.hpp"

namespace redlock::tool {

void add_doctor(CommandLine& line);

}  // namespace redlock::tool
