// The questions of `redlock doctor`: collects facts about the nodes and judges nothing.
#pragma once

#include "checkup_plan.hpp"
#include "node_facts.hpp"

#include <redlock/endpoint.hpp>

#include "redis/admin_connection.hpp"

#include <vector>

namespace redlock::tool {

/// Examines all nodes at the same time. Each command takes one node_timeout at most. The clocks of the nodes
/// are read one right after the other. Leaves nothing behind but the marker. If a node does not release the
/// probe, it expires after 20 s. Throws std::invalid_argument for endpoints that RedisNodes rejects.
std::vector<NodeFacts> check_up(const std::vector<Endpoint>& endpoints, const CheckupPlan& plan);

}  // namespace redlock::tool
