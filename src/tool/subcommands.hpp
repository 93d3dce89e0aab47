// The subcommands of redlock. The functions add them to the command line.
#pragma once

#include "arguments/command_line.hpp"

namespace redlock::tool {

/// redlock run: a program under a lock that is extended for as long as it runs.
void add_run(CommandLine& line);

/// redlock acquire, extend, release, break: the operations of a lock one by one, for scripts. The lease
/// outlives the process. Any process that knows the owner may extend and release the lease.
void add_lease_subcommands(CommandLine& line);

/// redlock status and redlock who: report who holds a resource, for each node or in one line. They only read.
///
/// Exit status: 0 if it is held; 1 if nobody holds it; 69 if too few nodes answered to know; 77 if the reason
/// is that nodes refused the login or a command.
void add_status_and_who(CommandLine& line);

/// redlock doctor: examines each node, and says what is wrong with it for locks and what to change.
///
/// It writes a probe to the nodes and deletes it again. With --mark it also writes the marker of the
/// quarantine. Exit status: 0 if all is fine; 1 if there are warnings, or a minority of the nodes does not
/// answer; 2 if a node is unsafe, or if no majority has a vote and the end of a quarantine will not change
/// that.
void add_doctor(CommandLine& line);

/// redlock bench: measures how fast locks are on the user's own nodes, with sequential rounds and with rounds
/// that ask all nodes at once.
///
/// Each thread uses a random resource of its own. Therefore it disturbs no lock in use, and leaves no lock
/// behind. Ctrl-C ends the measurement early, and the result so far is printed. Exit status: 0; 69 or 77 if
/// nothing could be acquired; 128 plus the number of the signal if it was interrupted.
void add_bench(CommandLine& line);

}  // namespace redlock::tool
