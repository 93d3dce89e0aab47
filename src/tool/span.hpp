// Spans of time on the command line: "0.5", "500ms", "30s", "2m", "1h"; a bare number is seconds, as in
// flock.
#pragma once

#include <CLI/CLI.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace redlock::tool {

/// Throws std::invalid_argument for what is no span, is negative, or exceeds 100 years.
std::chrono::nanoseconds parse_span(std::string_view text);

/// "2.5 s", "37 ms", "0.21 ms": as many digits as help.
std::string text_of(std::chrono::nanoseconds span);

/// As parse_span() takes it: "30s", "1500ms".
std::string argument_of(std::chrono::milliseconds span);

/// An option that takes a span; `target` keeps its value where the option is not given.
template <class Duration>
CLI::Option* add_span(CLI::App& app, const std::string& names, Duration& target, const std::string& help) {
    const auto read = [&target, names](const std::string& text) {
        try {
            const auto span = parse_span(text);
            target = std::chrono::duration_cast<Duration>(span);
            if (target != span) throw std::invalid_argument{"is finer than a millisecond"};
        } catch (const std::invalid_argument& error) {
            throw CLI::ValidationError(names, "\"" + text + "\" " + error.what());
        }
    };
    return app.add_option_function<std::string>(names, read, help)->type_name("SPAN");
}

}  // namespace redlock::tool
