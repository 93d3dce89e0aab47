// Keeps a lock for as long as another process lives: `redlock acquire --while-pid`.
#pragma once

#include "lock/lease_state.hpp"
#include "process/signals.hpp"
#include "watched_process.hpp"

#include <sys/types.h>

namespace redlock::tool {

/// Leaves a process behind, the keeper. It extends `lock` by the plan of a Watchdog until `process` has
/// ended, and then releases it. It never releases a lock that may be valid while `process` lives. If the lock
/// is lost, the keeper says so on stderr and exits with exit_status::lost.
///
/// Of the descriptors of this process the keeper keeps only stderr, and that only if it is a file or also the
/// stderr of `process`. The keeper leaves the current directory. Its signals are as `signals` found them.
/// Returns the process id of the keeper, or -1 and errno if no process can be made. No other thread may use
/// `lock` during the call, because its mutex is used in the child.
pid_t keep_in_background(WatchedProcess& process, const detail::LeaseState& lock, const Signals& signals);

}  // namespace redlock::tool
