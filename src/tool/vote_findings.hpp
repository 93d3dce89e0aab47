// Whether a node answers, and whether it does what a lock asks of it. Pure.
#pragma once

#include "finding.hpp"
#include "lock_profile.hpp"
#include "node_facts.hpp"

#include <string>

namespace redlock::tool {

/// Of a node that could not be asked.
Finding unreachable_finding(const NodeFacts& node);

/// Of one that answers slowly.
Findings speed_findings(const NodeFacts& node, const LockProfile& profile);

/// What failed of all that was tried, with the ACL rule to add where permission is missing.
Findings permission_findings(const NodeFacts& node);

/// How the node stands with its quarantine.
Findings quarantine_findings(const NodeFacts& node, const LockProfile& profile);

/// "+eval", "~orders:*": what an ACL has to allow so that `check` succeeds, as far as the server's words
/// tell.
std::string missing_permission(const PermissionCheck& check);

}  // namespace redlock::tool
