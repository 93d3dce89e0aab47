// A diagnosis for people and for programs.
#pragma once

#include "diagnosis.hpp"
#include "node_facts.hpp"

#include <nlohmann/json.hpp>

#include <ostream>
#include <span>

namespace redlock::tool {

/// A table of the nodes; below it each finding once, with the nodes it is true of; at last what to do first.
void print(std::ostream& out, const Diagnosis& diagnosis, std::span<const NodeFacts> nodes);

/// {"verdict", "votes", "quorum", "may_fail", "advice", "findings": [...], "nodes": [{"name", "verdict", ...,
/// "findings": [{"severity", "subject", "what", "why", "remedy"}]}]}; null is what is unknown.
nlohmann::ordered_json json_of(const Diagnosis& diagnosis, std::span<const NodeFacts> nodes);

}  // namespace redlock::tool
