// Judges the facts that a checkup has collected: findings for each node, findings for all nodes together, and
// what to change first. Pure, without I/O.
#pragma once

#include "checkup_plan.hpp"
#include "findings.hpp"
#include "node_facts.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace redlock::tool {

struct NodeDiagnosis {
    Findings findings{};

    /// Returns the severity of the worst finding. If it is `hint`, the node is fine.
    Severity verdict() const noexcept;
    bool has_vote() const noexcept;
    /// Returns true if the node has no vote now, but will have one when its quarantine is over.
    bool only_in_quarantine() const noexcept;
};

struct Diagnosis {
    std::vector<NodeDiagnosis> nodes{};  ///< in the order of the facts
    Findings findings{};                 ///< about all nodes together
    std::size_t votes = 0;               ///< independent nodes that can grant a lock
    std::size_t quorum = 0;
    Severity verdict = Severity::hint;  ///< never unreachable: see diagnose()

    /// Returns how many more nodes may fail while locks can still be acquired. If it is negative, no lock can
    /// be acquired.
    long spare() const noexcept { return static_cast<long>(votes) - static_cast<long>(quorum); }
};

/// Judges all nodes. The verdict is `unsafe` if a node is unsafe. It is also `unsafe` if no majority has a
/// vote, unless the end of a quarantine will change that. A node that does not answer only makes it a
/// warning.
Diagnosis diagnose(std::span<const NodeFacts> nodes, const CheckupPlan& plan);

/// Returns "ok", "warning", "unsafe" or "unreachable".
const char* verdict_name(Severity severity) noexcept;

/// Returns a summary of the votes: "5 of 5 nodes have a vote, the quorum is 3: 2 may fail".
std::string summary_of(const Diagnosis& diagnosis);

/// Returns what to change first, in one line, or an empty text if all is fine.
std::string advice_of(const Diagnosis& diagnosis, std::span<const NodeFacts> nodes);

}  // namespace redlock::tool
