#include "secrets.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

namespace redlock::tool {
namespace {

constexpr std::string_view scheme_end = "://";
constexpr std::string_view sentinel_field = "sentinel_password=";

/// Erases the secrets in one word. A word may contain several addresses, so everything from the first "://"
/// to the last '@' is erased. Of a field with a password, everything up to the next '&' is erased.
void erase_in_word(std::span<char> word) {
    const std::string_view view{word.data(), word.size()};
    for (auto field = view.find(sentinel_field); field != view.npos;
         field = view.find(sentinel_field, field + 1)) {
        const auto value = field + sentinel_field.size();
        const auto end = std::min(view.find('&', value), view.size());
        std::ranges::fill(word.subspan(value, end - value), '*');
    }
    const auto begin = view.find(scheme_end);
    const auto at = view.rfind('@');
    if (begin == view.npos || at == view.npos || at < begin) return;
    const auto from = begin + scheme_end.size();
    if (from < at) std::ranges::fill(word.subspan(from, at - from), '*');
}

}  // namespace

std::string without_secrets(std::string_view text) {
    std::string result{text};
    for (std::size_t begin = 0; begin < result.size();) {
        const auto end = std::min(result.find_first_of(" \t\n", begin), result.size());
        erase_in_word(std::span{result}.subspan(begin, end - begin));
        begin = end + 1;
    }
    return result;
}

void erase_secrets(int argc, char** argv) {
    for (char* const argument : std::span{argv, static_cast<std::size_t>(argc)})
        erase_in_word({argument, std::strlen(argument)});
}

void erase_variable(const char* name) {
    char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): see the header
    if (value != nullptr) std::ranges::fill(std::span{value, std::strlen(value)}, '\0');
}

}  // namespace redlock::tool
