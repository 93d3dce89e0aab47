// Judges a server by the facts that it reports. Pure, without I/O.
#pragma once

#include "finding.hpp"
#include "lock_profile.hpp"
#include "node_facts.hpp"

namespace redlock::tool {

/// Judges the version, and the role of the server in a replication or a cluster.
Findings kind_findings(const NodeFacts& node);

/// Judges whether two clients could hold the same lock after a failover of the server.
Findings failover_findings(const NodeFacts& node, const LockProfile& profile);

/// Judges whether the server can delete a key before it expires, or has no memory for another key.
Findings memory_findings(const NodeFacts& node);

/// Judges whether the server can lose keys in a crash, or may just have lost some.
Findings persistence_findings(const NodeFacts& node, const LockProfile& profile);

/// Reports the questions that the server does not answer.
Findings silence_findings(const NodeFacts& node, const LockProfile& profile);

}  // namespace redlock::tool
