// A world for a scenario. Messages take next to no time, nothing happens at random, and a failing test prints
// its schedule.
#pragma once

#include "world.hpp"

#include <redlock/result.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <ostream>

namespace redlock {

inline void PrintTo(const Result& result, std::ostream* out) {
    *out << '"' << result.message() << '"';
}

}  // namespace redlock

namespace redlock::sim {

inline void PrintTo(const Violation& violation, std::ostream* out) {
    *out << name_of(violation.rule) << " at " << text(violation.when) << ": " << violation.text;
}

inline constexpr auto resource = "orders:42";

MATCHER(Succeeds, "succeeds") {
    return static_cast<bool>(arg);
}
MATCHER_P(FailsWith, error, "fails with " + std::error_code{error}.message()) {
    return arg.error() == error;
}

class Scenario : public World {
public:
    explicit Scenario(WorldOptions options = {}) : World(for_scenario(options)) {}

    ~Scenario() {
        if (!testing::Test::HasFailure()) return;
        for (const auto& line : log().lines()) std::cerr << "    " << line << '\n';
    }

    /// Returns how many nodes have the key of the resource.
    std::size_t nodes_with_key() {
        std::size_t count = 0;
        for (std::size_t index = 0; index < size(); ++index)
            if (node(index).has(resource)) ++count;
        return count;
    }

private:
    static WorldOptions for_scenario(WorldOptions options) {
        options.logged = true;
        options.conditions.mean = 0ns;
        return options;
    }
};

/// Returns options with a single attempt.
inline LockOptions once(milliseconds ttl = 10s) {
    return {.ttl = ttl, .retry = {.attempts = 1}};
}

}  // namespace redlock::sim
