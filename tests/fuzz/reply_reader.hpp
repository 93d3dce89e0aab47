// What a server's bytes say, read by the protocol's specification and by nothing of ours or hiredis': the
// targets compare with it.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace redlock::fuzz {

struct Said {
    enum class Kind : std::uint8_t { status, error, integer, nil, text };
    Kind kind = Kind::nil;
    long long integer = 0;
    std::string text{};

    bool is_status(std::string_view words) const { return kind == Kind::status && text == words; }
    bool is_integer(long long value) const { return kind == Kind::integer && integer == value; }
    std::string_view first_word() const { return std::string_view{text}.substr(0, text.find(' ')); }
};

enum class Reading : std::uint8_t {
    reply,       ///< one more
    incomplete,  ///< nothing is wrong so far
    nonsense,    ///< no client can go on from here
    doubtful     ///< RESP3, or so sloppy that clients differ: what follows is anybody's guess
};

class ReplyReader {
public:
    void take(std::string_view bytes) { unread_ += bytes; }

    Reading next(Said& said) {
        if (unread_.empty()) return Reading::incomplete;
        constexpr std::string_view resp3 = "_#,(=!%~>|";
        if (resp3.find(unread_.front()) != resp3.npos) return Reading::doubtful;
        constexpr std::string_view resp2 = "+-:$*";
        if (resp2.find(unread_.front()) == resp2.npos) return Reading::nonsense;
        const auto end = unread_.find("\r\n");
        if (end == unread_.npos) return Reading::incomplete;
        return read(unread_.front(), unread_.substr(1, end - 1), end + 2, said);
    }

private:
    Reading read(char kind, const std::string& line, std::size_t length, Said& said) {
        if (kind == '+' || kind == '-') {
            said = {.kind = kind == '+' ? Said::Kind::status : Said::Kind::error, .text = line};
            return taken(length);
        }
        long long number = 0;
        if (!canonical(line, number)) return Reading::doubtful;
        if (kind == ':') {
            said = {.kind = Said::Kind::integer, .integer = number};
            return taken(length);
        }
        if (number == -1) {
            said = {};
            return taken(length);
        }
        if (number < 0 || kind == '*')
            return Reading::nonsense;  // none of our commands is answered by an array
        return read_text(static_cast<std::size_t>(number), length, said);
    }

    Reading read_text(std::size_t size, std::size_t header, Said& said) {
        if (unread_.size() - header < 2 || unread_.size() - header - 2 < size) return Reading::incomplete;
        if (unread_.compare(header + size, 2, "\r\n") != 0) return Reading::doubtful;
        said = {.kind = Said::Kind::text, .text = unread_.substr(header, size)};
        return taken(header + size + 2);
    }

    Reading taken(std::size_t length) {
        unread_.erase(0, length);
        return Reading::reply;
    }

    static bool canonical(const std::string& line, long long& number) {
        const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
        return error == std::errc{} && end == line.data() + line.size() && std::to_string(number) == line;
    }

    std::string unread_{};
};

}  // namespace redlock::fuzz
