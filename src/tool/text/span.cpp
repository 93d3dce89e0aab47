#include "span.hpp"

#include <cstdlib>
#include <stdexcept>

namespace redlock::tool {
namespace {

using std::chrono::nanoseconds;

constexpr double longest = 36'525.0 * 24.0 * 3600.0 * 1e9;  // 100 years

[[noreturn]] void throw_invalid_argument() {
    throw std::invalid_argument{"is no span: a number and ms, s, m, h or d, as in 90, 250ms or 1h30m"};
}

double nanoseconds_of(std::string_view unit) {
    if (unit == "s") return 1e9;
    if (unit == "ms") return 1e6;
    if (unit == "m") return 60e9;
    if (unit == "h") return 3600e9;
    if (unit == "d") return 24 * 3600e9;
    throw_invalid_argument();
}

/// Removes a number without an exponent from the front of `text` and returns it. Does not use
/// std::from_chars, because that needs one more shared library for this type. Loading it takes longer than
/// parsing all arguments.
double take_number(std::string_view& text) {
    const std::string number{text.substr(0, text.find_first_not_of("0123456789."))};
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != '\0') throw_invalid_argument();
    text.remove_prefix(number.size());
    return value;
}

/// Removes a number and its unit from the front of `text` and returns the value in nanoseconds. A number
/// without a unit means seconds if it is the `only` part.
double take_part(std::string_view& text, bool only) {
    const bool negative = text.starts_with('-');
    text.remove_prefix(negative ? 1 : 0);
    const auto number = take_number(text);
    const auto unit = text.substr(0, text.find_first_of("0123456789.-"));
    text.remove_prefix(unit.size());
    const auto scale = unit.empty() && only && text.empty() ? 1e9 : nanoseconds_of(unit);
    if (negative && number > 0) throw std::invalid_argument{"is negative"};
    return number * scale;
}

}  // namespace

nanoseconds parse_span(std::string_view text) {
    if (text.empty()) throw_invalid_argument();
    double count = take_part(text, true);
    while (!text.empty()) count += take_part(text, false);
    if (!(count <= longest)) throw std::invalid_argument{"is longer than 100 years"};
    return std::chrono::round<nanoseconds>(std::chrono::duration<double, std::nano>{count});
}

std::string argument_of(std::chrono::milliseconds span) {
    const bool whole = span.count() % 1000 == 0;
    return std::to_string(whole ? span.count() / 1000 : span.count()) + (whole ? "s" : "ms");
}

std::string text_of(nanoseconds span) {
    const auto ms = static_cast<double>(span.count()) / 1e6;
    if (ms >= 1000) return formatted("%.1f s", ms / 1000);
    return formatted(ms < 10 ? "%.2f ms" : "%.0f ms", ms);
}

}  // namespace redlock::tool
