// The subcommands that look at nodes one by one.
#pragma once

#include "tool_world.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace redlock::test {

class Invocation : public Tool {
public:
    /// `nodes` separated by commas. The node_timeout is long, so that a busy machine makes no node late.
    Invocation(const std::string& nodes, std::vector<std::string> arguments,
               const std::string& node_timeout = "2s")
        : Tool(joined(std::move(arguments), {"--node-timeout", node_timeout}), {"REDLOCK_NODES=" + nodes}) {}

    int status() { return wait().status; }
    std::string output() const { return out() + err(); }
    /// What it printed; throws where that is not one object.
    nlohmann::json json() { return nlohmann::json::parse(wait().out); }
};

/// The findings of the node in a doctor's JSON, by their subjects.
inline std::vector<std::string> subjects(const nlohmann::json& findings) {
    std::vector<std::string> result;
    for (const auto& finding : findings) result.push_back(finding.at("subject"));
    return result;
}

}  // namespace redlock::test
