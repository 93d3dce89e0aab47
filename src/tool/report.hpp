// What happened on each node: for people, on stderr, and for programs, as JSON.
#pragma once

#include <redlock/result.hpp>

#include <nlohmann/json.hpp>

#include <ostream>

namespace redlock::tool {

/// Text that is not UTF-8 is shown with replacements rather than not at all.
void print_json(std::ostream& out, const nlohmann::ordered_json& json);

/// One line a node: its vote, the cause if it gave none, and the time it took.
void print_votes(std::ostream& out, const Result& result);

/// The same. {"error": null or text, "attempts": n, "nodes": [{"name", "vote", "cause", "detail",
/// "took_ms"}]}
nlohmann::ordered_json json_of(const Result& result);

}  // namespace redlock::tool
