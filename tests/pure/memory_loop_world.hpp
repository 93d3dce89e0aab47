// Servers in memory, nodes, and an event loop in virtual time. Clients of other processes may be added.
#pragma once

#include "memory_loop.hpp"
#include "waiting_world.hpp"

#include <redlock/async_lock.hpp>
#include <redlock/async_nodes.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace redlock::test {

struct MemoryLoopWorld : WaitingWorld {
    explicit MemoryLoopWorld(const NodesOptions& options = {.node_timeout = 50ms})
        : nodes{std::in_place, network, size, options} {}

    /// Returns a completion that stores the result.
    Completion report() {
        return [this](Result it) { results.push_back(std::move(it)); };
    }
    void run_for(Clock::duration span) {
        const auto end = now() + span;
        while (now() < end && (loop.run_once(end) || now() < end)) {
        }
    }
    /// Begins an operation, and runs the loop until it has ended.
    template <class Begin>
    Result end_of(Begin begin) {
        std::optional<Result> result;
        begin([&](Result it) { result = std::move(it); });
        while (!result && loop.run_once(now() + 1min)) {
        }
        return std::move(result).value_or(Result{std::make_error_code(std::errc::timed_out)});
    }

    std::optional<MemoryLoopNodes> nodes;
    MemoryLoop loop{network};
    std::optional<AsyncNodes> of_loop{std::in_place, *nodes, loop, network.clock(), entropy};
    std::vector<Result> results{};
};

}  // namespace redlock::test
