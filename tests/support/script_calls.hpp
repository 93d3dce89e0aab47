// The scripts that commands call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "wire/scripts.hpp"

namespace redlock::support {

/// Returns the script that a command calls, or null.
inline const detail::Script* script_of(const std::vector<std::string>& words) {
    if (words.size() < 3 || (words[0] != "EVAL" && words[0] != "EVALSHA")) return nullptr;
    const auto it = std::ranges::find_if(detail::scripts::all, [&](const detail::Script* script) {
        return words[1] == script->sha1 || words[1] == script->text;
    });
    return it == detail::scripts::all.end() ? nullptr : *it;
}

/// Returns an argument of the script that a command calls, or an empty text. The first one, the owner, has
/// the number 1.
inline std::string_view argument(const std::vector<std::string>& words, std::size_t number) {
    const auto index = 2 + std::stoul(words[2]) + number;
    return index < words.size() ? std::string_view{words[index]} : std::string_view{};
}

}  // namespace redlock::support
