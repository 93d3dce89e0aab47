// AsyncLock in a loop in virtual time, over nodes in memory.
#include "in_a_loop.hpp"

#include "live/forked_child.hpp"

#include <redlock/async_lock.hpp>
#include <redlock/redis_nodes.hpp>
#include <redlock/watchdog.hpp>

#include "loop/context.hpp"
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

namespace redlock::test::async_lock_test {
namespace {

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
    EXPECT_THAT(world.clock.now() - start, IsBetween(200ms, 400ms));
}

// These nodes keep no queue.
TEST_F(InALoop, AFairLockWaitsForItsQueueTimeoutExceptInTryAcquire) {
    world.occupy(1h, 0, 1, 2);
    auto it = lock({.fair = true, .queue_timeout = 2s});
    const auto start = world.clock.now();
    it.try_acquire(report());
    run();
    EXPECT_EQ(world.clock.now(), start);
    it.acquire(report());
    run();
    EXPECT_EQ(world.clock.now(), start + 2s);
    EXPECT_THAT(results, ElementsAre(FailsWith(Errc::held_by_other), FailsWith(Errc::held_by_other)));
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

TEST_F(InALoop, ADestroyedLockIsReleasedAlthoughItsCompletionThrows) {
    lock().acquire([](const Result&) { throw std::runtime_error("of the user"); });
    EXPECT_THROW(run(), std::runtime_error);
    run();
    EXPECT_TRUE(world.clean());
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
    from.cancel();
    to = AsyncLock{of_loop, "another"};
    run();
    EXPECT_TRUE(world.clean());
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
    EXPECT_THAT(refusal([&] { lock({.ttl = 0ms}); }), HasSubstr("LockOptions::ttl"));
    RedisNodes with_sockets{"127.0.0.1:1"};
    EXPECT_THAT(refusal([&] { AsyncNodes(with_sockets, loop, world.clock, world.entropy); }),
                HasSubstr("not the clock of the nodes"));
    EXPECT_EQ(refusal([&] { AsyncNodes(world, loop, world.clock, world.entropy); }),
              "redlock: event_loop is in use; it must serve one AsyncNodes at a time, because ready() and "
              "wake() are for one of them");
    auto it = lock();
    EXPECT_THAT(refusal([&] { it.extend(0ms, report()); }), HasSubstr("extend: ttl"));
}

/// Nodes with which a loop makes these rounds. If they are null, there is no memory for rounds.
struct NodesWithRounds final : World {
    std::shared_ptr<loop::Rounds> rounds_in(EventLoop&, const std::shared_ptr<loop::Scheduler>&) override {
        return rounds ? rounds : throw std::bad_alloc{};
    }
    std::shared_ptr<loop::Rounds> rounds{};
};

TEST(AsyncNodes, LeaveTheLoopAloneIfTheirConstructorThrows) {
    NodesWithRounds nodes;
    VirtualLoop loop{nodes.clock};
    EXPECT_THROW((AsyncNodes{nodes, loop, nodes.clock, nodes.entropy}), std::bad_alloc);
    EXPECT_FALSE(loop.has_handler());
}

// The loop may have found an event before the descriptor was forgotten.
TEST_F(InALoop, AnEventAfterTheShutdownHasNoEffect) {
    struct LateLoop final : EventLoop {
        void watch(int, bool, bool) override {}
        void forget(int) noexcept override {}
        void wake_after(std::chrono::nanoseconds) noexcept override {}
        using EventLoop::ready, EventLoop::wake;
    } late;
    AsyncNodes of_late{world, late, world.clock, world.entropy};
    AsyncLock it{of_late, the_resource};
    it.acquire(report());
    of_late.shut_down();
    late.ready(0);
    late.wake();
    EXPECT_THAT(results, IsEmpty());
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
    waiting.extend(report());  // is refused, because the acquisition is under way
    of_loop.shut_down();
    EXPECT_FALSE(loop.run_once());
    held.acquire(report());
    EXPECT_FALSE(loop.run_once());
    EXPECT_THAT(results, IsEmpty());
    EXPECT_TRUE(held.valid());
    held = lock();
    EXPECT_EQ(world.held_by(""), 3U);
}

TEST_F(InALoop, TheCompletionOfARefusedOperationMayShutTheLoopDown) {
    auto it = lock();
    it.acquire(report());
    it.release([this](const Result&) { of_loop.shut_down(); });
    run();
    EXPECT_EQ(results.size(), 1U);
    EXPECT_TRUE(it.valid());
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

// The key of the lock is left, and expires.
TEST_F(InALoop, NodesMayThrowWhenALockIsReleasedAfterTheShutdown) {
    std::optional<AsyncLock> it{lock()};
    it->acquire(report());
    run();
    world.before_round = [](auto&&...) { throw "of the user"; };
    of_loop.shut_down();
    it.reset();
    EXPECT_FALSE(world.clean());
}

// ---- The places for rounds

struct Wish final : loop::Task {
    using Task::Task;
    void proceed() override { ++woken; }
    int woken = 0;
};

TEST(RoundPlaces, AreGivenInTheOrderOfTheWishes) {
    ManualClock clock;
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
    clients[loop::RoundPlaces::size + 1]->place.give_back();  // it does not wait any more
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
    loop::Context context{world, events, world.clock, world.entropy};
    std::vector<std::unique_ptr<loop::RoundPlaces::Place>> all;
    Wish other{context.scheduler()};
    for (std::size_t i = 0; i < loop::RoundPlaces::size; ++i) {
        all.push_back(std::make_unique<loop::RoundPlaces::Place>(context.places(), other));
        ASSERT_TRUE(all.back()->take());
    }
    const std::vector<std::string> resources{the_resource};
    const std::vector<Request> requests{{.command = {.verb = Verb::query, .resources = resources}}};
    std::vector<Tally> tallies{world.blank_tally()};
    Wish task{context.scheduler()};
    {
        loop::RoundRunner runner{context, task};
        const RoundLimits limits{.deadline = world.clock.now() + 1s};
        EXPECT_FALSE(runner.advance(requests, limits, tallies));
        while (events.run_once(world.clock.now() + 10s)) {
        }
        EXPECT_EQ(task.woken, 1);
        EXPECT_GE(world.clock.now(), limits.deadline);
        EXPECT_TRUE(runner.advance(requests, limits, tallies));
    }
    loop::RoundRunner runner{context, task};
    std::stop_source stop;
    const RoundLimits limits{.stop = stop.get_token()};
    EXPECT_FALSE(runner.advance(requests, limits, tallies));
    stop.request_stop();
    EXPECT_TRUE(runner.advance(requests, limits, tallies));
}

TEST_F(InALoop, ARoundThatThrowsIsOver) {
    struct Round final : loop::RoundInSteps {
        std::optional<Clock::time_point> advance() override { throw std::bad_alloc{}; }
    };
    struct Rounds final : loop::Rounds {
        std::unique_ptr<loop::RoundInSteps> begin(loop::Task&, std::span<const Request>, const RoundLimits&,
                                                  std::span<Tally>) override {
            return begun++ == 0 ? std::make_unique<Round>() : nullptr;
        }
        int begun = 0;
    };
    NodesWithRounds nodes;
    nodes.rounds = std::make_shared<Rounds>();
    VirtualLoop events{nodes.clock};
    loop::Context context{nodes, events, nodes.clock, nodes.entropy};
    Wish task{context.scheduler()};
    loop::RoundRunner runner{context, task};
    EXPECT_THROW((void)runner.advance({}, {}, {}), std::bad_alloc);
    EXPECT_TRUE(runner.advance({}, {}, {}));
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

    ManualClock clock;
    VirtualLoop events{clock};
    loop::Scheduler scheduler{events, clock};
    std::string calls;
};

TEST_F(SchedulerTest, CallsTheLastTaskBehindAllOthers) {
    Note last{scheduler, calls, 'z'};
    Note first{scheduler, calls, 'a'};
    Note second{scheduler, calls, 'b'};
    scheduler.set_end_of_pass(&last);
    last.wake();
    first.wake();
    second.wake();
    scheduler.run();
    EXPECT_EQ(calls, "abz");
    scheduler.set_end_of_pass(nullptr);
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
    scheduler.set_end_of_pass(&last);
    first.wake();
    queued.wake();
    due.wake_at(clock.now());
    last.wake();
    scheduler.run();
    queued.wake();
    scheduler.run();
    EXPECT_EQ(calls, "d");
    EXPECT_FALSE(events.run_once()) << "the loop is not woken any more";
    scheduler.set_end_of_pass(nullptr);
}

TEST_F(SchedulerTest, CallsATaskAtTheEarlierOfTwoInstants) {
    Note task{scheduler, calls, 'a'};
    for (const auto at : {1ms, 3ms}) {
        task.wake_at(clock.now() + at);
        task.wake_by(clock.now() + 2ms);
        clock.advance_to(clock.now() + std::min(at, 2ms));
        scheduler.run();
    }
    EXPECT_EQ(calls, "aa");
}

TEST_F(SchedulerTest, CancelsTheWakeUpWhenNothingIsLeftToDo) {
    Note task{scheduler, calls, 'a'};
    task.wake_at(clock.now() + 500ms);
    task.wake_at(Clock::never());
    scheduler.run();
    EXPECT_FALSE(events.run_once());
}

}  // namespace
}  // namespace redlock::test::async_lock_test
