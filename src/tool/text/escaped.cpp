#include "escaped.hpp"

#include "span.hpp"

#include <algorithm>
#include <cstddef>
#include <cwchar>
#include <locale>
#include <utility>

namespace redlock::tool {
namespace {

constexpr char32_t not_utf8 = 0xFFFF'FFFF;

/// Returns the number of bytes of the first character of `text`, and its code point. A byte that is not valid
/// UTF-8 is a character of its own, with the code point `not_utf8`.
std::pair<std::size_t, char32_t> first_character(std::string_view text) {
    using FromUtf8 = std::codecvt<char32_t, char8_t, std::mbstate_t>;
    const auto* const begin = reinterpret_cast<const char8_t*>(text.data());
    const auto* next = begin;
    char32_t code = not_utf8;
    char32_t* end = nullptr;
    std::mbstate_t state{};
    std::use_facet<FromUtf8>(std::locale::classic())
        .in(state, begin, begin + text.size(), next, &code, &code + 1, end);
    return {static_cast<std::size_t>(std::max<std::ptrdiff_t>(next - begin, 1)), code};
}

bool is_harmless(char32_t code) {
    const auto within = [code](char32_t first, char32_t last) { return code >= first && code <= last; };
    const bool control = code < 0x20 || within(0x7F, 0x9F);
    const bool breaks_line = within(0x2028, 0x2029);
    const bool turns_text_around = within(0x200E, 0x200F) || within(0x202A, 0x202E) || within(0x2066, 0x2069);
    const bool surrogate = within(0xD800, 0xDFFF);  // half of a character; std::codecvt accepts it
    return code != not_utf8 && !control && !breaks_line && !turns_text_around && !surrogate;
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
            for (const char byte : character)
                result += formatted("\\x%02x", static_cast<unsigned char>(byte));
    }
    return result;
}

}  // namespace redlock::tool
