// How Redis parses the words of a command, and its replies to invalid ones.
#pragma once

#include "support/redis_reply.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::support {

inline char lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Compares without regard to case. `name` must be in lower case.
inline bool is(std::string_view word, std::string_view name) noexcept {
    return std::ranges::equal(word, name, {}, lower);
}

inline std::string lower(std::string_view word) {
    std::string result{word};
    std::ranges::transform(result, result.begin(), [](char c) { return lower(c); });
    return result;
}

/// Returns the words of a command as somebody types it: blanks separate them, and '' is the empty word.
inline std::vector<std::string> typed(const char* text) {
    std::vector<std::string> words;
    std::istringstream all{text};
    for (std::string word; all >> word;) words.push_back(word == "''" ? "" : word);
    return words;
}

/// Parses an integer as Redis does: no sign but a minus, no leading zero.
inline std::optional<std::int64_t> integer_in(std::string_view word) noexcept {
    std::int64_t number = 0;
    const auto* const end = word.data() + word.size();
    if (word.empty() || std::from_chars(word.data(), end, number) != std::from_chars_result{end, {}})
        return {};
    const auto digits = word.substr(word.starts_with('-') ? 1 : 0);
    if (digits.starts_with('0') && word != "0") return {};
    return number;
}

/// Parses a score as Redis does.
inline std::optional<double> number_in(std::string_view word) {
    const std::string copy{word};
    char* end = nullptr;
    const double number = std::strtod(copy.c_str(), &end);
    const bool whole = !copy.empty() && end == copy.c_str() + copy.size();
    if (!whole || std::isspace(static_cast<unsigned char>(copy.front())) || std::isnan(number)) return {};
    return number;
}

/// Formats a score as Redis does.
inline std::string text(double number) {
    if (std::abs(number) < 4.5e15 && number == std::trunc(number))
        return std::to_string(static_cast<std::int64_t>(number));
    std::array<char, 64> words{};
    std::snprintf(words.data(), words.size(), "%.17g", number);
    return words.data();
}

inline RedisReply error(std::string_view text) {
    return RedisReply::of_error("ERR " + std::string{text});
}

inline RedisReply ok() {
    return RedisReply::of_status("OK");
}

inline RedisReply syntax_error() {
    return error("syntax error");
}

inline RedisReply not_an_integer() {
    return error("value is not an integer or out of range");
}

inline RedisReply wrong_type() {
    return RedisReply::of_error("WRONGTYPE Operation against a key holding the wrong kind of value");
}

inline RedisReply out_of_memory() {
    return RedisReply::of_error("OOM command not allowed when used memory > 'maxmemory'.");
}

inline RedisReply wrong_arity(std::string_view command) {
    return error("wrong number of arguments for '" + std::string{command} + "' command");
}

inline RedisReply invalid_expiry(std::string_view command) {
    return error("invalid expire time in '" + std::string{command} + "' command");
}

}  // namespace redlock::support
