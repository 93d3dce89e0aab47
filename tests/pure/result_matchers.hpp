// Matchers for the results of locks, for nodes in memory and for real ones.
#pragma once

#include "support/matchers.hpp"

#include <redlock/lock.hpp>

#include <chrono>
#include <ostream>
#include <string>

namespace redlock {

/// Prints a Result in a failure message of GoogleTest.
inline void PrintTo(const Result& result, std::ostream* out) {
    *out << '"' << result.message() << '"';
}

}  // namespace redlock

namespace redlock::test {

inline constexpr auto* the_resource = "orders:42";

/// Formats a duration for failure messages, because EXPECT_EQ prints raw bytes.
inline std::string text(Clock::duration span) {
    auto number = std::to_string(span.count() / 1'000'000);
    if (const auto rest = span.count() % 1'000'000; rest != 0)
        number += "." + std::to_string(1'000'000 + rest).substr(1);
    return number + " ms";
}

MATCHER(Succeeds, "succeeds") {
    return static_cast<bool>(arg);
}

MATCHER_P(FailsWith, error, "fails with " + std::error_code{error}.message()) {
    return arg.error() == error;
}

/// Returns options with a single attempt.
inline LockOptions no_retry(milliseconds ttl = 10s) {
    return {.ttl = ttl, .retry = {.attempts = 1}};
}

}  // namespace redlock::test
