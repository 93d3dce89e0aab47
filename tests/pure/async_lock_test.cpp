// AsyncLock in a loop in virtual time, over nodes in memory.
#include "in_a_loop.hpp"

#include "live/forked_child.hpp"

#include <redlock/async_lock.hpp>
#include <redlock/redis_nodes.hpp>
#include <redlock/watchdog.hpp>

#include "loop/front.hpp"
#include "loop/round_places.hpp"
#include "loop/round_runner.hpp"
#include "loop/scheduler.hpp"

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

struct InALoop : testing::Test, LoopWorld {
    AsyncLock lock(LockOptions options = {}) { return AsyncLock{of_loop, the_resource, std::move(options)}; }
};

TEST_F(InALoop, CallsTheCompletionLaterInEveryCase) {
    auto it = lock();
    it.release(report());
    EXPECT_THAT(results, IsEmpty());
    run();
    it.acquire(report());
    EXPECT_EQ(results.size(), 1U);
    run();
    it.acquire(report());
    EXPECT_EQ(results.size(), 2U);
    run();
    ASSERT_EQ(results.size(), 3U);
    EXPECT_EQ(results[0].error(), Errc::not_held);
    EXPECT_FALSE(results[1].error());
    EXPECT_EQ(results[2].error(), Errc::already_held);
}

TEST_F(InALoop, AMovedFromLockIsFreeAndCannotBeAcquired) {
    auto it = lock();
    const auto next = std::move(it);
    EXPECT_FALSE(it.valid());
    EXPECT_EQ(it.remaining(), std::chrono::nanoseconds::zero());
    EXPECT_FALSE(it.lost().stop_possible());
    EXPECT_EQ(it.resource(), "");
    EXPECT_TRUE(it.resources().empty());
    EXPECT_EQ(it.owner(), "");
    EXPECT_EQ(it.fencing_token(), 0U);
    it.cancel();
    it.acquire(report());
    it.try_acquire(report());
    it.acquire_for(1s, report());
    it.extend(report());
    it.extend(10s, report());
    it.release(report());
    EXPECT_THAT(results, IsEmpty()) << "a completion is called later";
    run();
    std::vector<std::error_code> errors;
    for (const auto& result : results) errors.push_back(result.error());
    const std::error_code invalid = std::make_error_code(std::errc::invalid_argument);
    const std::error_code not_held = Errc::not_held;
    EXPECT_THAT(errors, ElementsAre(invalid, invalid, invalid, not_held, not_held, not_held));
    EXPECT_THAT(world.events(), IsEmpty());
    it = lock();
    it.acquire(report());
    run();
    EXPECT_TRUE(it.valid());
}

TEST_F(InALoop, SendsWhatALockSends) {
    auto it = lock();
    it.acquire(report());
    run();
    it.extend(report());
    run();
    it.release(report());
    run();
    const auto in_loop = world.events();
    world.forget_events();
    auto blocking = world.lock();
    EXPECT_THAT(blocking.acquire(), Succeeds());
    EXPECT_THAT(blocking.extend(), Succeeds());
    EXPECT_THAT(blocking.release(), Succeeds());
    ASSERT_EQ(in_loop.size(), world.events().size());
    EXPECT_TRUE(world.clean());
}

TEST_F(InALoop, PausesBetweenAttemptsWithoutBlocking) {
    world.occupy(10s, 0, 1, 2);
    auto it = lock({.retry = {.attempts = 3, .delay = 200ms}});
    const auto start = world.clock.now();
    it.acquire(report());
    run();
    ASSERT_EQ(results.size(), 1U);
    EXPECT_EQ(results[0].error(), Errc::held_by_other);
    EXPECT_EQ(results[0].attempts(), 3);
    EXPECT_THAT(world.clock.pauses(), IsEmpty()) << "nothing slept";
    EXPECT_GE(world.clock.now() - start, 200ms);
    EXPECT_LE(world.clock.now() - start, 400ms);
}

// These nodes keep no queue.
TEST_F(InALoop, AFairLockWaitsAsLongAsThePausesOfItsAttempts) {
    world.occupy(1h, 0, 1, 2);
    auto it = lock({.retry = {.attempts = 4, .delay = 100ms}, .fair = true});
    const auto start = world.clock.now();
    it.acquire(report());
    run();
    ASSERT_EQ(results.size(), 1U);
    EXPECT_EQ(results[0].error(), Errc::held_by_other);
    EXPECT_EQ(world.clock.now() - start, 300ms);
}

