// A fixture for tests of the watchdog: a world whose locks a BlockingRenewals extends, turn by turn.
#pragma once

#include "world.hpp"

#include "blocking_renewals.hpp"

#include <functional>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace redlock::test {

/// Records the rounds of extensions, and how many extensions shared each.
class BatchingWorld : public World {
public:
    using World::World;

    void ask(std::span<const Request> requests, const RoundLimits& limits,
             std::span<Tally> tallies) override {
        if (requests.front().command.verb == Verb::compare_and_expire) {
            batches.push_back(requests.size());
            deadline = limits.deadline;
            if (throws) throw std::bad_alloc{};
            World::ask(requests, limits, tallies);
            return std::exchange(round_ended, [] {})();
        }
        World::ask(requests, limits, tallies);
    }

    std::vector<std::size_t> batches;
    Clock::time_point deadline{};  // of the last extension
    bool throws = false;
    std::function<void()> round_ended = [] {};  // called as an Observer is: in the thread of the round
};

struct Watched : testing::Test {
    LockOptions watched(milliseconds ttl = 30s) {
        return {
            .ttl = ttl, .retry = {.attempts = 1}, .watchdog = &queue, .on_lost = [this](const Result& loss) {
                losses.emplace_back(loss);
                told_at = world.clock.now();
            }};
    }

    /// Returns a watched lock that is held.
    Lock held() { return world.held(watched()); }

    /// Advances the time, and runs the turns of the watchdog when they are due.
    void pass(Clock::duration span) {
        const auto end = world.clock.now() + span;
        for (auto next = queue.turn(); next <= end; next = queue.turn()) {
            world.clock.advance_to(next);
            ASSERT_LT(++turns, 100'000) << "it never comes to rest";
        }
        world.clock.advance_to(end);
    }

    Clock::time_point end_of(const Lock& lock) { return world.clock.now() + lock.remaining(); }

    BatchingWorld world;
    detail::BlockingRenewals queue{world.clock};
    std::vector<Result> losses;
    Clock::time_point told_at{};
    int turns = 0;
};

}  // namespace redlock::test
