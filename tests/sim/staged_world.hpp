// A world for a scenario: messages take next to no time, nothing is random, and a failing test prints its
// schedule.
#pragma once

#include "world.hpp"

#include <redlock/result.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <ostream>
#include <string>
#include <utility>

namespace redlock {

inline void PrintTo(const Result& result, std::ostream* out) {
    *out << '"' << result.message() << '"';
}

}  // namespace redlock

namespace redlock::sim {

inline void PrintTo(const Violation& violation, std::ostream* out) {
    *out << name_of(violation.rule) << " at " << text(violation.when) << ": " << violation.text;
}

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

inline constexpr auto resource = "orders:42";

MATCHER(Succeeds, "succeeds") {
    return static_cast<bool>(arg);
}
MATCHER_P(FailsWith, error, "fails with " + std::error_code{error}.message()) {
    return arg.error() == error;
}
MATCHER_P(Breaks, rule, "breaks the rule that there is never " + std::string{name_of(rule)}) {
    return arg.rule == rule;
}

class StagedWorld : public World {
public:
    explicit StagedWorld(WorldOptions options = {}) : World(staged(options)) {}

    ~StagedWorld() {
        if (!testing::Test::HasFailure()) return;
        for (const auto& line : log().lines()) std::cerr << "    " << line << '\n';
    }

    void crash(std::initializer_list<std::size_t> nodes) {
        for (const auto index : nodes) node(index).crash();
    }
    void restart(std::initializer_list<std::size_t> nodes, Data data) {
        for (const auto index : nodes) node(index).restart(data);
    }
    /// How many nodes have the resource in somebody's name.
    std::size_t nodes_with_key() {
        std::size_t count = 0;
        for (std::size_t index = 0; index < size(); ++index)
            if (!node(index).owner(resource).empty()) ++count;
        return count;
    }

private:
    static WorldOptions staged(WorldOptions options) {
        options.logged = true;
        if (options.conditions.mean == NetworkConditions{}.mean) options.conditions.mean = 0ns;
        return options;
    }
};

/// One attempt only.
inline LockOptions once(milliseconds ttl = 10s) {
    return {.ttl = ttl, .retry = {.attempts = 1}};
}
inline LockOptions once_with_token(milliseconds ttl = 10s) {
    return {.ttl = ttl, .retry = {.attempts = 1}, .fencing = true};
}

}  // namespace redlock::sim
