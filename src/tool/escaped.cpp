#include "escaped.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace redlock::tool {
namespace {

/// The first character of a text: its number of bytes and its code point.
struct Character {
    std::size_t bytes = 1;
    std::uint32_t code = invalid;

    static constexpr std::uint32_t invalid = 0xFFFF'FFFF;
};

/// Returns the first character of `text`. A byte that is not valid UTF-8 is a character of its own.
Character first_character(std::string_view text) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    // The first byte of a sequence begins with as many ones as the sequence has bytes, and with a zero if it
    // is the only byte. `least` has the smallest code point that needs so many bytes.
    constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x1'0000};
    const auto ones = static_cast<std::size_t>(std::countl_one(byte(0)));
    if (ones == 1 || ones >= least.size() || ones > text.size()) return {};
    std::uint32_t code = byte(0) & (0x7FU >> ones);
    for (std::size_t at = 1; at < ones; ++at) {
        if ((byte(at) & 0xC0) != 0x80) return {};
        code = code << 6 | (byte(at) & 0x3F);
    }
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    if (code < least[ones] || code > 0x10'FFFF || surrogate) return {};
    return {std::max<std::size_t>(ones, 1), code};
}

bool is_harmless(std::uint32_t code) {
    const auto within = [code](std::uint32_t first, std::uint32_t last) {
        return code >= first && code <= last;
    };
    const bool control = code < 0x20 || within(0x7F, 0x9F);
    const bool breaks_line = within(0x2028, 0x2029);
    const bool turns_text_around = within(0x200E, 0x200F) || within(0x202A, 0x202E) || within(0x2066, 0x2069);
    return code != Character::invalid && !control && !breaks_line && !turns_text_around;
}

void append_escape(std::string& result, unsigned char byte) {
    constexpr std::string_view digits = "0123456789abcdef";
    result += "\\x";
    result += digits[byte >> 4];
    result += digits[byte & 0x0F];
}

}  // namespace

std::string escaped(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        const auto [bytes, code] = first_character(text);
        const auto character = text.substr(0, bytes);
        text.remove_prefix(bytes);
        if (is_harmless(code))
            result += character;
        else
            for (const char byte : character) append_escape(result, static_cast<unsigned char>(byte));
    }
    return result;
}

}  // namespace redlock::tool
