// Judges whether a node answers, and whether it does what a lock needs. Pure, without I/O.
#pragma once

#include "finding.hpp"
#include "lock_profile.hpp"
#include "node_facts.hpp"

#include <string>

namespace redlock::tool {

/// Returns the finding for a node that could not be reached.
Finding unreachable_finding(const NodeFacts& node);

/// Judges the speed of the node.
Findings speed_findings(const NodeFacts& node, const LockProfile& profile);

/// Reports the operations that failed, with the ACL rule to add if a permission is missing.
Findings permission_findings(const NodeFacts& node);

/// Reports whether the node is in quarantine.
Findings quarantine_findings(const NodeFacts& node, const LockProfile& profile);

/// Returns the ACL rule that would let the operation succeed, such as "+eval" or "~orders:*", as far as the
/// error text of the server tells.
std::string missing_permission(const PermissionCheck& check);

}  // namespace redlock::tool
