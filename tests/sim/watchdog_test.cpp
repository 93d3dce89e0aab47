// Stories of locks that a watchdog extends: the real RenewalQueue, in a fiber of each process (rules B7, C6
// to C10).
#include "staged_world.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

namespace redlock::sim {
namespace {

LockOptions watched_by(Client& client, milliseconds ttl = 1s) {
    auto options = once(ttl);
    options.watchdog = client.watchdog();
    return options;
}

/// When a loss was told, by true time, and what was said.
struct Notice {
    Instant when;
    Result loss;
};

LockOptions told_to(std::vector<Notice>& notices, StagedWorld& world, LockOptions options) {
    options.on_lost = [&](const Result& loss) { notices.push_back({world.now(), loss}); };
    return options;
}

TEST(WatchdogTest, AWatchedLockOutlivesManyTtlsWithAMinorityDown) {
    StagedWorld world{{.nodes = 5}};
    auto& alice = world.client("alice");
    auto& bob = world.client("bob");
    world.at(2s, [&] { world.crash({1, 3}); });
    alice.does([&] {
        CheckedLock lock{alice, resource, watched_by(alice)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        alice.sleep(100s);
        EXPECT_TRUE(lock.valid());
        EXPECT_FALSE(lock.lock().lost().stop_requested());
        EXPECT_THAT(lock.release(), Succeeds());
    });
    bob.does([&] {
        for (int i = 0; i < 100; ++i) {
            bob.sleep(990ms);
            CheckedLock lock{bob, resource, once(1s)};
            EXPECT_THAT(lock.acquire(), FailsWith(Errc::held_by_other));
        }
        bob.sleep(2s);
        CheckedLock lock{bob, resource, once(1s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
    });
    world.run();
    EXPECT_GT(world.checker().extensions(), 200U);
    EXPECT_THAT(world.violations(), IsEmpty());
}

// C6: the round that hangs would go on for 600 ms more than there are.
TEST(WatchdogTest, ALossIsToldInTimeWhileAMajorityHangs) {
    std::vector<Notice> notices;
    StagedWorld world{{.nodes = 3, .node_timeout = 900ms}};
    auto& alice = world.client("alice");
    world.at(100ms, [&] { world.node(0).freeze_for(10s); });
    world.at(100ms, [&] { world.node(2).freeze_for(10s); });
    alice.does([&] {
        CheckedLock lock{alice, resource, told_to(notices, world, watched_by(alice))};
        EXPECT_THAT(lock.acquire(), Succeeds());
        const auto end = world.now() + lock.remaining();
        alice.sleep(3s);
        ASSERT_EQ(notices.size(), 1U);
        EXPECT_THAT(notices.front().loss, FailsWith(Errc::lost));
        EXPECT_LT(notices.front().when, end);
        EXPECT_GT(notices.front().when, end - 20ms);
        EXPECT_FALSE(lock.valid());
    });
    world.run();
    EXPECT_THAT(world.violations(), IsEmpty());
}

TEST(WatchdogTest, ALossIsToldAtOnceWhereAMajorityHasForgottenTheKey) {
    std::vector<Notice> notices;
    StagedWorld world;
    auto& alice = world.client("alice");
    world.at(10s, [&] {
        world.node(0).flush();
        world.node(1).flush();
    });
    alice.does([&] {
        CheckedLock lock{alice, resource, told_to(notices, world, watched_by(alice, 3s))};
        EXPECT_THAT(lock.acquire(), Succeeds());
        alice.clock().sleep_until(Clock::never(), lock.lock().lost());
        EXPECT_FALSE(lock.valid());
        EXPECT_LT(world.now(), 10s + 3s / 2);
    });
    world.run();
    ASSERT_EQ(notices.size(), 1U);
    EXPECT_EQ(notices.front().loss.nodes()[0].vote, Vote::refused);
    EXPECT_THAT(world.violations(), IsEmpty());
}

// C4. The thread stalls wherever it looks at its clock, and the lock is looked at meanwhile.
TEST(WatchdogTest, AWatchdogWithoutAProcessorBringsNoLockBack) {
    std::size_t lost = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        StagedWorld world{{.seed = seed}};
        auto& alice = world.client("alice");
        alice.process().meet({.longest_pause = 3s, .stall = 0.05});
        alice.does([&] {
            CheckedLock lock{alice, resource, watched_by(alice)};
            if (!lock.acquire()) return;
            for (bool was_valid = true; world.now() < 20s; alice.sleep(7ms)) {
                const bool valid = lock.valid();
                EXPECT_TRUE(was_valid || !valid);
                lost += was_valid && !valid ? 1 : 0;
                was_valid = valid;
            }
        });
        world.run();
        EXPECT_THAT(world.violations(), IsEmpty());
    }
    EXPECT_GT(lost, 5U) << "it never stalled for long: the story was not told";
}

// C5
TEST(WatchdogTest, AMachineThatWasSuspendedHearsOfItsLossWhenItWakesUp) {
    std::vector<Notice> notices;
    StagedWorld world;
    auto& laptop = world.client("laptop");
    laptop.does([&] {
        CheckedLock lock{laptop, resource, told_to(notices, world, watched_by(laptop, 5s))};
        EXPECT_THAT(lock.acquire(), Succeeds());
        laptop.sleep(30s);
        EXPECT_TRUE(lock.valid());
        laptop.process().pause_for(1h);
        laptop.sleep(1us);
        EXPECT_FALSE(lock.valid()) << "whoever goes on first, the work or the watchdog";
        laptop.sleep(1us);
        EXPECT_EQ(notices.size(), 1U);
        EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    });
    world.run();
    EXPECT_THAT(world.violations(), IsEmpty());
}

// C7
TEST(WatchdogTest, AHoldLimitEndsTheHoldOfAStuckWorker) {
    std::vector<Notice> notices;
    StagedWorld world;
    auto& stuck = world.client("stuck");
    auto& next = world.client("next");
    stuck.does([&] {
        auto options = told_to(notices, world, watched_by(stuck));
        options.max_hold = 10s;
        CheckedLock lock{stuck, resource, options};
        EXPECT_THAT(lock.acquire(), Succeeds());
        stuck.sleep(1h);
        ASSERT_EQ(notices.size(), 1U);
        EXPECT_THAT(notices.front().loss, FailsWith(Errc::hold_limit));
        EXPECT_GT(notices.front().when, 10s);
        EXPECT_LT(notices.front().when, 11s);
    });
    next.does([&] {
        next.sleep(5s);
        CheckedLock lock{next, resource, {.ttl = 1s}};
        EXPECT_THAT(lock.acquire_for(7s), Succeeds());
        EXPECT_LT(world.now(), 12s);
    });
    world.run();
    EXPECT_THAT(world.violations(), IsEmpty());
}

// B7, C9: the release waits for the round, whose extensions are behind none of it.
TEST(WatchdogTest, AReleaseInTheMiddleOfARoundIsTheLastWord) {
    StagedWorld world{{.node_timeout = 200ms}};
    auto& alice = world.client("alice");
    world.at(300ms, [&] {
        for (const std::size_t node : {0U, 1U, 2U}) world.node(node).freeze_for(100ms);
    });
    alice.does([&] {
        CheckedLock lock{alice, resource, watched_by(alice)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        alice.sleep(380ms);
        EXPECT_THAT(lock.release(), Succeeds());
        EXPECT_EQ(world.nodes_with_key(), 0U);
        alice.sleep(5s);
    });
    world.run();
    const auto extends = [](const std::string& line) { return line.find(": extend to") != line.npos; };
    EXPECT_EQ(std::ranges::count_if(world.log().lines(), extends), 3)
        << "of the one round that was under way, or else the story was not told";
    EXPECT_THAT(world.violations(), IsEmpty());
}

// C8
TEST(WatchdogTest, TheCallbackMayReleaseTheLock) {
    StagedWorld world;
    auto& alice = world.client("alice");
    world.at(3s, [&] { world.crash({0, 1}); });
    bool released = false;
    alice.does([&] {
        CheckedLock* held = nullptr;
        auto options = watched_by(alice);
        options.on_lost = [&](const Result&) {
            EXPECT_THAT(held->release(), Not(Succeeds()));
            released = true;
        };
        CheckedLock lock{alice, resource, options};
        held = &lock;
        EXPECT_THAT(lock.acquire(), Succeeds());
        alice.sleep(10s);
    });
    world.run();
    EXPECT_TRUE(released);
    EXPECT_THAT(world.violations(), IsEmpty());
}

// C10
TEST(WatchdogTest, ManyLocksOfOneProcessAreHeldByOneWatchdog) {
    StagedWorld world;
    auto& alice = world.client("alice");
    world.at(5s, [&] { world.node(1).freeze_for(20s); });
    for (int i = 0; i < 30; ++i)
        alice.does([&alice, i] {
            alice.sleep(i * 13ms);
            CheckedLock lock{alice, "orders:" + std::to_string(i), watched_by(alice, 500ms + i * 20ms)};
            EXPECT_THAT(lock.acquire(), Succeeds());
            alice.sleep(30s);
            EXPECT_TRUE(lock.valid()) << i;
            EXPECT_THAT(lock.release(), Succeeds());
        });
    world.run();
    EXPECT_THAT(world.violations(), IsEmpty());
}

// S1
TEST(WatchdogTest, OfTwoProcessesOneOfThemPausedNeverBothHold) {
    StagedWorld world{{.rate_error = 0.005}};
    Instant alice_lost{};
    Instant bob_won{};
    auto& alice = world.client("alice");
    auto& bob = world.client("bob");
    alice.does([&] {
        CheckedLock lock{alice, resource, watched_by(alice)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        alice.clock().sleep_until(Clock::never(), lock.lock().lost());
        EXPECT_FALSE(lock.valid());
        alice_lost = world.now();
        EXPECT_THAT(lock.acquire_for(3s), FailsWith(Errc::held_by_other));
    });
    world.at(5s, [&] { alice.process().pause_for(4s); });
    bob.does([&] {
        bob.sleep(1s);
        auto options = watched_by(bob);
        options.retry = {};
        CheckedLock lock{bob, resource, options};
        EXPECT_THAT(lock.acquire_for(20s), Succeeds());
        bob_won = world.now();
        bob.sleep(10s);
        EXPECT_TRUE(lock.valid());
    });
    world.run();
    EXPECT_GE(bob_won, 5s);
    EXPECT_LT(bob_won, 7s);
    EXPECT_GE(alice_lost, 9s) << "nobody hears anything while he stands still";
    EXPECT_THAT(world.violations(), IsEmpty());
}

// What a mutex keeps a thread from, it keeps a fiber from.
TEST(WatchdogTest, AFiberWaitsForAMutexOfAnotherThatStandsStill) {
    StagedWorld world;
    std::mutex mutex;
    std::vector<std::string> diary;
    auto& alice = world.client("alice");
    alice.does([&] {
        const std::lock_guard guard{mutex};
        alice.sleep(1s);
        diary.emplace_back("first");
    });
    alice.does([&] {
        alice.sleep(1ms);
        const std::lock_guard guard{mutex};
        EXPECT_GE(world.now(), 1s);
        diary.emplace_back("second");
    });
    world.run();
    EXPECT_THAT(diary, ElementsAre("first", "second"));
}

}  // namespace
}  // namespace redlock::sim
