#include "span.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace redlock::tool {
namespace {

using std::chrono::nanoseconds;

double nanoseconds_of(std::string_view unit) {
    if (unit.empty() || unit == "s") return 1e9;
    if (unit == "ms") return 1e6;
    if (unit == "m") return 60e9;
    if (unit == "h") return 3600e9;
    throw std::invalid_argument{"is no span: a number, then ms, s, m or h; seconds where there is no unit"};
}

}  // namespace

nanoseconds parse_span(std::string_view text) {
    double number = 0;
    const auto* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
    if (error == std::errc::invalid_argument) (void)nanoseconds_of("no number");
    const auto count = number * nanoseconds_of({rest, static_cast<std::size_t>(end - rest)});
    if (!(count >= 0)) throw std::invalid_argument{"is negative"};
    constexpr double longest = 100.0 * 36'525.0 / 100.0 * 24.0 * 3600.0 * 1e9;  // 100 years
    if (error != std::errc{} || count > longest) throw std::invalid_argument{"is longer than 100 years"};
    return nanoseconds{std::llround(count)};
}

std::string argument_of(std::chrono::milliseconds span) {
    const bool whole = span.count() % 1000 == 0;
    return std::to_string(whole ? span.count() / 1000 : span.count()) + (whole ? "s" : "ms");
}

std::string text_of(nanoseconds span) {
    std::array<char, 64> text{};
    const auto ms = static_cast<double>(span.count()) / 1e6;
    const char* const format = ms < 10 ? "%.2f ms" : ms < 1000 ? "%.0f ms" : "%.1f s";
    const auto length = std::snprintf(text.data(), text.size(), format, ms < 1000 ? ms : ms / 1000);
    return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace redlock::tool
