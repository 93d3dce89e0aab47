// The results of the subcommands as one JSON object each. The manual describes the fields. Only json.cpp
// includes nlohmann_json.
#pragma once

#include "bench/bench_report.hpp"
#include "doctor/diagnosis.hpp"
#include "lock_status.hpp"

#include <redlock/algorithm/lease.hpp>
#include <redlock/result.hpp>

#include <ostream>
#include <span>
#include <string>
#include <system_error>

namespace redlock::tool {

/// For acquire, extend, release and break.
void print_json(std::ostream& out, const std::string& resource, const Lease& lease, const Result& result);

/// Returns the owner in a JSON object of acquire or extend. Returns an empty text if there is none.
std::string owner_in_json(const std::string& text);

/// For status, and for who, which leaves out the nodes.
void print_json(std::ostream& out, const std::string& resource, const LockStatus& status, bool with_nodes);

/// For bench. `error` is set if bench failed.
void print_json(std::ostream& out, std::span<const Measurement> rounds, const std::error_code& error);

/// For doctor.
void print_json(std::ostream& out, const Diagnosis& diagnosis);

}  // namespace redlock::tool
