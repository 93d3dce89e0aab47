// Parses the bytes of a server according to the specification of the protocol, without code of the library or
// of hiredis.
#pragma once

#include "support/redis_reply.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace redlock::support {

class ReplyReader {
public:
    enum class Progress : std::uint8_t {
        reply,           ///< one more
        incomplete,      ///< nothing is wrong so far
        protocol_error,  ///< no client can continue from here
        ambiguous  ///< RESP3, or so far from the specification that clients differ: what follows is anybody's
                   ///< guess
    };
    /// An array is a protocol error for a client none of whose commands gets one as a reply.
    enum class Arrays : bool { are_errors, are_replies };

    explicit ReplyReader(Arrays arrays = Arrays::are_errors) : arrays_(arrays) {}

    void take(std::string_view bytes) { unread_ += bytes; }

    Progress next(RedisReply& reply) {
        std::size_t at = 0;
        const auto progress = read(at, reply);
        if (progress == Progress::reply) unread_.erase(0, at);
        return progress;
    }

private:
    /// Reads the reply that begins at `at`. If it is complete, moves `at` to its end.
    // NOLINTNEXTLINE(misc-no-recursion): arrays contain arrays
    Progress read(std::size_t& at, RedisReply& reply) {
        if (at == unread_.size()) return Progress::incomplete;
        const char kind = unread_[at];
        constexpr std::string_view resp3 = "_#,(=!%~>|";
        if (resp3.find(kind) != resp3.npos) return Progress::ambiguous;
        constexpr std::string_view resp2 = "+-:$*";
        if (resp2.find(kind) == resp2.npos) return Progress::protocol_error;
        const auto end = unread_.find("\r\n", at);
        if (end == unread_.npos) return Progress::incomplete;
        const auto line = unread_.substr(at + 1, end - at - 1);
        at = end + 2;
        if (kind == '+' || kind == '-') {
            reply = kind == '+' ? RedisReply::of_status(line) : RedisReply::of_error(line);
            return Progress::reply;
        }
        long long number = 0;
        if (!canonical(line, number)) return Progress::ambiguous;
        if (kind == ':' || number == -1) {
            reply = kind == ':' ? RedisReply::of_integer(number) : RedisReply{};
            return Progress::reply;
        }
        if (number < 0 || (kind == '*' && arrays_ == Arrays::are_errors)) return Progress::protocol_error;
        const auto size = static_cast<std::size_t>(number);
        return kind == '*' ? read_array(size, at, reply) : read_bulk(size, at, reply);
    }

    Progress read_bulk(std::size_t size, std::size_t& at, RedisReply& reply) {
        if (unread_.size() - at < 2 || unread_.size() - at - 2 < size) return Progress::incomplete;
        if (unread_.compare(at + size, 2, "\r\n") != 0) return Progress::ambiguous;
        reply = RedisReply::of_bulk(unread_.substr(at, size));
        at += size + 2;
        return Progress::reply;
    }

    // NOLINTNEXTLINE(misc-no-recursion)
    Progress read_array(std::size_t size, std::size_t& at, RedisReply& reply) {
        std::vector<RedisReply> elements;
        while (elements.size() < size)
            if (const auto progress = read(at, elements.emplace_back()); progress != Progress::reply)
                return progress;
        reply = RedisReply::of_array(std::move(elements));
        return Progress::reply;
    }

    static bool canonical(const std::string& line, long long& number) {
        const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
        return error == std::errc{} && end == line.data() + line.size() && std::to_string(number) == line;
    }

    Arrays arrays_;
    std::string unread_{};
};

}  // namespace redlock::support
