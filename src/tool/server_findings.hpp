// What is wrong with a server, by what it says of itself. Pure.
#pragma once

#include "finding.hpp"
#include "lock_profile.hpp"
#include "node_facts.hpp"

namespace redlock::tool {

/// Its version, its part in a replication or a cluster.
Findings kind_findings(const NodeFacts& node);

/// Whether a failover of it can let two hold a lock.
Findings failover_findings(const NodeFacts& node, const LockProfile& profile);

/// Whether it can drop a key before the key expires, or has no room for another.
Findings memory_findings(const NodeFacts& node);

/// Whether it can forget keys in a crash, or may just have done so.
Findings persistence_findings(const NodeFacts& node, const LockProfile& profile);

/// What it refuses to tell.
Findings silence_findings(const NodeFacts& node, const LockProfile& profile);

}  // namespace redlock::tool
