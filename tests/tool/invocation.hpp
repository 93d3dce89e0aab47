// The command as a user has it: arguments in, exit status and output out.
#pragma once

#include "default_signals.hpp"

#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace redlock::test {

/// A `redlock` that runs, until it is waited for. Both its outputs are one.
class Invocation {
public:
    /// `nodes` separated by commas. The budget is long, so that a busy machine makes no node late.
    Invocation(const std::string& nodes, std::vector<std::string> arguments,
               const std::string& node_timeout = "2s") {
        arguments.insert(arguments.begin(), REDLOCK_TOOL);
        arguments.insert(arguments.end(), {"--node-timeout", node_timeout});
        process_.emplace(support::Program{
            .words = arguments, .environment = {"REDLOCK_NODES=" + nodes}, .output = directory_ / "output"});
    }

    int status() { return process_->wait(); }
    support::ChildProcess& process() { return *process_; }

    /// What it has said so far.
    std::string output() const {
        std::ifstream file{directory_ / "output"};
        return {std::istreambuf_iterator<char>{file}, {}};
    }

    /// The whole of it; throws where it is not one object.
    nlohmann::json json() {
        (void)status();
        return nlohmann::json::parse(output());
    }

    friend void PrintTo(const Invocation& it, std::ostream* out) { *out << it.output(); }

private:
    support::TemporaryDirectory directory_{};
    std::optional<support::ChildProcess> process_{};
};

/// The findings of the node in a doctor's JSON, by their subjects.
inline std::vector<std::string> subjects(const nlohmann::json& findings) {
    std::vector<std::string> result;
    for (const auto& finding : findings) result.push_back(finding.at("subject"));
    return result;
}

}  // namespace redlock::test