TEST_F(InALoop, AFairLockWaitsForItsQueueTimeout) {
    world.occupy(1h, 0, 1, 2);
    auto it = lock({.retry = {.attempts = 4, .delay = 100ms}, .fair = true, .queue_timeout = 2s});
    const auto start = world.clock.now();
    it.acquire(report());
    run();
    ASSERT_EQ(results.size(), 1U);
    EXPECT_EQ(results[0].error(), Errc::held_by_other);
    EXPECT_EQ(world.clock.now() - start, 2s);
}

TEST_F(InALoop, AFairLockTriesOnceWithoutWaiting) {
    world.occupy(1h, 0, 1, 2);
    auto it = lock({.retry = {.attempts = 4, .delay = 100ms}, .fair = true, .queue_timeout = 2s});
    const auto start = world.clock.now();
    it.try_acquire(report());
    run();
    ASSERT_EQ(results.size(), 1U);
    EXPECT_EQ(results[0].error(), Errc::held_by_other);
    EXPECT_EQ(world.clock.now(), start);
}

TEST_F(InALoop, StopsAtItsDeadline) {
    world.occupy(1h, 0, 1, 2);
    auto it = lock({.retry = {.delay = 10ms}});
    const auto start = world.clock.now();
    it.acquire_for(1s, report());
    run();
    ASSERT_EQ(results.size(), 1U);
    EXPECT_EQ(results[0].error(), Errc::held_by_other);
    EXPECT_GE(world.clock.now() - start, 900ms);
    EXPECT_LE(world.clock.now() - start, 1s);
}

TEST_F(InALoop, CancelEndsAPauseAtOnce) {
    world.occupy(1h, 0, 1, 2);
    auto it = lock({.retry = {.attempts = 100, .delay = 24h}});
    it.acquire(report());
    pass(1s);
    EXPECT_THAT(results, IsEmpty());
    const auto start = world.clock.now();
    it.cancel();
    run();
    ASSERT_EQ(results.size(), 1U);
    EXPECT_EQ(results[0].error(), Errc::cancelled);
    EXPECT_EQ(world.clock.now(), start);
    it.cancel();  // does nothing
    world.heal_all();
    EXPECT_EQ(world.held_by(""), 2U);
}

TEST_F(InALoop, NapsForASecondAtMost) {
    world.occupy(1h, 0, 1, 2);
    auto it = lock({.retry = {.attempts = 2, .delay = 1min}});
    it.acquire(report());
    run();
    EXPECT_GT(loop.naps, 30U);
    EXPECT_LE(loop.longest_nap, 1s);
}

TEST_F(InALoop, AsksForOneWakeUpForAllOperationsThatBegin) {
    std::vector<std::unique_ptr<AsyncLock>> locks;
    for (int i = 0; i < 10; ++i) {
        locks.push_back(std::make_unique<AsyncLock>(of_loop, "r" + std::to_string(i)));
        locks.back()->acquire(report());
    }
    EXPECT_EQ(loop.naps, 1U);
    EXPECT_EQ(loop.longest_nap, 0s);
    run();
    EXPECT_EQ(results.size(), 10U);
}

TEST_F(InALoop, HasNoTimerWhenItHasNothingToDo) {
    auto it = lock();
    it.acquire(report());
    run();
    EXPECT_TRUE(it.valid());
    EXPECT_FALSE(loop.run_once());
}

TEST_F(InALoop, TheDestructorReleasesInTheLoop) {
    {
        auto it = lock();
        it.acquire(report());
        run();
    }
    run();
    EXPECT_TRUE(world.clean());
    EXPECT_EQ(results.size(), 1U);
}

TEST_F(InALoop, TheDestructorCancelsAnAcquisitionAndReleases) {
    for (const bool contended : {false, true}) {
        if (contended) world.occupy(1h, 0, 1, 2);
        results.clear();
        {
            auto it = lock({.retry = {.attempts = 100, .delay = 1h}});
            it.acquire(report());
            if (contended) pass(1s);
            EXPECT_THAT(results, IsEmpty());
        }
        run();
        ASSERT_EQ(results.size(), 1U);
        EXPECT_EQ(results[0].error(), Errc::cancelled);
        EXPECT_EQ(world.held_by(""), contended ? 2U : 5U);
    }
}

