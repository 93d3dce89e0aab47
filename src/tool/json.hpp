// What the subcommands have found out, for programs: one JSON object. nlohmann_json is included by json.cpp
// alone.
#pragma once

#include "diagnosis.hpp"
#include "lock_status.hpp"
#include "node_facts.hpp"

#include <redlock/lease.hpp>
#include <redlock/result.hpp>

#include <ostream>
#include <span>
#include <string>

namespace redlock::tool {

/// acquire, extend, release: {"resource", "owner", "validity_ms", "fencing_token", "error": null or text,
/// "attempts": n, "nodes": [{"name", "vote", "cause", "detail", "took_ms"}]}
void print_json(std::ostream& out, const std::string& resource, const Lease& lease, const Result& result);

/// status: {"resource", "state", "summary", "answered", "owner", "ours", "held_on", "expires_in_ms",
/// "holder", "nodes": [{"name", "state", "took_ms", "waiting", "readers", "holder", ...}]}
void print_json(std::ostream& out, const std::string& resource, const LockStatus& status);

/// doctor: {"verdict", "votes", "quorum", "may_fail", "advice", "findings": [...], "nodes": [{"name",
/// "verdict", ..., "findings": [{"severity", "subject", "what", "why", "remedy"}]}]}; null is what is
/// unknown.
void print_json(std::ostream& out, const Diagnosis& diagnosis, std::span<const NodeFacts> nodes);

}  // namespace redlock::tool
