// The replies and commands of Redis, and their bytes in RESP2.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::support {

struct RedisReply {
    enum class Kind : std::uint8_t { nil, status, error, integer, bulk, array };

    Kind kind = Kind::nil;
    long long integer = 0;
    std::string text{};  ///< of a status, an error or a bulk string
    std::vector<RedisReply> elements{};

    static RedisReply of_status(std::string text) { return {.kind = Kind::status, .text = std::move(text)}; }
    static RedisReply of_error(std::string text) { return {.kind = Kind::error, .text = std::move(text)}; }
    static RedisReply of_integer(long long value) { return {.kind = Kind::integer, .integer = value}; }
    static RedisReply of_bulk(std::string text) { return {.kind = Kind::bulk, .text = std::move(text)}; }
    static RedisReply of_array(std::vector<RedisReply> elements) {
        return {.kind = Kind::array, .elements = std::move(elements)};
    }

    bool is_error() const noexcept { return kind == Kind::error; }

    friend bool operator==(const RedisReply&, const RedisReply&) = default;
};

/// Formats a reply much as redis-cli does: "OK", "42", "(nil)", "(error) NOAUTH Authentication required.",
/// and an array with one element on each line.
inline std::string text_of(const RedisReply& reply) {
    using Kind = RedisReply::Kind;
    if (reply.kind == Kind::nil) return "(nil)";
    if (reply.kind == Kind::error) return "(error) " + reply.text;
    if (reply.kind == Kind::integer) return std::to_string(reply.integer);
    if (reply.kind != Kind::array) return reply.text;
    std::string lines;
    for (const auto& element : reply.elements)
        lines += (&element == reply.elements.data() ? "" : "\n") + text_of(element);
    return lines;
}

inline void append_resp(std::string& out, const RedisReply& reply) {
    constexpr std::string_view end = "\r\n";
    using Kind = RedisReply::Kind;
    switch (reply.kind) {
        case Kind::nil: out += "$-1"; break;
        case Kind::status: (out += '+') += reply.text; break;
        case Kind::error: (out += '-') += reply.text; break;
        case Kind::integer: (out += ':') += std::to_string(reply.integer); break;
        case Kind::bulk: (((out += '$') += std::to_string(reply.text.size())) += end) += reply.text; break;
        case Kind::array:
            ((out += '*') += std::to_string(reply.elements.size())) += end;
            for (const auto& element : reply.elements) append_resp(out, element);
            return;
    }
    out += end;
}

inline std::string to_resp(const RedisReply& reply) {
    std::string bytes;
    append_resp(bytes, reply);
    return bytes;
}

inline std::string to_resp(const std::vector<std::string>& command) {
    auto bytes = "*" + std::to_string(command.size()) + "\r\n";
    for (const auto& word : command) bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    return bytes;
}

}  // namespace redlock::support
