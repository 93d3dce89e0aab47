// What Leader and AsyncLeader share (leader.hpp), besides the TermSequence.
#pragma once

#include <redlock/leader.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>

namespace redlock::detail {

/// Returns the options of the lock of a leader. Throws std::invalid_argument if they cannot work.
LockOptions lock_options(const LeaderOptions& options, Renewer* watchdog, const Nodes& nodes);

}  // namespace redlock::detail
