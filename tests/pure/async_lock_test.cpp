// AsyncLock in a loop in virtual time, over nodes in memory.
#include "virtual_loop.hpp"
#include "world.hpp"

#include <redlock/async_lock.hpp>
#include <redlock/watchdog.hpp>

#include "loop/round_places.hpp"
#include "loop/scheduler.hpp"

#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct InALoop : testing::Test {
    AsyncLock lock(LockOptions options = {}) { return AsyncLock{of_loop, the_resource, std::move(options)}; }

    /// Returns a completion that stores the result.
    Completion report() {
        return [this](Result it) { results.push_back(std::move(it)); };
    }
    void run() {
        while (loop.run_once()) {
        }
    }
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

TEST_F(InALoop, RefusesWrongOptions) {
    Watchdog with_threads{world.clock};
    EXPECT_EQ(
        refusal([&] { lock({.watchdog = &with_threads}); }),
        "redlock: LockOptions::watchdog is a watchdog with threads; it must be loop_watchdog(), because "
        "the lock belongs to a loop");
    EXPECT_THAT(refusal([&] { lock({.ttl = 0ms}); }), testing::HasSubstr("LockOptions::ttl"));
    auto it = lock();
    EXPECT_THAT(refusal([&] { it.extend(0ms, report()); }), testing::HasSubstr("extend: ttl"));
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

TEST_F(InALoop, ACompletionThatOwnsTheLockIsDestroyedAtTheShutdown) {
    auto owned = std::make_shared<AsyncLock>(lock());
    owned->acquire([owned](Result) {});
    const std::weak_ptr weak{owned};
    owned.reset();
    of_loop.shut_down();
    EXPECT_TRUE(weak.expired());
    EXPECT_TRUE(world.clean());
}

// ---- The places for rounds

TEST(RoundPlaces, AreGivenInTheOrderOfTheWishes) {
    struct Wish final : loop::Task {
        using Task::Task;
        void proceed() override { ++woken; }
        int woken = 0;
    };
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

}  // namespace
}  // namespace redlock::test
