// What a fuzz target requires for every input. A failed requirement ends the program, and libFuzzer keeps the
// input.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace redlock::fuzz {

inline void require(bool holds, std::string_view words) {
    if (holds) return;
    std::fprintf(stderr, "violated: %.*s\n", static_cast<int>(words.size()), words.data());
    std::abort();  // libFuzzer prints the call stack
}

/// The password of every target, which is therefore recognised anywhere.
inline constexpr std::string_view secret = "hunter2";

inline void require_no_secret(std::string_view words) {
    require(words.find(secret) == words.npos, "no password in what is reported");
}

}  // namespace redlock::fuzz
