// Spans of time on the command line: "0.5", "500ms", "30s", "2m", "1h"; a bare number is seconds, as in
// flock.
#pragma once

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

}  // namespace redlock::tool
