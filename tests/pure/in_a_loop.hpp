// An event loop in virtual time, over nodes in memory.
#pragma once

#include "virtual_loop.hpp"
#include "world.hpp"

#include <redlock/async_lock.hpp>
#include <redlock/async_nodes.hpp>

#include <utility>
#include <vector>

namespace redlock::test {

struct LoopWorld {
    /// Returns a completion that stores the result.
    Completion report() {
        return [this](Result it) { results.push_back(std::move(it)); };
    }
    /// Runs the loop until it has nothing to do.
    void run() {
        while (loop.run_once()) {
        }
    }
    /// Runs the loop for this time.
    void pass(Clock::duration span) {
        const auto end = world.clock.now() + span;
        while (loop.run_once(end)) {
        }
        world.clock.advance_to(end);
    }

    World world;
    VirtualLoop loop{world.clock};
    AsyncNodes of_loop{world, loop, world.clock, world.entropy};
    std::vector<Result> results;
};

}  // namespace redlock::test