TEST_F(InALoop, ACompletionMayDestroyTheLockAndBeginOperations) {
    auto first = std::make_unique<AsyncLock>(lock());
    AsyncLock second{of_loop, "another"};
    first->acquire([&](Result) {
        first.reset();
        second.acquire(report());
    });
    run();
    ASSERT_EQ(results.size(), 1U);
    EXPECT_TRUE(second.valid());
    EXPECT_TRUE(world.clean());
}

TEST_F(InALoop, AnExceptionOfACompletionLeavesTheOthersAlone) {
    auto first = lock();
    AsyncLock second{of_loop, "another"};
    first.acquire([](Result) { throw std::runtime_error("of the user"); });
    second.acquire(report());
    EXPECT_THROW(run(), std::runtime_error);
    run();
    EXPECT_TRUE(first.valid());
    EXPECT_EQ(results.size(), 1U);
}

TEST_F(InALoop, RefusesASecondOperation) {
    auto it = lock();
    it.acquire(report());
    it.release(report());
    run();
    ASSERT_EQ(results.size(), 2U);
    EXPECT_FALSE(results[0].error());
    EXPECT_EQ(results[1].error(), std::errc::operation_in_progress);
    EXPECT_TRUE(it.valid());
}

TEST_F(InALoop, MovesWithItsOperation) {
    auto from = lock();
    from.acquire(report());
    auto to = std::move(from);
    run();
    EXPECT_EQ(results.size(), 1U);
    EXPECT_TRUE(to.valid());
    EXPECT_FALSE(from.valid());  // NOLINT(bugprone-use-after-move)
    to = AsyncLock{of_loop, "another"};
    run();
    EXPECT_TRUE(world.clean());
}

TEST_F(InALoop, AcquiresAgainAfterTheValidityHasEnded) {
    auto it = lock({.ttl = 1s});
    it.acquire(report());
    run();
    const std::string owner{it.owner()};
    pass(2s);
    EXPECT_FALSE(it.valid());
    it.extend(report());
    run();
    it.acquire(report());
    run();
    ASSERT_EQ(results.size(), 3U);
    EXPECT_EQ(results[1].error(), Errc::lost);
    EXPECT_TRUE(it.valid());
    EXPECT_NE(it.owner(), owner);
}

// At the end of the validity, the keys still exist for the drift.
TEST_F(InALoop, AcquiringAgainReleasesTheKeysOfTheFormerLease) {
    auto it = lock({.ttl = 1s});
    it.acquire(report());
    run();
    pass(it.remaining());
    EXPECT_FALSE(it.valid());
    it.try_acquire(report());
    run();
    ASSERT_EQ(results.size(), 2U);
    EXPECT_FALSE(results[1].error());
}

// The earlier lease is over, although its release is not confirmed and there is no next one.
TEST_F(InALoop, HasNoOwnerAfterAnAcquisitionThatHasFailed) {
    auto it = lock({.retry = {.attempts = 1}, .fencing = true, .fair = true});
    it.acquire(report());
    run();
    world.cut_all();
    it.release(report());
    run();
    EXPECT_NE(it.owner(), "") << "the release can be repeated";
    it.acquire(report());
    run();
    ASSERT_EQ(results.size(), 3U);
    for (const auto i : {1U, 2U}) EXPECT_EQ(results[i].error(), Errc::no_quorum);
    EXPECT_EQ(it.owner(), "");
    EXPECT_EQ(it.fencing_token(), 0U);
}

TEST_F(InALoop, AReleaseIsNotRepeatedWhenTheValidityHasEnded) {
    auto it = lock({.ttl = 1s});
    it.acquire(report());
    run();
    world.cut(0, 1, 2);
    it.release(report());
    run();
    pass(2s);
    world.forget_events();
    it.release(report());
    run();
    ASSERT_EQ(results.size(), 3U);
    EXPECT_EQ(results[1].error(), Errc::no_quorum);
    EXPECT_EQ(results[2].error(), Errc::not_held);
    EXPECT_THAT(world.events(), IsEmpty());
}

