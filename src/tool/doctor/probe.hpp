// Tries whether a node permits what locks need, with a lock of its own.
#pragma once

#include "checkup.hpp"

#include "redis/admin_connection.hpp"

namespace redlock::tool {

/// Acquires, extends and releases a lock on this one node, with the rounds of the library. If the plan asks
/// for it, writes the marker of the quarantine. Also tries the commands that fencing, a quarantine and a
/// queue need.
void probe(AdminConnection& admin, const CheckupPlan& plan, NodeFacts& facts);

}  // namespace redlock::tool
