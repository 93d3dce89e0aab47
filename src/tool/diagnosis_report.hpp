// A diagnosis, for people. See json.hpp for programs.
#pragma once

#include "diagnosis.hpp"
#include "node_facts.hpp"

#include <ostream>
#include <span>

namespace redlock::tool {

/// A table of the nodes; below it each finding once, with the nodes it is true of; at last what to do first.
void print(std::ostream& out, const Diagnosis& diagnosis, std::span<const NodeFacts> nodes);

/// "hint", "warning", "unsafe".
const char* heading_of(Severity severity) noexcept;

}  // namespace redlock::tool
