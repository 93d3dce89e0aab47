// One thing that the doctor reports: what is, why it matters, and what to change.
#pragma once

#include "node_facts.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace redlock::tool {

/// In order.
enum class Severity : std::uint8_t {
    hint,         ///< nothing is wrong
    warning,      ///< the lock is weaker than it could be, or something could not be found out
    unsafe,       ///< two may hold the same lock, or the node cannot take part
    unreachable,  ///< the node could not be asked
};

struct Finding {
    Severity severity = Severity::hint;
    std::string subject{};  ///< one word for programs: "role", "eviction", "clock" ...
    std::string what{};     ///< what is
    std::string why{};      ///< why it matters
    std::string remedy{};   ///< what to change: the line of redis.conf, the ACL rule
    bool has_vote = true;   ///< whether the node can grant a lock all the same
    NodeError cause{};      ///< of what the node has not done, if it is such a finding
};

using Findings = std::vector<Finding>;

}  // namespace redlock::tool
