// The world of the pure tests: nodes, time and randomness that tests control. For example:
//
//     World world;                            // five nodes with a node_timeout of 50 ms
//     world.cut(0, 3);                        // two of them are down
//     auto lock = world.lock({.ttl = 10s});
//     EXPECT_THAT(lock.acquire(), Succeeds());
//     EXPECT_THAT(world.events(), ElementsAre("set #1 for 10000 ms"));
#pragma once

#include "event_log.hpp"
#include "manual_clock.hpp"
#include "result_matchers.hpp"
#include "scripted_nodes.hpp"
#include "seeded_entropy.hpp"

#include <redlock/algorithm/acquire.hpp>
#include <redlock/algorithm/algorithm.hpp>

#include <algorithm>
#include <functional>
#include <iostream>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redlock {

inline void PrintTo(Errc errc, std::ostream* out) {
    *out << make_error_code(errc).message();
}

}  // namespace redlock

namespace redlock::test {

/// Matches a duration, and shows it in ms.
MATCHER_P(Lasts, span, text(span)) {
    *result_listener << text(arg);
    return arg == span;
}

/// The same, except for the rounding of a double.
MATCHER_P(LastsAbout, span, "about " + text(span)) {
    *result_listener << text(arg);
    return arg - span <= 1ns && span - arg <= 1ns;
}

/// The members of a World that must exist before its nodes.
struct Stage {
    explicit Stage(std::uint64_t seed) : entropy(seed) {}

    EventLog log;
    LoggedClock clock{log};
    SeededEntropy entropy;
};

class World : public Stage, public ScriptedNodes {
public:
    explicit World(std::size_t nodes = 5, milliseconds node_timeout = 50ms)
        : Stage(1), ScriptedNodes(nodes, node_timeout, clock, Stage::log) {}

    /// Prints the last events if a test has failed.
    ~World() override {
        if (!testing::Test::HasFailure()) return;
        const std::span lines{events()};
        for (const auto& line : lines.last(std::min<std::size_t>(lines.size(), 40)))
            std::cerr << "    " << line << '\n';
    }

    Lock lock(LockOptions options = {}) { return lock(the_resource, options); }
    Lock lock(ResourceList resources, LockOptions options = {}) {
        return Lock{*this, std::move(resources), options, clock, entropy};
    }

    /// Returns the rounds and pauses since the last forget_events().
    const std::vector<std::string>& events() const { return log.lines(); }
    void forget_events() { log.clear(); }

    /// Returns a lock that is held.
    Lock held(LockOptions options = {}) { return held(the_resource, std::move(options)); }
    Lock held(ResourceList resources, LockOptions options = {}) {
        auto result = lock(std::move(resources), std::move(options));
        EXPECT_THAT(result.acquire(), Succeeds());
        return result;
    }

    void pass(Clock::duration span) { clock.advance(span); }
    void after(Clock::duration span, std::function<void()> event) { clock.after(span, std::move(event)); }
};

/// Returns the message of the std::invalid_argument that `action` throws, or an empty text if it throws none.
template <class Action>
std::string refusal(Action action) {
    try {
        action();
    } catch (const std::invalid_argument& refused) {
        return refused.what();
    }
    return {};
}

/// Returns how long `action` takes by the clock of the world.
template <class Action>
Clock::duration time_taken(World& world, Action action) {
    const auto start = world.clock.now();
    action();
    return world.clock.now() - start;
}

}  // namespace redlock::test
