// Options of the command line that have a value of a kind of our own, such as a duration.
#pragma once

#include "text/span.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>

namespace redlock::tool {

/// Adds an option with a long name that passes its value to `read`, which throws std::invalid_argument if the
/// value is wrong. `type` is the placeholder for the value in --help.
CLI::Option* add_value(CLI::App& app, const std::string& names, std::function<void(const std::string&)> read,
                       const std::string& help, const std::string& type);

/// Returns the value of an environment variable, or `otherwise` if there is none or it is empty. No other
/// thread may change the environment during the call.
std::string variable(const char* name, const char* otherwise = "");

/// Parses a duration, see span.hpp. Throws std::invalid_argument if the type has no such value. Only
/// nanoseconds have all.
template <class Duration>
Duration parse_whole(const std::string& text) {
    const auto span = parse_span(text);
    const auto whole = std::chrono::duration_cast<Duration>(span);
    if (whole != span) throw std::invalid_argument{"is finer than a millisecond"};
    return whole;
}

/// Adds an option for a duration.
template <class Duration>
CLI::Option* add_span(CLI::App& app, const std::string& names, Duration& target, const std::string& help) {
    const auto read = [&target](const std::string& text) { target = parse_whole<Duration>(text); };
    return add_value(app, names, read, help, "SPAN");
}

}  // namespace redlock::tool
