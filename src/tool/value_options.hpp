// Options of the command line that have a value of a kind of our own, such as a duration.
#pragma once

#include <CLI/CLI.hpp>

#include <chrono>
#include <functional>
#include <string>

namespace redlock::tool {

/// Adds an option that passes its value to `read`, which throws std::invalid_argument if the value is wrong.
/// `type` is the placeholder for the value in --help.
CLI::Option* add_value(CLI::App& app, const std::string& names, std::function<void(const std::string&)> read,
                       const std::string& help, const std::string& type);

/// Add an option for a duration, see span.hpp.
CLI::Option* add_span(CLI::App& app, const std::string& names, std::chrono::nanoseconds& target,
                      const std::string& help);
CLI::Option* add_span(CLI::App& app, const std::string& names, std::chrono::milliseconds& target,
                      const std::string& help);

/// Accepts `former`, the name of the option `name` in earlier versions, with a warning. --help does not show
/// it. If both are given, that is an error. CLI11 has no name for a hidden option in a message of its own.
void add_former_name(CLI::App& app, const std::string& former, const std::string& name,
                     std::chrono::milliseconds& target);

}  // namespace redlock::tool