TEST_F(InALoop, DoesNotExtendALeaseWhoseReleaseHasFailed) {
    auto it = lock();
    it.acquire(report());
    run();
    world.cut(0, 1, 2);
    it.release(report());
    run();
    world.heal_all();
    world.forget_events();
    it.extend(report());
    run();
    ASSERT_EQ(results.size(), 3U);
    EXPECT_EQ(results[2].error(), Errc::not_held);
    EXPECT_THAT(world.events(), IsEmpty());
}

TEST_F(InALoop, TheHolderDescriptionLastsAsLongAsTheLease) {
    const auto description = detail::key_of(detail::KeyKind::description, the_resource).text();
    auto it = lock({.ttl = 10s, .holder = "host 7"});
    it.acquire(report());
    run();
    pass(8s);
    it.extend(report());
    run();
    pass(8s);
    EXPECT_TRUE(it.valid());
    EXPECT_THAT(world.command(0, {"GET", description}), testing::HasSubstr("host 7"));
    it.release(report());
    run();
    EXPECT_THAT(world.command(0, {"GET", description}), Not(testing::HasSubstr("host 7")));
}

// The next waiter has died, so its ticket is dropped.
TEST_F(InALoop, TheDestructorOfAFairLockWakesTheNextWaiter) {
    const auto queue = detail::key_of(detail::KeyKind::queue, the_resource).text();
    {
        auto it = lock({.fair = true});
        it.try_acquire(report());
        run();
        for (std::size_t node = 0; node < world.size(); ++node)
            world.command(node, {"ZADD", queue, "1", "redlock:wake:dead|1"});
    }
    run();
    EXPECT_TRUE(world.clean());
    for (std::size_t node = 0; node < world.size(); ++node)
        EXPECT_EQ(world.command(node, {"EXISTS", queue}), "0");
}

TEST_F(InALoop, RefusesWrongOptions) {
    Watchdog with_threads{world.clock};
    EXPECT_EQ(
        refusal([&] { lock({.watchdog = &with_threads}); }),
        "redlock: LockOptions::watchdog is a watchdog with threads; it must be loop_watchdog(), because "
        "the lock belongs to a loop");
    EXPECT_THAT(refusal([&] { lock({.ttl = 0ms}); }), testing::HasSubstr("LockOptions::ttl"));
    RedisNodes with_sockets{"127.0.0.1:1"};
    EXPECT_THAT(refusal([&] { AsyncNodes(with_sockets, loop, world.clock, world.entropy); }),
                testing::HasSubstr("not the clock of the nodes"));
    EXPECT_EQ(refusal([&] { AsyncNodes(world, loop, world.clock, world.entropy); }),
              "redlock: event_loop is in use; it must serve one AsyncNodes at a time, because ready() and "
              "wake() are for one of them");
    auto it = lock();
    EXPECT_THAT(refusal([&] { it.extend(0ms, report()); }), testing::HasSubstr("extend: ttl"));
}

TEST_F(InALoop, AChildOfForkMayUseItsCopyOfTheLoop) {
    const test::ForkedChild child{[this](const auto& tell) {
        AsyncNodes of_child{world, loop, world.clock, world.entropy};
        AsyncLock it{of_child, the_resource};
        it.acquire(report());
        run();
        tell(results.size() == 1 && results[0] ? "held" : "not held");
    }};
    EXPECT_EQ(child.receive(), "held");
}

// ---- The watchdog

TEST_F(InALoop, TheWatchdogExtendsManyLocksInOneRound) {
    std::vector<AsyncLock> locks;
    for (int i = 0; i < 10; ++i) {
        const auto name = "lock:" + std::to_string(i);
        locks.emplace_back(of_loop, name, LockOptions{.ttl = 3s, .watchdog = loop_watchdog()});
        locks.back().acquire(report());
    }
    pass(30s);
    EXPECT_EQ(results.size(), 10U);
    for (const auto& it : locks) EXPECT_GT(it.remaining(), 1s);
    for (auto& it : locks) it.release(report());
    results.clear();
    run();
    EXPECT_EQ(results.size(), 10U);
    EXPECT_FALSE(loop.run_once());
}

