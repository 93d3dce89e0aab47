// Durations on the command line: "0.5", "500ms", "30s", "2m", "1h". A number without a unit means seconds, as
// in flock.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace redlock::tool {

/// Parses a duration. Throws std::invalid_argument if it is malformed, negative or longer than 100 years.
std::chrono::nanoseconds parse_span(std::string_view text);

/// Returns a duration for people, with as many digits as are useful: "2.5 s", "37 ms", "0.21 ms".
std::string text_of(std::chrono::nanoseconds span);

/// Returns a number in this format of printf().
template <class Number>
std::string formatted(const char* format, Number number) {
    std::array<char, 64> text{};
    const auto length = std::snprintf(text.data(), text.size(), format, number);
    return {text.data(), static_cast<std::size_t>(length)};
}

/// Returns a duration in the form that parse_span() accepts: "30s", "1500ms".
std::string argument_of(std::chrono::milliseconds span);

}  // namespace redlock::tool
