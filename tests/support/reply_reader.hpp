// Parses the bytes of a server according to the specification of the protocol, without code of the library or
// of hiredis. The fuzz targets compare with it.
#pragma once

#include "support/redis_reply.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace redlock::fuzz {

using support::RedisReply;

class ReplyReader {
public:
    enum class Progress : std::uint8_t {
        reply,           ///< one more
        incomplete,      ///< nothing is wrong so far
        protocol_error,  ///< no client can continue from here
        ambiguous  ///< RESP3, or so far from the specification that clients differ: what follows is anybody's
                   ///< guess
    };

    void take(std::string_view bytes) { unread_ += bytes; }

    Progress next(RedisReply& reply) {
        if (unread_.empty()) return Progress::incomplete;
        constexpr std::string_view resp3 = "_#,(=!%~>|";
        if (resp3.find(unread_.front()) != resp3.npos) return Progress::ambiguous;
        constexpr std::string_view resp2 = "+-:$*";
        if (resp2.find(unread_.front()) == resp2.npos) return Progress::protocol_error;
        const auto end = unread_.find("\r\n");
        if (end == unread_.npos) return Progress::incomplete;
        return read(unread_.front(), unread_.substr(1, end - 1), end + 2, reply);
    }

private:
    Progress read(char kind, const std::string& line, std::size_t length, RedisReply& reply) {
        if (kind == '+' || kind == '-') {
            reply = kind == '+' ? RedisReply::of_status(line) : RedisReply::of_error(line);
            return taken(length);
        }
        long long number = 0;
        if (!canonical(line, number)) return Progress::ambiguous;
        if (kind == ':') {
            reply = RedisReply::of_integer(number);
            return taken(length);
        }
        if (number == -1) {
            reply = {};
            return taken(length);
        }
        // None of our commands gets an array as a reply.
        if (number < 0 || kind == '*') return Progress::protocol_error;
        return read_bulk(static_cast<std::size_t>(number), length, reply);
    }

    Progress read_bulk(std::size_t size, std::size_t header, RedisReply& reply) {
        if (unread_.size() - header < 2 || unread_.size() - header - 2 < size) return Progress::incomplete;
        if (unread_.compare(header + size, 2, "\r\n") != 0) return Progress::ambiguous;
        reply = RedisReply::of_bulk(unread_.substr(header, size));
        return taken(header + size + 2);
    }

    Progress taken(std::size_t length) {
        unread_.erase(0, length);
        return Progress::reply;
    }

    static bool canonical(const std::string& line, long long& number) {
        const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
        return error == std::errc{} && end == line.data() + line.size() && std::to_string(number) == line;
    }

    std::string unread_{};
};

}  // namespace redlock::fuzz
