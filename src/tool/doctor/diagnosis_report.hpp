// Prints a diagnosis for people. See json.hpp for programs.
#pragma once

#include "diagnosis.hpp"
#include "node_facts.hpp"

#include <ostream>
#include <span>

namespace redlock::tool {

/// Prints a table of the nodes, then each finding once with the nodes to which it applies, and last what to
/// do first.
void print(std::ostream& out, const Diagnosis& diagnosis, std::span<const NodeFacts> nodes);

/// Returns "hint", or the name of the verdict.
const char* heading_of(Severity severity) noexcept;

}  // namespace redlock::tool
