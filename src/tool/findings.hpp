// The findings of `redlock doctor` about one node. A finding is a fact, why it matters, and what to change.
// The functions judge the facts that a checkup has collected. They are pure, without I/O.
#pragma once

#include "lock_profile.hpp"
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

/// What to change if a server is a member of a Redis Cluster.
inline constexpr auto* remedy_for_cluster = "cluster-enabled no, on independent servers";

/// A function that judges one node, and adds what it finds.
using Judge = void(const NodeFacts& node, const LockProfile& profile, Findings& findings);

// ---- What a server reports of itself (server_findings.cpp)

Judge judge_version;
Judge judge_role;         ///< of the server in a replication
Judge judge_mode;         ///< whether it is a Sentinel, or belongs to a cluster
Judge judge_failover;     ///< whether two clients could hold the same lock after a failover of the server
Judge judge_eviction;     ///< whether the server can delete a key before it expires
Judge judge_room;         ///< whether the server has no memory for another key
Judge judge_persistence;  ///< whether the server can lose keys in a crash, or may just have lost some
Judge judge_silence;      ///< which questions the server does not answer

// ---- Whether a node answers, and whether it does what a lock needs (vote_findings.cpp)

Judge judge_speed;
Judge judge_permissions;  ///< the operations that failed, with the ACL rule to add if a permission is missing
Judge judge_quarantine;   ///< whether the node is in quarantine

/// Returns the finding for a node that could not be reached.
Finding unreachable_finding(const NodeFacts& node);

/// Returns the ACL rule that would let the operation succeed, such as "+eval" or "~orders:*", as far as the
/// error text of the server tells.
std::string missing_permission(const PermissionCheck& check);

}  // namespace redlock::tool
