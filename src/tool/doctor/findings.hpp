// The findings of `redlock doctor` about one node. A finding is a fact, why it matters, and what to change.
// The functions judge the facts that a checkup has collected. They are pure, without I/O.
#pragma once

#include "checkup_plan.hpp"
#include "node_facts.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace redlock::tool {

/// In ascending order.
enum class Severity : std::uint8_t {
    hint,         ///< nothing is wrong
    warning,      ///< the lock is weaker than it could be, or a fact is unknown
    unsafe,       ///< two clients may hold the same lock, or the node cannot take part
    unreachable,  ///< the node could not be reached
};

struct Finding {
    Severity severity = Severity::hint;
    std::string subject{};  ///< one word for programs: "role", "eviction", "clock" ...
    std::string what{};     ///< the fact
    std::string why{};      ///< why it matters
    std::string remedy{};   ///< what to change, for example a line of redis.conf or an ACL rule
    bool has_vote = true;   ///< the node can grant a lock nevertheless
    NodeError cause{};      ///< why an operation failed, if that is the finding
};

using Findings = std::vector<Finding>;

/// Judges one node by itself, by all rules in turn. If it could not be reached, that is the only finding.
Findings findings_of(const NodeFacts& node, const CheckupPlan& plan);

/// Returns the ACL rule that would let the operation succeed, such as "+eval" or "~orders:*", as far as the
/// error text of the server tells.
std::string missing_permission(const PermissionCheck& check);

}  // namespace redlock::tool
