// Whether a node answers, and whether it does what a lock asks of it. Pure.
#pragma once

#include "finding.hpp"
#include "node_facts.hpp"
#include "purpose.hpp"

#include <string>

namespace redlock::tool {

/// Of a node that could not be asked.
Finding unreachable_finding(const NodeFacts& node);

/// Of one that answers slowly.
Findings speed_findings(const NodeFacts& node, const Purpose& purpose);

/// What failed of all that was tried, with the ACL rule to add where permission is missing.
Findings trial_findings(const NodeFacts& node);

/// How the node stands with its quarantine.
Findings quarantine_findings(const NodeFacts& node, const Purpose& purpose);

/// "+eval", "~orders:*": what an ACL has to allow so that `trial` succeeds, as far as the server's words
/// tell.
std::string missing_permission(const Trial& trial);

}  // namespace redlock::tool
