// What to make of the facts: findings node by node, what the nodes are together, and what to change first.
// Pure: facts in, findings out.
#pragma once

#include "finding.hpp"
#include "lock_profile.hpp"
#include "node_facts.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace redlock::tool {

struct NodeDiagnosis {
    Findings findings{};

    /// The worst of them; a hint where there is none worse: the node is fine.
    Severity verdict() const noexcept;
    bool has_vote() const noexcept;
    /// Has none now, and will have one when its quarantine is over.
    bool only_in_quarantine() const noexcept;
};

struct Diagnosis {
    std::vector<NodeDiagnosis> nodes{};  ///< as the facts
    Findings findings{};                 ///< of all of them together
    std::size_t votes = 0;               ///< independent nodes that can grant a lock
    std::size_t quorum = 0;
    Severity verdict = Severity::hint;  ///< never unreachable: see diagnose()

    /// How many more may fail and locks are acquired all the same; negative: none are.
    long spare() const noexcept { return static_cast<long>(votes) - static_cast<long>(quorum); }
};

/// Unsafe where one node is, or no majority has a vote now; a warning where a minority does not answer.
Diagnosis diagnose(std::span<const NodeFacts> nodes, const LockProfile& profile);

/// "ok", "warning", "unsafe", "unreachable".
const char* verdict_name(Severity severity) noexcept;

/// How the votes stand: "5 of 5 nodes have a vote, the quorum is 3: 2 may fail".
std::string summary_of(const Diagnosis& diagnosis);

/// What to change first, in one line; empty where all is fine.
std::string advice_of(const Diagnosis& diagnosis, std::span<const NodeFacts> nodes);

}  // namespace redlock::tool
