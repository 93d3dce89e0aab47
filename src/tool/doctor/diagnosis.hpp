// The diagnosis of `redlock doctor`: judges the facts that a checkup has collected. There are findings about
// each node, and about all nodes together. A finding is a fact, why it matters, and what to change. Pure,
// without I/O.
#pragma once

#include "checkup.hpp"
#include "process/exit_status.hpp"

#include <redlock/nodes.hpp>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace redlock::tool {

/// In ascending order. The verdict about all nodes is the exit status.
enum class Severity : std::uint8_t {
    hint = 0,                         ///< nothing is wrong
    warning = exit_status::warnings,  ///< the lock is weaker than it could be, or a fact is unknown
    unsafe = exit_status::unsafe,     ///< two clients may hold the same lock, or the node cannot take part
    unreachable,                      ///< the node could not be reached; only of a node
};

struct Finding {
    Severity severity = Severity::hint;
    std::string subject{};  ///< one word for programs: "role", "eviction", "clock" ...
    std::string what{};     ///< the fact
    std::string why{};      ///< why it matters
    std::string remedy{};   ///< what to change, for example a line of redis.conf or an ACL rule
    bool has_vote = true;   ///< the node can fully take part in locks nevertheless
    NodeError cause{};      ///< why an operation failed, if that is the finding
};

using Findings = std::vector<Finding>;

/// Judges one node by itself, by one rule after the other. If it could not be reached, that is the only
/// finding.
Findings findings_of(const NodeFacts& node, const CheckupPlan& plan);

/// Returns the ACL rule that would let the operation succeed, such as "+eval" or "~orders:*", as far as the
/// error text of the server tells.
std::string missing_permission(const PermissionCheck& check);

struct NodeDiagnosis {
    NodeFacts facts{};
    Findings findings{};  ///< the worst first

    /// Returns the severity of the worst finding. If it is `hint`, the node is fine.
    Severity verdict() const noexcept;
    bool has_vote() const noexcept;
    /// Returns true if the node has no vote now, but will have one when its quarantine is over.
    bool only_in_quarantine() const noexcept;
};

struct Diagnosis {
    std::vector<NodeDiagnosis> nodes{};
    Findings findings{};  ///< about all nodes together

    /// Returns the number of independent nodes that can fully take part in locks.
    std::size_t votes() const noexcept;
    std::size_t quorum() const noexcept { return redlock::quorum(nodes.size()); }
    /// Returns how many more nodes may fail while locks work. If it is negative, a majority has no vote.
    long spare() const noexcept { return static_cast<long>(votes()) - static_cast<long>(quorum()); }
    /// Returns the worst severity of all findings. A node that cannot be reached counts as a warning.
    Severity verdict() const noexcept;
};

/// Judges all nodes. The verdict is `unsafe` if a node is unsafe. It is also `unsafe` if no majority has a
/// vote, unless the end of a quarantine will change that. A node that does not answer only makes it a
/// warning.
Diagnosis diagnose(std::span<const NodeFacts> nodes, const CheckupPlan& plan);

/// Returns `lowest`, "warning", "unsafe" or "unreachable". The verdict about a node that is fine is "ok".
const char* name_of(Severity severity, const char* lowest) noexcept;

/// Returns a summary of the votes: "5 of 5 nodes have a vote, the quorum is 3: 2 may fail".
std::string summary_of(const Diagnosis& diagnosis);

/// Returns what to change first, in one line, or an empty text if all is fine.
std::string advice_of(const Diagnosis& diagnosis);

/// Prints the diagnosis for people: a table of the nodes, then each finding once with the nodes to which it
/// applies, and last what to do first. See json.hpp for programs.
void print(std::ostream& out, const Diagnosis& diagnosis);

}  // namespace redlock::tool