TEST_F(InALoop, TheWatchdogExtendsTheHolderDescription) {
    const auto description = detail::key_of(detail::KeyKind::description, the_resource).text();
    auto it = lock({.ttl = 10s, .holder = "host 7", .watchdog = loop_watchdog()});
    it.acquire(report());
    pass(1min);
    EXPECT_TRUE(it.valid());
    EXPECT_THAT(world.command(0, {"GET", description}), testing::HasSubstr("host 7"));
}

// A loop that runs until it has nothing to do would otherwise run for a third of the ttl longer.
TEST_F(InALoop, TheWatchdogWaitsForNothingAfterTheRelease) {
    auto it = lock({.ttl = 1min, .watchdog = loop_watchdog()});
    it.acquire(report());
    pass(1ms);
    const auto start = world.clock.now();
    it.release(report());
    run();
    EXPECT_EQ(results.size(), 2U);
    EXPECT_LT(world.clock.now() - start, 1s);
}

TEST_F(InALoop, TheWatchdogReportsALossBeforeTheValidityEnds) {
    std::vector<Result> losses;
    auto it = lock({.ttl = 3s, .watchdog = loop_watchdog(), .on_lost = [&](const Result& loss) {
                        losses.push_back(loss);
                    }});
    it.acquire(report());
    pass(1ms);
    const auto lost = it.lost();
    const auto start = world.clock.now();
    world.cut(0, 1, 2);
    while (losses.empty() && loop.run_once()) {
    }
    ASSERT_EQ(losses.size(), 1U);
    EXPECT_EQ(losses[0].error(), Errc::lost);
    EXPECT_TRUE(lost.stop_requested());
    EXPECT_FALSE(it.valid());
    EXPECT_LT(world.clock.now() - start, 3s);
    EXPECT_GT(world.clock.now() - start, 2900ms);
}

TEST_F(InALoop, TheWatchdogStopsAfterMaxHold) {
    std::vector<Result> losses;
    auto it =
        lock({.ttl = 3s, .watchdog = loop_watchdog(), .max_hold = 10s, .on_lost = [&](const Result& loss) {
                  losses.push_back(loss);
              }});
    it.acquire(report());
    pass(20s);
    ASSERT_EQ(losses.size(), 1U);
    EXPECT_EQ(losses[0].error(), Errc::hold_limit);
}

TEST_F(InALoop, OnLostMayReleaseAndDestroyTheLock) {
    for (const bool destroys : {false, true}) {
        world.heal_all();
        std::optional<AsyncLock> it;
        it.emplace(of_loop, "lock:" + std::to_string(destroys),
                   LockOptions{.ttl = 3s, .watchdog = loop_watchdog(), .on_lost = [&](const Result&) {
                                   if (destroys)
                                       it.reset();
                                   else
                                       it->release(report());
                               }});
        it->acquire(report());
        pass(1ms);
        world.cut(0, 1, 2);
        pass(10s);
        EXPECT_EQ(it.has_value(), !destroys);
    }
    ASSERT_EQ(results.size(), 3U);
    EXPECT_EQ(results[1].error(), Errc::lost);
}

// The number of the lost acquisition says nothing about another lock.
TEST_F(InALoop, OnLostMayReleaseAnotherLock) {
    AsyncLock other{of_loop, "other", {.ttl = 1h}};
    const auto release_other = [&](const Result&) {
        world.heal_all();
        other.release(report());
    };
    auto it = lock({.ttl = 3s, .watchdog = loop_watchdog(), .on_lost = release_other});
    it.acquire(report());
    other.acquire(report());
    pass(1ms);
    other.release(report());
    pass(1ms);
    other.acquire(report());
    pass(1ms);
    world.cut(0, 1, 2);
    pass(10s);
    ASSERT_EQ(results.size(), 5U);
    EXPECT_FALSE(results[4].error());
    EXPECT_FALSE(other.valid());
}

TEST_F(InALoop, AnExtensionThatFindsTheLossReportsIt) {
    std::vector<Result> losses;
    auto it = lock({.ttl = 30s, .watchdog = loop_watchdog(), .on_lost = [&](const Result& loss) {
                        losses.push_back(loss);
                    }});
    it.acquire(report());
    pass(1s);
    for (std::size_t node = 0; node < world.size(); ++node) world.command(node, {"DEL", the_resource});
    it.extend(report());
    pass(100ms);
    ASSERT_EQ(results.size(), 2U);
    EXPECT_EQ(results[1].error(), Errc::lost);
    EXPECT_EQ(losses.size(), 1U);
}

