// redlock doctor: examines each node, and says what is wrong with it for locks and what to change.
//
// It writes a probe to the nodes and deletes it again. With --mark it also writes the marker of the
// quarantine. Exit status: 0 if all is fine; 1 if there are warnings, or a minority of the nodes does not
// answer; 2 if a node is unsafe, or if no majority has a vote and the end of a quarantine will not change
// that.
#pragma once

#include "arguments.hpp"

namespace redlock::tool {

void add_doctor(CommandLine& line);

}  // namespace redlock::tool
