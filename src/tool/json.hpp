// What the subcommands have found out, for programs: one JSON object, whose fields are in the manual.
// nlohmann_json is included by json.cpp alone.
#pragma once

#include "bench_report.hpp"
#include "diagnosis.hpp"
#include "lock_status.hpp"
#include "node_facts.hpp"

#include <redlock/lease.hpp>
#include <redlock/result.hpp>

#include <ostream>
#include <span>
#include <string>
#include <system_error>

namespace redlock::tool {

/// acquire, extend, release and break.
void print_json(std::ostream& out, const std::string& resource, const Lease& lease, const Result& result);

/// status.
void print_json(std::ostream& out, const std::string& resource, const LockStatus& status);

/// who: the same without the nodes.
void print_json_of_who(std::ostream& out, const std::string& resource, const LockStatus& status);

/// bench; `error` where it failed.
void print_json(std::ostream& out, std::span<const MeasuredRound> rounds, const std::error_code& error);

/// doctor.
void print_json(std::ostream& out, const Diagnosis& diagnosis, std::span<const NodeFacts> nodes);

}  // namespace redlock::tool