// The callback runs inside AsyncLock::extend(), because these nodes answer at once.
TEST_F(InALoop, ACallbackOfTheLossMayShutTheLoopDownAndDestroyTheLock) {
    auto it = std::make_unique<AsyncLock>(lock({.watchdog = loop_watchdog()}));
    it->acquire(report());
    pass(1s);
    world.forget(0, 1, 2);
    const std::stop_callback on_stop{it->lost(), [&] {
                                         of_loop.shut_down();
                                         it.reset();
                                     }};
    it->extend(report());
    EXPECT_FALSE(it);
    EXPECT_EQ(results.size(), 1U);
    EXPECT_TRUE(world.clean());
}

TEST_F(InALoop, ALeaseWhoseLossWasReportedIsNotExtended) {
    std::optional<AsyncLock> it;
    const auto on_lost = [&](const Result&) {
        world.heal_all();
        world.forget_events();
        it->extend(report());
    };
    it.emplace(of_loop, the_resource,
               LockOptions{.ttl = 3s, .watchdog = loop_watchdog(), .margin = 500ms, .on_lost = on_lost});
    it->acquire(report());
    pass(1ms);
    world.cut(0, 1, 2);
    pass(10s);
    ASSERT_EQ(results.size(), 2U);
    EXPECT_EQ(results[1].error(), Errc::lost);
    EXPECT_THAT(world.events(), IsEmpty());
}

/// Nodes whose extensions throw for a while.
struct NodesWithoutMemory final : World {
    using World::ask;
    void ask(std::span<const Request> requests, const RoundLimits& limits,
             std::span<Tally> tallies) override {
        if (requests.front().command.verb == Verb::compare_and_expire && clock.now() < end) {
            if (++failures > 100) throw std::runtime_error("100 extensions without a pause");
            throw std::bad_alloc{};
        }
        World::ask(requests, limits, tallies);
    }
    Clock::time_point end{};
    int failures = 0;
};

TEST(InALoopWithoutMemory, TheWatchdogExtendsAgainAfterAPause) {
    NodesWithoutMemory nodes;
    VirtualLoop loop{nodes.clock};
    AsyncNodes of_loop{nodes, loop, nodes.clock, nodes.entropy};
    AsyncLock lock{of_loop, the_resource, {.ttl = 3s, .watchdog = loop_watchdog()}};
    lock.acquire([](const Result& it) { EXPECT_THAT(it, Succeeds()); });
    const auto begin = nodes.clock.now();
    nodes.end = begin + 2s;
    while (nodes.failures <= 100 && loop.run_once(begin + 10s)) {
    }
    EXPECT_GE(nodes.failures, 2);
    EXPECT_LE(nodes.failures, 20);
    EXPECT_TRUE(lock.valid());
}

// ---- The end of the loop

TEST_F(InALoop, TheShutdownCallsNoCompletionAndReleases) {
    world.occupy(1h, 0, 1);
    auto held = lock({.ttl = 1min});
    held.acquire(report());
    run();
    ASSERT_TRUE(held.valid());
    auto waiting = lock({.retry = {.attempts = 100, .delay = 1h}});
    waiting.acquire(report());
    pass(1s);
    results.clear();
    of_loop.shut_down();
    EXPECT_FALSE(loop.run_once());
    held.acquire(report());
    EXPECT_FALSE(loop.run_once());
    EXPECT_THAT(results, IsEmpty());
    EXPECT_TRUE(held.valid());
    held = lock();
    EXPECT_EQ(world.held_by(""), 3U);
}

TEST_F(InALoop, NoOperationBeginsAfterTheShutdown) {
    auto it = lock();
    of_loop.shut_down();
    it.acquire(report());
    EXPECT_FALSE(loop.run_once());
    EXPECT_THAT(world.events(), IsEmpty());
    EXPECT_THAT(results, IsEmpty());
}

