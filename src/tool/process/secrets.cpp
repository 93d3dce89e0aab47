#include "secrets.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

namespace redlock::tool {
namespace {

constexpr std::string_view scheme_end = "://";
constexpr std::string_view sentinel_field = "sentinel_password=";

/// Erases the secrets in a text, which may contain several addresses. So everything from the first "://" to
/// the last '@' is erased. Of a field with a password, everything up to the next '&' is erased.
void erase_in(std::span<char> text) {
    const std::string_view view{text.data(), text.size()};
    for (auto field = view.find(sentinel_field); field != view.npos;
         field = view.find(sentinel_field, field + 1)) {
        const auto value = field + sentinel_field.size();
        const auto end = std::min(view.find('&', value), view.size());
        std::ranges::fill(text.subspan(value, end - value), '*');
    }
    const auto scheme = view.find(scheme_end);
    const auto begin = scheme == view.npos ? view.size() : scheme + scheme_end.size();
    const auto at = view.substr(begin).rfind('@');
    if (at != view.npos) std::ranges::fill(text.subspan(begin, at), '*');
}

}  // namespace

std::string without_secrets(std::string_view text) {
    std::string result{text};
    erase_in(result);
    return result;
}

void erase_secrets(int argc, char** argv) {
    for (char* const argument : std::span{argv, static_cast<std::size_t>(argc)})
        erase_in({argument, std::strlen(argument)});
}

void erase_variable(const char* name) {
    // NOLINTBEGIN(concurrency-mt-unsafe): see the header
    char* const value = std::getenv(name);
    if (value != nullptr) std::ranges::fill(std::span{value, std::strlen(value)}, '\0');
    ::unsetenv(name);
    // NOLINTEND(concurrency-mt-unsafe)
}

}  // namespace redlock::tool
