// Fixtures for tests of the watchdog: a world whose locks are extended when the test lets time pass.
#pragma once

#include "fronts.hpp"

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

struct WatchedLocks {
    explicit WatchedLocks(Front front) : world(front) {}

    LockOptions watched(milliseconds ttl = 30s) {
        return {.ttl = ttl,
                .retry = {.attempts = 1},
                .watchdog = world.watchdog(),
                .on_lost = [this](const Result& loss) {
                    losses.emplace_back(loss);
                    told_at = world.clock.now();
                }};
    }

    /// Returns a watched lock that is held. `change` may change its options.
    AnyLock held(const std::function<void(LockOptions&)>& change = [](auto&) {}) {
        auto options = watched();
        change(options);
        return world.held(options);
    }
    /// Returns what an acquisition gets: a lease that is valid for so long, whose key may be on any node.
    Lease acquired_for(Clock::duration span) {
        Lease lease{.valid_until = world.clock.now() + span};
        EXPECT_FALSE(lease.owner.draw(world.entropy));
        lease.may_hold_key.set();
        return lease;
    }
    void pass(Clock::duration span) { world.pass(span); }
    Clock::time_point end_of(const AnyLock& lock) { return world.clock.now() + lock.remaining(); }

    WorldOfAnyFront<BatchingWorld> world;
    std::vector<Result> losses;
    Clock::time_point told_at{};
};

/// The locks belong to a thread, and a BlockingRenewals extends them turn by turn.
struct Watched : testing::Test, WatchedLocks {
    Watched() : WatchedLocks(Front::thread) {}

    detail::BlockingRenewals& queue = world.queue;
};

struct WatchedInEachFront : testing::TestWithParam<Front>, WatchedLocks {
    WatchedInEachFront() : WatchedLocks(GetParam()) {}
};

}  // namespace redlock::test