// It is not extended any more. The validity ends later.
TEST_F(InALoop, TheShutdownRequestsAStopOnTheLossOfAWatchedLock) {
    auto watched = lock({.ttl = 1min, .watchdog = loop_watchdog()});
    watched.acquire(report());
    auto other = AsyncLock{of_loop, "other", {.ttl = 1min}};
    other.acquire(report());
    auto released = AsyncLock{of_loop, "released", {.ttl = 1min, .watchdog = loop_watchdog()}};
    released.acquire(report());
    pass(1s);
    released.release(report());
    pass(1s);
    int stops = 0;
    const std::stop_callback on_stop{watched.lost(), [&] { ++stops; }};
    of_loop.shut_down();
    EXPECT_EQ(stops, 1);
    EXPECT_TRUE(watched.valid());
    EXPECT_FALSE(other.lost().stop_requested());
    EXPECT_FALSE(released.lost().stop_requested());
}

// The holder has ended the lock, although no majority has confirmed it.
TEST_F(InALoop, TheShutdownRequestsNoStopAfterAReleaseThatHasFailed) {
    auto it = lock({.ttl = 1min, .watchdog = loop_watchdog()});
    it.acquire(report());
    pass(1s);
    const auto lost = it.lost();
    world.cut(0, 1, 2);
    it.release(report());
    pass(1s);
    ASSERT_EQ(results.size(), 2U);
    EXPECT_EQ(results[1].error(), Errc::no_quorum);
    of_loop.shut_down();
    EXPECT_FALSE(lost.stop_requested());
}

TEST_F(InALoop, ACallbackOfTheLossMayDestroyTheLockAtTheShutdown) {
    std::optional<AsyncLock> it{lock({.ttl = 1min, .watchdog = loop_watchdog()})};
    it->acquire(report());
    pass(1s);
    const std::stop_callback on_stop{it->lost(), [&] { it.reset(); }};
    of_loop.shut_down();
    EXPECT_FALSE(it);
    EXPECT_TRUE(world.clean());
}

TEST_F(InALoop, ACompletionThatOwnsTheLockIsDestroyedAtTheShutdown) {
    auto owned = std::make_shared<AsyncLock>(lock());
    owned->acquire([owned](Result) {});
    const std::weak_ptr weak{owned};
    owned.reset();
    of_loop.shut_down();
    EXPECT_TRUE(weak.expired());
    EXPECT_TRUE(world.clean());
}

TEST_F(InALoop, ALockThatWasDestroyedWhenItWasJustAcquiredIsReleasedAtTheShutdown) {
    {
        auto destroyed = lock();
        destroyed.acquire(report());
    }
    of_loop.shut_down();
    EXPECT_THAT(results, IsEmpty());
    EXPECT_TRUE(world.clean());
}

// ---- The places for rounds

struct Wish final : loop::Task {
    using Task::Task;
    void proceed() override { ++woken; }
    int woken = 0;
};

TEST(RoundPlaces, AreGivenInTheOrderOfTheWishes) {
    EventLog log;
    ManualClock clock{log};
    VirtualLoop events{clock};
    loop::Scheduler scheduler{events, clock};
    loop::RoundPlaces places;
    struct Client {
        Client(loop::RoundPlaces& all, loop::Scheduler& of) : task(of), place(all, task) {}
        Wish task;
        loop::RoundPlaces::Place place;
    };
    std::vector<std::unique_ptr<Client>> clients;
    for (std::size_t i = 0; i < loop::RoundPlaces::size + 3; ++i) {
        clients.push_back(std::make_unique<Client>(places, scheduler));
        EXPECT_EQ(clients.back()->place.take(), i < loop::RoundPlaces::size);
    }
    auto& first = *clients[loop::RoundPlaces::size];
    auto& third = *clients[loop::RoundPlaces::size + 2];
    clients[0].reset();
    EXPECT_TRUE(first.place.take());
    clients[loop::RoundPlaces::size + 1].reset();  // it does not wait any more
    clients[1]->place.give_back();
    EXPECT_TRUE(third.place.take());
    scheduler.run();
    EXPECT_EQ(first.task.woken, 1);
    EXPECT_EQ(third.task.woken, 1);
    clients[2]->place.give_back();
    EXPECT_TRUE(clients[1]->place.take());
}

