// The asking of `redlock doctor`: what one node says and does. It judges nothing.
#pragma once

#include "lock_profile.hpp"
#include "node_facts.hpp"

#include <redlock/endpoint.hpp>

#include "redis/admin_connection.hpp"

#include <string>
#include <vector>

namespace redlock::tool {

/// What to try.
struct CheckupPlan {
    LockProfile profile{};
    std::string resource{};  ///< of the probe; not in use by others
    bool fencing = false;    ///< whether the locks count their holders
    bool fair = false;       ///< whether they queue
    bool mark = false;       ///< place the marker of the quarantine
};

/// Asks the nodes beside one another, each command within a node's budget, and their clocks close together.
/// Leaves nothing behind but the marker. Where a node does not let go of the probe, it expires in 20 s.
/// Throws std::invalid_argument for endpoints that RedisNodes refuses.
std::vector<NodeFacts> check_up(const std::vector<Endpoint>& endpoints, const CheckupPlan& plan);

}  // namespace redlock::tool
