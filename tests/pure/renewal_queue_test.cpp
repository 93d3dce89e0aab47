// Rules C6 to C9 and B7: what a watchdog does for the locks in its care, turn by turn.
#include "world.hpp"

#include <redlock/detail/renewal_queue.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace redlock::test {
namespace {

/// Notes how many extensions shared each round.
class BatchingWorld : public World {
public:
    using World::World;

    void ask(std::span<const Request> requests, const RoundLimits& limits,
             std::span<Tally> tallies) override {
        if (requests.front().command.verb == Verb::compare_and_expire) {
            batches.push_back(requests.size());
            if (throws) throw std::bad_alloc{};
            World::ask(requests, limits, tallies);
            return std::exchange(round_ended, [] {})();
        }
        World::ask(requests, limits, tallies);
    }

    std::vector<std::size_t> batches;
    bool throws = false;
    std::function<void()> round_ended = [] {};  // as an Observer is told of a round, in its thread
};

struct Watching : testing::Test {
    LockOptions watched(milliseconds ttl = 30s) {
        return {
            .ttl = ttl, .retry = {.attempts = 1}, .watchdog = &queue, .on_lost = [this](const Result& loss) {
                losses.emplace_back(loss);
                told_at = world.clock.now();
            }};
    }

    /// Time passes, and the watchdog wakes up as it said it would.
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
    detail::RenewalQueue queue{world.clock};
    std::vector<Result> losses;
    Clock::time_point told_at{};
    int turns = 0;
};

// ---- Extending

// C6.
TEST_F(Watching, ExtendsALockThatIsHeld) {
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    world.forget_events();
    pass(10s - 1ns);
    EXPECT_THAT(world.events(), IsEmpty());
    pass(2s);
    EXPECT_THAT(world.events(), ElementsAre("expire #1 in 30000 ms"));
    EXPECT_GT(lock.remaining(), 28s);
}

TEST_F(Watching, KeepsALockForAsLongAsItIsHeld) {
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    const std::string owner{lock.owner()};
    for (int minute = 0; minute < 30; ++minute) {
        pass(1min);
        EXPECT_GE(lock.remaining(), 15s);
        EXPECT_EQ(world.held_by(owner), 5U);
    }
    EXPECT_THAT(losses, IsEmpty());
    EXPECT_FALSE(lock.lost().stop_requested());
}

TEST_F(Watching, KeepsALockWhoseValidityIsASmallPartOfItsTtl) {
    auto options = watched();
    options.drift_factor = 0.9;
    auto lock = world.lock(options);
    EXPECT_THAT(lock.acquire(), Succeeds());
    pass(10min);
    EXPECT_TRUE(lock.valid());
    EXPECT_THAT(losses, IsEmpty());
}

TEST_F(Watching, DoesSoWithTwoNodesOfFiveDown) {
    world.cut(1);
    world.silence(4);
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    pass(20min);
    EXPECT_TRUE(lock.valid());
}

TEST_F(Watching, LetsLocksThatAreDueTogetherShareARound) {
    std::vector<Lock> locks;
    for (int i = 0; i < 100; ++i) {
        locks.push_back(world.lock("resource " + std::to_string(i), watched()));
        EXPECT_THAT(locks.back().acquire(), Succeeds());
        pass(10ms);
    }
    pass(13s);
    EXPECT_THAT(world.batches, ElementsAre(100U));
}

TEST_F(Watching, PutsNoMoreIntoARoundThanItsNodesCanAnswerInTime) {
    std::vector<Lock> locks;
    for (int i = 0; i < 600; ++i) {
        locks.push_back(world.lock("resource " + std::to_string(i), watched()));
        EXPECT_THAT(locks.back().acquire(), Succeeds());
    }
    pass(13s);
    EXPECT_THAT(world.batches, ElementsAre(256U, 256U, 88U));
}

TEST_F(Watching, KeepsLocksOfManyTtlsOnSeveralNodes) {
    ScriptedNodes others{3, 50ms, world.clock, world.log};
    std::vector<Lock> locks;
    for (int i = 0; i < 50; ++i) {
        auto& nodes = i % 2 == 0 ? static_cast<Nodes&>(world) : others;
        locks.emplace_back(nodes, "resource " + std::to_string(i), watched(milliseconds{200 << (i % 10)}),
                           world.clock, world.entropy);
        EXPECT_THAT(locks.back().acquire(), Succeeds());
        pass(7ms);
    }
    pass(1min);
    for (const auto& lock : locks) EXPECT_TRUE(lock.valid()) << lock.resource();
    EXPECT_THAT(losses, IsEmpty());
}

// The holder may extend as well; the watchdog goes by what there is.
TEST_F(Watching, LeavesALockAloneThatItsHolderHasExtended) {
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    pass(9s);
    EXPECT_THAT(lock.extend(), Succeeds());
    world.forget_events();
    pass(9s);
    EXPECT_THAT(world.events(), IsEmpty());
    pass(3s);
    EXPECT_THAT(world.events(), SizeIs(1));
}

TEST_F(Watching, FollowsALockThatIsMoved) {
    std::optional<Lock> first{world.lock(watched())};
    EXPECT_THAT(first->acquire(), Succeeds());
    auto second = std::move(*first);
    first.reset();
    pass(1min);
    EXPECT_TRUE(second.valid());
    auto third = world.lock("another", watched());
    third = std::move(second);
    pass(1min);
    EXPECT_TRUE(third.valid());
    EXPECT_THAT(third.release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

// ---- Losing

// C6. "At valid_until declares the loss."
TEST_F(Watching, TellsTheLossWhenTheValidityEnds) {
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    const auto end = end_of(lock);
    const auto lost = lock.lost();
    world.cut_all();
    pass(30s - 400ms);
    EXPECT_THAT(losses, IsEmpty());
    EXPECT_TRUE(lock.valid());
    pass(400ms);
    EXPECT_THAT(losses, ElementsAre(FailsWith(Errc::lost)));
    EXPECT_TRUE(lost.stop_requested());
    EXPECT_FALSE(lock.valid());
    EXPECT_LE(told_at, end);
    EXPECT_GE(told_at, end - 5ms);
}

// A12. Why, node by node.
TEST_F(Watching, TellsWhatHappenedOnEachNode) {
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    world.silence(0, 1);
    world.lie(Errc::quarantined, 3);
    pass(30s);
    ASSERT_THAT(losses, SizeIs(1));
    ASSERT_THAT(losses[0].nodes(), SizeIs(5));
    EXPECT_EQ(losses[0].nodes()[1].cause, Errc::timed_out);
    EXPECT_EQ(losses[0].nodes()[2].vote, Vote::granted);
    EXPECT_EQ(losses[0].nodes()[3].cause, Errc::quarantined);
}

// C6. "Goes on trying until valid_until."
TEST_F(Watching, SavesALockWhoseNodesComeBackInTheLastMoment) {
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    world.cut_all();
    pass(27s);
    world.heal_all();
    pass(3s);
    EXPECT_THAT(lock.remaining(), testing::Gt(20s));
    EXPECT_THAT(losses, IsEmpty());
}

// C6. A round that hangs, of other locks on other nodes, keeps no notice back.
TEST_F(Watching, TellsALossInTimeWhileOtherNodesHang) {
    ScriptedNodes hanging{3, 1h, world.clock, world.log};
    Lock other{hanging, "other", watched(10h), world.clock, world.entropy};
    EXPECT_THAT(other.acquire(), Succeeds());
    pass(10h / 3 - 10s);
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    const auto end = end_of(lock);
    world.cut_all();
    hanging.silence(0, 1, 2);
    pass(26min);  // into the round of `other`, which takes as long as it can
    EXPECT_THAT(losses, SizeIs(1));
    EXPECT_LE(told_at, end);
    EXPECT_TRUE(other.valid());
}

// The same with the lock's own nodes: the budget is longer than what is left of the validity.
TEST_F(Watching, TellsALossInTimeWhileItsOwnNodesHang) {
    World slow{5, 20s};
    detail::RenewalQueue list{slow.clock};
    Clock::time_point told{};
    auto lock = slow.lock(
        {.ttl = 30s, .watchdog = &list, .on_lost = [&](const Result&) { told = slow.clock.now(); }});
    EXPECT_THAT(lock.acquire(), Succeeds());
    const auto end = slow.clock.now() + lock.remaining();
    slow.silence(0, 1, 2);
    while (lock.valid()) slow.clock.advance_to(list.turn());
    EXPECT_LE(told, end);
    EXPECT_GE(told, end - 5ms);
}

/// Its reader is stalled right after a look, once it was told to.
class StallingClock final : public Clock {
public:
    explicit StallingClock(World& world) : world_(world) {}
    time_point now() noexcept override {
        const auto read = world_.clock.now();
        world_.pass(std::exchange(stall_, duration::zero()));
        return read;
    }
    void sleep_until(time_point until, std::stop_token stop) override {
        world_.clock.sleep_until(until, std::move(stop));
    }
    void stall_at_the_next_look(duration span) { stall_ = span; }

private:
    World& world_;
    duration stall_{};
};

/// Extends, and then stalls whoever asked.
class StallingWorld : public World {
public:
    void ask(std::span<const Request> requests, const RoundLimits& limits,
             std::span<Tally> tallies) override {
        World::ask(requests, limits, tallies);
        if (requests.front().command.verb == Verb::compare_and_expire) stalling.stall_at_the_next_look(20s);
    }
    StallingClock stalling{*this};
};

// C3, C4. A confirmation that was heard in time, but is entered after the validity has ended, is too late:
// somebody may have seen the end meanwhile.
TEST(WatchingWithStalls, NeverMakesALockValidAgain) {
    StallingWorld world;
    detail::RenewalQueue list{world.stalling};
    Lock lock{world, the_resource, {.ttl = 30s, .watchdog = &list}, world.stalling, world.entropy};
    EXPECT_THAT(lock.acquire(), Succeeds());
    world.pass(15s);
    (void)list.turn();  // until after the end of the old validity, and before that of the new one
    EXPECT_FALSE(lock.valid());
}

// Another may hold the resource now: to wait for the end of the validity would be a lie.
TEST_F(Watching, TellsTheLossAtOnceWhereAMajorityHasLostTheKey) {
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    for (const std::size_t node : {0U, 1U, 2U}) world.forget(node);
    pass(13s);
    EXPECT_THAT(losses, ElementsAre(FailsWith(Errc::lost)));
    EXPECT_TRUE(lock.lost().stop_requested());
    EXPECT_FALSE(lock.valid());
    EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
}

TEST_F(Watching, BearsThatAMinorityHasLostTheKey) {
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    world.forget(0);
    world.forget(1);
    pass(10min);
    EXPECT_TRUE(lock.valid());
}

// C8. "One loss, one notice."
TEST_F(Watching, TellsALossOnce) {
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    world.cut_all();
    pass(10min);
    EXPECT_THAT(losses, SizeIs(1));
}

// Each acquisition has a notice of its own.
TEST_F(Watching, BeginsAnewWithTheNextAcquisition) {
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    const auto first = lock.lost();
    world.cut_all();
    pass(1min);
    world.heal_all();
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_TRUE(first.stop_requested());
    EXPECT_FALSE(lock.lost().stop_requested());
    pass(1min);
    EXPECT_TRUE(lock.valid());
    world.cut_all();
    pass(1min);
    EXPECT_TRUE(lock.lost().stop_requested());
    EXPECT_THAT(losses, SizeIs(2));
}

TEST_F(Watching, TellsAllThatAreLostAtOnce) {
    std::vector<Lock> locks;
    for (int i = 0; i < 300; ++i) {
        locks.push_back(world.lock("resource " + std::to_string(i), watched()));
        EXPECT_THAT(locks.back().acquire(), Succeeds());
    }
    const auto end = end_of(locks.front());
    world.cut_all();
    pass(30s);
    EXPECT_THAT(losses, SizeIs(300));
    EXPECT_LE(told_at, end);
}

// ---- C7: a longest hold

TEST_F(Watching, StopsExtendingAtTheHoldLimitAndSaysSo) {
    auto options = watched();
    options.max_hold = 1min;
    auto lock = world.lock(options);
    EXPECT_THAT(lock.acquire(), Succeeds());
    pass(1min);
    EXPECT_TRUE(lock.valid());
    EXPECT_THAT(losses, IsEmpty());
    const auto end = end_of(lock);
    pass(30s);
    EXPECT_FALSE(lock.valid());
    EXPECT_THAT(losses, ElementsAre(FailsWith(Errc::hold_limit)));
    EXPECT_LE(told_at, end);
}

// A round of others that hung, or a thread that got no processor.
TEST_F(Watching, ExtendsNothingAfterTheHoldLimitWhenItComesLate) {
    auto options = watched();
    options.max_hold = 11s;
    auto lock = world.lock(options);
    EXPECT_THAT(lock.acquire(), Succeeds());
    const auto end = end_of(lock);
    world.clock.advance_to(world.clock.now() + 12s);
    queue.turn();
    EXPECT_EQ(end_of(lock), end);
}

TEST_F(Watching, HoldsAnHourUnlessToldOtherwise) {
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    pass(1h);
    EXPECT_TRUE(lock.valid());
    pass(30s);
    EXPECT_FALSE(lock.valid());
}

TEST_F(Watching, HoldsForEverWhereThatIsWanted) {
    auto options = watched();
    options.max_hold = Clock::duration::max();
    auto lock = world.lock(options);
    EXPECT_THAT(lock.acquire(), Succeeds());
    pass(std::chrono::hours{48});
    EXPECT_TRUE(lock.valid());
}

// ---- B7, C9: the end of the watch

TEST_F(Watching, ExtendsNothingAfterTheRelease) {
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    const auto lost = lock.lost();
    pass(15s);
    EXPECT_THAT(lock.release(), Succeeds());
    world.forget_events();
    pass(10min);
    EXPECT_THAT(world.events(), IsEmpty());
    EXPECT_THAT(losses, IsEmpty());
    EXPECT_FALSE(lost.stop_requested()) << "to release is not to lose";
}

// A release that comes late, of an acquisition that is over, leaves the next one in its place.
TEST_F(Watching, ForgetsNoLaterAcquisition) {
    const auto state = std::make_shared<detail::LeaseState>(
        world, world.clock, std::vector<std::string>{the_resource}, watched());
    Lease lease{.valid_until = world.clock.now() + 30s};
    ASSERT_FALSE(lease.owner.draw(world.entropy));
    const auto first = state->begin(lease, std::stop_source{});
    queue.add({state, first});
    const auto second = state->begin(lease, std::stop_source{});
    queue.add({state, second});
    queue.remove({state, first});
    EXPECT_FALSE(queue.idle());
    queue.remove({state, second});
    EXPECT_TRUE(queue.idle());
}

TEST_F(Watching, KeepsNothingOfALockThatWasReleased) {
    std::weak_ptr<int> kept;
    {
        auto options = watched();
        const auto captured = std::make_shared<int>();
        kept = captured;
        options.on_lost = [captured](const Result&) {};
        auto lock = world.lock(options);
        EXPECT_THAT(lock.acquire(), Succeeds());
        EXPECT_FALSE(queue.idle());
        pass(15s);
        EXPECT_THAT(lock.release(), Succeeds());
        EXPECT_TRUE(queue.idle());
    }
    EXPECT_TRUE(kept.expired());
}

TEST_F(Watching, TellsNothingAfterAReleaseThatFailed) {
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    world.cut_all();
    EXPECT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    pass(10min);
    EXPECT_THAT(losses, IsEmpty());
}

TEST_F(Watching, EndsWithTheLock) {
    { EXPECT_THAT(world.lock(watched()).acquire(), Succeeds()); }
    world.forget_events();
    pass(10min);
    EXPECT_THAT(world.events(), IsEmpty());
    EXPECT_EQ(queue.turn(), Clock::never());
}

// ---- C8: callbacks

TEST_F(Watching, LetsTheCallbackRelease) {
    std::optional<Lock> lock;
    auto options = watched();
    options.on_lost = [&](const Result& loss) {
        losses.push_back(loss);
        EXPECT_THAT(lock->release(), FailsWith(Errc::lost));
    };
    lock.emplace(world.lock(options));
    EXPECT_THAT(lock->acquire(), Succeeds());
    for (const std::size_t node : {0U, 1U, 2U}) world.forget(node);
    pass(1min);
    EXPECT_THAT(losses, SizeIs(1));
    EXPECT_TRUE(world.clean());
}

TEST_F(Watching, LetsTheCallbackDestroyTheLock) {
    std::optional<Lock> lock;
    auto options = watched();
    options.on_lost = [&](const Result& loss) {
        losses.push_back(loss);
        lock.reset();
    };
    lock.emplace(world.lock(options));
    EXPECT_THAT(lock->acquire(), Succeeds());
    world.cut_all();
    pass(1min);
    EXPECT_THAT(losses, SizeIs(1));
    EXPECT_FALSE(lock);
}

TEST_F(Watching, LetsTheCallbackAcquireAgain) {
    std::optional<Lock> lock;
    auto options = watched();
    options.on_lost = [&](const Result& loss) {
        losses.push_back(loss);
        EXPECT_THAT(lock->acquire(), Succeeds());
    };
    lock.emplace(world.lock(options));
    EXPECT_THAT(lock->acquire(), Succeeds());
    for (const std::size_t node : {0U, 1U, 2U}) world.forget(node);
    pass(1min);
    EXPECT_THAT(losses, SizeIs(1));
    EXPECT_TRUE(lock->valid());
}

// A lock that is released before its turn to be told has come is not told of.
TEST_F(Watching, LetsTheCallbackOfOneLockReleaseAnother) {
    std::array<std::optional<Lock>, 2> locks;
    auto options = watched();
    options.on_lost = [&](const Result& loss) {
        losses.push_back(loss);
        for (auto& lock : locks) (void)lock->release();
    };
    for (auto& lock : locks) {
        lock.emplace(world.lock("resource " + std::to_string(&lock - locks.data()), options));
        EXPECT_THAT(lock->acquire(), Succeeds());
    }
    world.cut_all();
    pass(1min);
    EXPECT_THAT(losses, SizeIs(1));
}

// C8. While one loss is being told, another lock that was lost, too, is acquired anew.
TEST_F(Watching, TellsNoLossToALaterAcquisition) {
    std::array<std::optional<Lock>, 2> locks;
    auto options = watched();
    options.on_lost = [&](const Result& loss) {
        losses.push_back(loss);
        world.heal_all();
        for (auto& lock : locks) {
            if (lock->valid() || lock->lost().stop_requested()) continue;
            (void)lock->release();
            EXPECT_THAT(lock->acquire(), Succeeds());
        }
    };
    for (auto& lock : locks) {
        lock.emplace(world.lock("resource " + std::to_string(&lock - locks.data()), options));
        EXPECT_THAT(lock->acquire(), Succeeds());
    }
    world.cut_all();
    world.clock.advance(31s);
    pass(1min);
    EXPECT_THAT(losses, SizeIs(1));
    EXPECT_EQ(std::ranges::count_if(locks, [](const auto& lock) { return lock->valid(); }), 1);
}

// C8. A release() in the callback ends the acquisition that was lost and no later one, of whatever thread.
TEST_F(Watching, LetsTheCallbackReleaseWhatWasLostAndNoMore) {
    std::optional<Lock> lock;
    auto options = watched();
    options.on_lost = [&](const Result& loss) {
        losses.push_back(loss);
        world.heal_all();
        std::thread{[&] { EXPECT_THAT(lock->acquire(), Succeeds()); }}.join();
        EXPECT_THAT(lock->release(), FailsWith(Errc::not_held));
        lock->unlock();
    };
    lock.emplace(world.lock(options));
    EXPECT_THAT(lock->acquire(), Succeeds());
    world.cut_all();
    pass(5min);
    EXPECT_THAT(losses, SizeIs(1));
    EXPECT_TRUE(lock->valid()) << "and extended";
    EXPECT_THAT(lock->release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

// C2, C8. What the holder's own extension finds out is told at once, and once.
TEST_F(Watching, TellsTheLossThatTheHolderHasFound) {
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    const auto lost = lock.lost();
    pass(1s);
    for (const std::size_t node : {0U, 1U, 2U}) world.forget(node);
    EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
    EXPECT_FALSE(lock.valid());
    EXPECT_TRUE(lost.stop_requested());
    EXPECT_THAT(losses, IsEmpty()) << "in the watchdog's thread";
    pass(0s);
    ASSERT_THAT(losses, ElementsAre(FailsWith(Errc::lost)));
    EXPECT_EQ(losses[0].nodes()[1].vote, Vote::refused);
    pass(1min);
    EXPECT_THAT(losses, SizeIs(1));
}

// An Observer is told of a round in the thread that asked: a release() there must not wait for its end.
TEST_F(Watching, LetsAnObserverOfTheRoundRelease) {
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    world.round_ended = [&] { EXPECT_THAT(lock.release(), Succeeds()); };
    pass(1min);
    EXPECT_FALSE(lock.valid());
    EXPECT_TRUE(world.clean());
    EXPECT_TRUE(queue.idle());
    EXPECT_THAT(losses, IsEmpty());
}

TEST_F(Watching, LetsAnObserverOfTheRoundAcquireAnew) {
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    world.round_ended = [&] {
        EXPECT_THAT(lock.release(), Succeeds());
        EXPECT_THAT(lock.acquire(), Succeeds());
    };
    pass(5min);
    EXPECT_TRUE(lock.valid());
    EXPECT_THAT(losses, IsEmpty());
}

TEST_F(Watching, SurvivesACallbackThatThrows) {
    auto options = watched();
    options.on_lost = [](const Result&) { throw std::runtime_error("of the user's own"); };
    auto lock = world.lock(options);
    EXPECT_THAT(lock.acquire(), Succeeds());
    world.cut_all();
    pass(1min);
    EXPECT_TRUE(lock.lost().stop_requested());
}

TEST_F(Watching, StopsTheTokenBeforeTheCallback) {
    auto options = watched();
    std::stop_token lost;
    options.on_lost = [&](const Result& loss) {
        losses.push_back(loss);
        EXPECT_TRUE(lost.stop_requested());
    };
    auto lock = world.lock(options);
    EXPECT_THAT(lock.acquire(), Succeeds());
    lost = lock.lost();
    world.cut_all();
    pass(1min);
    EXPECT_THAT(losses, SizeIs(1));
}

// A Nodes of the user's own may run out of memory, or break its contract: the notice comes all the same.
TEST_F(Watching, TellsTheLossThoughNothingCanBeAsked) {
    auto lock = world.lock(watched());
    EXPECT_THAT(lock.acquire(), Succeeds());
    const auto end = end_of(lock);
    world.throws = true;
    pass(1min);
    EXPECT_THAT(losses, ElementsAre(FailsWith(Errc::lost)));
    EXPECT_LE(told_at, end);
    EXPECT_LT(turns, 100);
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost)) << "nothing is under way that it would wait for";
}

// ---- Without, and wrong use

TEST(Unwatched, IsNeverToldLost) {
    World world;
    auto lock = world.lock();
    EXPECT_FALSE(lock.lost().stop_possible());
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_FALSE(lock.lost().stop_possible());
}

struct WatchOptions : Watching {
    void expect_refusal(const LockOptions& options, const std::string& field) {
        try {
            world.lock(options);
            FAIL() << "accepted";
        } catch (const std::invalid_argument& error) {
            EXPECT_THAT(error.what(), HasSubstr(field));
        }
    }
};

TEST_F(WatchOptions, RefuseAHoldLimitThatIsNotPositive) {
    auto options = watched();
    for (const auto limit : {Clock::duration{0}, Clock::duration{-1}}) {
        options.max_hold = limit;
        expect_refusal(options, "LockOptions::max_hold");
    }
}

TEST_F(WatchOptions, RefuseACallbackThatNobodyWouldCall) {
    expect_refusal({.on_lost = [](const Result&) {}}, "LockOptions::on_lost");
}

TEST_F(WatchOptions, RefuseAWatchdogWithAnotherClock) {
    World other;
    detail::RenewalQueue stranger{other.clock};
    expect_refusal({.watchdog = &stranger}, "LockOptions::watchdog");
}

}  // namespace
}  // namespace redlock::test