TEST_F(InALoop, ARoundWaitsForAPlaceUntilItsDeadlineOrAStop) {
    VirtualLoop events{world.clock};
    loop::Front front{world, events, world.clock, world.entropy};
    std::vector<std::unique_ptr<loop::RoundPlaces::Place>> all;
    Wish other{front.scheduler()};
    for (std::size_t i = 0; i < loop::RoundPlaces::size; ++i) {
        all.push_back(std::make_unique<loop::RoundPlaces::Place>(front.places(), other));
        ASSERT_TRUE(all.back()->take());
    }
    const std::vector<std::string> resources{the_resource};
    const std::vector<Request> requests{{.command = {.verb = Verb::query, .resources = resources}}};
    std::vector<Tally> tallies{world.blank_tally()};
    Wish task{front.scheduler()};
    {
        loop::RoundRunner runner{front, task};
        const RoundLimits limits{.deadline = world.clock.now() + 1s};
        EXPECT_FALSE(runner.advance(requests, limits, tallies));
        while (events.run_once(world.clock.now() + 10s)) {
        }
        EXPECT_EQ(task.woken, 1);
        EXPECT_GE(world.clock.now(), limits.deadline);
        EXPECT_TRUE(runner.advance(requests, limits, tallies));
    }
    loop::RoundRunner runner{front, task};
    std::stop_source stop;
    const RoundLimits limits{.stop = stop.get_token()};
    EXPECT_FALSE(runner.advance(requests, limits, tallies));
    stop.request_stop();
    EXPECT_TRUE(runner.advance(requests, limits, tallies));
}

// ---- The tasks

struct SchedulerTest : testing::Test {
    /// A task that notes its calls, and wakes itself again for the first ten times.
    struct Note final : loop::Task {
        Note(loop::Scheduler& of, std::string& all, char letter, bool again = false)
            : Task(of), calls(all), name(letter), wakes_itself(again) {}
        void proceed() override {
            calls += name;
            if (wakes_itself && calls.size() < 10) wake();
        }
        std::string& calls;
        const char name;
        const bool wakes_itself;
    };

    EventLog log;
    ManualClock clock{log};
    VirtualLoop events{clock};
    loop::Scheduler scheduler{events, clock};
    std::string calls;
};

TEST_F(SchedulerTest, CallsTheLastTaskBehindAllOthers) {
    Note last{scheduler, calls, 'z'};
    Note first{scheduler, calls, 'a'};
    Note second{scheduler, calls, 'b'};
    scheduler.set_last(&last);
    last.wake();
    first.wake();
    second.wake();
    scheduler.run();
    EXPECT_EQ(calls, "abz");
    scheduler.set_last(nullptr);
}

TEST_F(SchedulerTest, CallsATaskThatWakesItselfInTheNextTurn) {
    Note task{scheduler, calls, 'a', true};
    task.wake();
    scheduler.run();
    EXPECT_EQ(calls, "a");
    scheduler.run();
    EXPECT_EQ(calls, "aa");
}

/// A task that acts when it is called.
struct Acts final : loop::Task {
    Acts(loop::Scheduler& of, std::function<void()> act) : Task(of), action(std::move(act)) {}
    void proceed() override { action(); }
    const std::function<void()> action;
};

// A completion can shut the loop down while others are waiting for their turn.
TEST_F(SchedulerTest, CallsNoTaskAfterItWasDetached) {
    Acts first{scheduler, [this] {
                   calls += 'd';
                   scheduler.detach();
               }};
    Note queued{scheduler, calls, 'a'};
    Note due{scheduler, calls, 'b'};
    Note last{scheduler, calls, 'z'};
    scheduler.set_last(&last);
    first.wake();
    queued.wake();
    due.wake_at(clock.now());
    last.wake();
    scheduler.run();
    queued.wake();
    scheduler.run();
    EXPECT_EQ(calls, "d");
    EXPECT_FALSE(events.run_once()) << "the loop is not woken any more";
    scheduler.set_last(nullptr);
}

TEST_F(SchedulerTest, CancelsTheWakeUpWhenNothingIsLeftToDo) {
    Note task{scheduler, calls, 'a'};
    task.wake_at(clock.now() + 500ms);
    task.wake_at(Clock::never());
    scheduler.run();
    EXPECT_FALSE(events.run_once());
}

}  // namespace
}  // namespace redlock::test
