// A world for a scenario. Messages take next to no time, nothing happens at random, and a failing test prints
// its schedule.
#pragma once

#include "pure/result_matchers.hpp"
#include "world.hpp"

#include <iostream>
#include <ostream>

namespace redlock::sim {

using test::FailsWith;
using test::no_retry;
using test::Succeeds;
using test::the_resource;

inline void PrintTo(const Violation& violation, std::ostream* out) {
    *out << name_of(violation.rule) << " at " << text(violation.when) << ": " << violation.text;
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
            if (node(index).has(the_resource)) ++count;
        return count;
    }

private:
    static WorldOptions for_scenario(WorldOptions options) {
        options.logged = true;
        options.conditions.mean = 0ns;
        return options;
    }
};

}  // namespace redlock::sim
