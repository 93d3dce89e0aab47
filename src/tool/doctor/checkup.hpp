// The questions of `redlock doctor`: collects facts about the nodes and judges nothing.
#pragma once

#include "lock_profile.hpp"
#include "node_facts.hpp"

#include <redlock/endpoint.hpp>

#include "redis/admin_connection.hpp"

#include <string>
#include <vector>

namespace redlock::tool {

/// What the checkup has to try.
struct CheckupPlan {
    LockProfile profile{};
    std::string resource{};  ///< the resource of the probe, which nobody else uses
    bool fencing = false;    ///< the locks use fencing
    bool fair = false;       ///< the locks use a queue
    bool mark = false;       ///< write the marker of the quarantine
};

/// Examines all nodes at the same time. Each command takes one node_timeout at most. The clocks of the nodes
/// are read one right after the other. Leaves nothing behind but the marker. If a node does not release the
/// probe, it expires after 20 s. Throws std::invalid_argument for endpoints that RedisNodes rejects.
std::vector<NodeFacts> check_up(const std::vector<Endpoint>& endpoints, const CheckupPlan& plan);

}  // namespace redlock::tool
