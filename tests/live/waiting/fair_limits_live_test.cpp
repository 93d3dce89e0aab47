// LockOptions::fair: what ends the waiting before it is its turn: a deadline, a stop_token, the end of the
// attempts; and what becomes of it in a child of fork().
#include "waiting_world.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace redlock::test {
namespace {

struct Limits : testing::Test {
    LiveWorld world{5, timeouts()};
    Lock holder = world.lock(fair());
    Lock lock = world.lock(fair());

    void SetUp() override {
        ASSERT_TRUE(world.warm_up());
        ASSERT_THAT(holder.acquire(), Succeeds());
    }

    /// It has left the queue, and nothing of it is on the other nodes.
    void expect_no_trace() {
        for (auto& server : world) {
            EXPECT_EQ(queue_length(server), 0U);
            EXPECT_EQ(holder_of(server), holder.owner());
        }
    }
    static std::string holder_of(const RedisServer& server) { return test::holder(server); }
};

TEST_F(Limits, ADeadlineEndsTheWaiting) {
    Result result{std::error_code{}};
    const auto took = time_taken([&] { result = lock.acquire_for(700ms); });
    EXPECT_THAT(result, FailsWith(Errc::held_by_other));
    EXPECT_THAT(took, LastsAtLeast(300ms));
    EXPECT_THAT(took, LastsAtMost(700ms + timeouts().node_timeout + slack));
    expect_no_trace();
}

// Until it was refused it has tried until shortly before the deadline: what is released late is its own.
TEST_F(Limits, AReleaseNearTheDeadlineIsNotTooLate) {
    int held = 0;
    for (int i = 0; i < 8 && held == 0; ++i) {  // a busy machine makes it too late
        std::jthread waiter{[&] { held += lock.acquire_for(1s) ? 1 : 0; }};
        ASSERT_TRUE(queued(world[0], 1));
        boot_clock().sleep_until(now() + 700ms, {});
        (void)holder.release();
        waiter.join();
        lock.unlock();
        ASSERT_THAT(holder.acquire_for(50s), Succeeds());
    }
    EXPECT_GT(held, 0);
}

// What stands there expires shortly before the deadline.
TEST_F(Limits, AnExpiryNearTheDeadlineIsNotTooLate) {
    ASSERT_THAT(holder.release(), Succeeds());
    auto dying = world.lock(no_retry(2s));  // of another kind: its end wakes nobody
    int held = 0;
    for (int i = 0; i < 8 && held == 0; ++i) {
        ASSERT_TRUE(wait_until([&] { return dying.try_lock(); }));
        held += lock.acquire_for(2500ms) ? 1 : 0;
        lock.unlock();
        ASSERT_TRUE(wait_until([&] { return world.clean(); }));
    }
    EXPECT_GT(held, 0);
}

TEST_F(Limits, ADeadlineOfNowAllowsOneAttempt) {
    EXPECT_FALSE(lock.acquire_for(0s));
    EXPECT_FALSE(lock.try_acquire());
    EXPECT_EQ(calls(world[0], "subscribe"), 0U) << "they do not wait in the queue";
    expect_no_trace();
}

// At once, and not when the waiter would have asked next.
TEST_F(Limits, AStopTokenEndsTheWaiting) {
    std::stop_source stop;
    Result result{std::error_code{}};
    Clock::time_point ended;
    std::jthread waiter{[&] {
        result = lock.acquire_for(50s, stop.get_token());
        ended = now();
    }};
    ASSERT_TRUE(queued(world[0], 1));
    const auto asked = calls(world[0], "pexpire");
    ASSERT_TRUE(wait_until([&] { return calls(world[0], "pexpire") > asked; })) << "it has just asked";
    const auto stopped = now();
    stop.request_stop();
    waiter.join();
    EXPECT_THAT(result, FailsWith(Errc::cancelled));
    expect_delay("stop_token", ended - stopped, 0ms);
    expect_no_trace();
}

// Many times, that is: faster than half of what it sleeps at least.
TEST_F(Limits, AStopTokenEndsTheWaitingWithoutAPoll) {
    auto fastest = Clock::duration::max();
    for (int i = 0; i < 8; ++i) {
        std::stop_source stop;
        Clock::time_point ended;
        std::jthread waiter{[&] {
            EXPECT_FALSE(lock.acquire_for(50s, stop.get_token()));
            ended = now();
        }};
        ASSERT_TRUE(queued(world[0], 1));
        const auto stopped = now();
        stop.request_stop();
        waiter.join();
        fastest = std::min(fastest, ended - stopped);
    }
    EXPECT_THAT(fastest, LastsAtMost(poll_interval / 2));
    expect_no_trace();
}

// One that leaves may have been woken already: the next one is.
TEST_F(Limits, AWaiterThatLeavesWakesTheNext) {
    std::stop_source stop;
    std::jthread leaving{[&] { (void)lock.acquire_for(50s, stop.get_token()); }};
    ASSERT_TRUE(queued(world[0], 1));
    Waiters waiters{world[0], world.uris(), 1};
    std::jthread release{[&] { EXPECT_THAT(holder.release(), Succeeds()); }};
    const auto stopped = now();
    stop.request_stop();
    leaving.join();
    release.join();
    lock.unlock();  // it may have been faster
    expect_delay("one that was woken leaves", waiters[0].held_at() - stopped, 2 * poll_interval);
}

// acquire() waits for as long as the pauses between its attempts would last.
TEST_F(Limits, TheNumberOfAttemptsLimitsTheTimeInTheQueue) {
    auto short_options = fair();
    short_options.retry = {.attempts = 3, .delay = 200ms};
    auto waiter = world.lock(short_options);
    Result result{std::error_code{}};
    const auto took = time_taken([&] { result = waiter.acquire(); });
    EXPECT_THAT(result, FailsWith(Errc::held_by_other));
    EXPECT_THAT(took, LastsAtLeast(390ms));
    EXPECT_THAT(took, LastsAtMost(400ms + slack));
    expect_no_trace();
}

TEST_F(Limits, LockWaitsWithoutALimit) {
    std::jthread waiter{[&] { lock.lock(); }};
    ASSERT_TRUE(queued(world[0], 1));
    EXPECT_THAT(holder.release(), Succeeds());
    waiter.join();
    EXPECT_TRUE(lock.valid());
}

// S69. How long at most, and how many are in front.
TEST_F(Limits, ARefusalReportsThePlace) {
    Waiters others{world[0], world.uris(), 2};
    const auto result = lock.acquire_for(500ms);
    ASSERT_THAT(result, FailsWith(Errc::held_by_other));
    ASSERT_TRUE(result.place());
    EXPECT_EQ(result.place()->in_front, 2U);
    EXPECT_EQ(result.place()->held, QueuePlace::Held::by_holder);
    EXPECT_THAT(result.place()->held_for, LastsAtMost(1min));
    EXPECT_THAT(result.place()->held_for, LastsAtLeast(30s));
    EXPECT_THAT(result.message(), testing::MatchesRegex("held by another on [345] of 5 nodes, for at most "
                                                        "[0-9]+ ms more, 2 in front.*"));
    EXPECT_THAT(holder.release(), Succeeds());
    EXPECT_FALSE(lock.try_acquire().place()) << "it has not waited";
}

// S69. The same if there is little time: for a client that has connected to no node before, and then for one
// that knows that others hold the resource. On a busy machine, most calls may have no time for it. Without a
// reserve for the last attempt, none has.
TEST_F(Limits, ARefusalAfter200MsReportsThePlace) {
    const std::string place = "held by another on [345] of 5 nodes, for at most [0-9]+ ms more, 0 in front.*";
    std::deque<TcpProxy> links;
    std::vector<std::string> names;
    for (auto& server : world) names.push_back(links.emplace_back(server.port()).name());
    for (auto& link : links) link.delay(2ms);
    const SchedulingDelayMonitor monitor;
    std::array<int, 2> reported{};
    for (int client = 0; client < 10 || (client < 100 && std::ranges::min(reported) == 0); ++client) {
        ASSERT_THAT(holder.extend(), Succeeds());
        RedisNodes nodes{names, timeouts()};
        for (auto& of_call : reported) {
            const auto message = Lock{nodes, the_resource, fair()}.acquire_for(200ms).message();
            of_call += testing::Value(message, testing::MatchesRegex(place)) ? 1 : 0;
        }
    }
    EXPECT_GE(std::ranges::min(reported), monitor.delay() < 100ms ? 9 : 1)
        << testing::PrintToString(reported);
}

// ---- The end of the process

// It is destroyed after the thread_local objects of the main thread. The first release creates those that a
// release uses.
TEST(StaticFairLock, IsReleasedAtTheExitOfTheProcess) {
    LiveWorld world{3, timeouts()};
    ForkedChild child{[&](auto report) {
        static RedisNodes nodes{world.uris(), timeouts()};
        static Watchdog watchdog;
        auto options = fair();
        options.watchdog = &watchdog;
        static Lock lock{nodes, std::string(100, 'r'), options};
        report(lock.acquire().message());
        report(lock.release().message());
        report(lock.acquire().message());
        std::exit(0);
    }};
    for (int i = 0; i < 3; ++i) EXPECT_THAT(child.receive(), testing::StartsWith("ok"));
    EXPECT_EQ(child.wait(), 0);
    EXPECT_TRUE(world.clean());
}

// ---- fork()

// A child has connections of its own, also to wait at, and leaves its parent's place alone.
TEST_F(Limits, AChildHasItsOwnPlace) {
    std::jthread waiter{[&] { EXPECT_THAT(lock.acquire_for(50s), Succeeds()); }};
    ASSERT_TRUE(queued(world[0], 1));
    ForkedChild child{[&](auto report) {
        auto mine = world.lock(fair());
        report(mine.acquire_for(50s).message());
    }};
    ASSERT_TRUE(queued(world[0], 2));
    EXPECT_EQ(calls(world[0], "subscribe"), 2U);
    EXPECT_THAT(holder.release(), Succeeds());
    waiter.join();
    EXPECT_TRUE(lock.valid());
    EXPECT_TRUE(queued(world[0], 1)) << "the child still waits";
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_THAT(child.receive(), testing::StartsWith("ok"));
    EXPECT_EQ(child.wait(), 0);
}

// The end of a child takes nothing with it that its parent waits at.
TEST_F(Limits, TheEndOfAChildDoesNotAffectItsParent) {
    std::jthread waiter{[&] { EXPECT_THAT(lock.acquire_for(50s), Succeeds()); }};
    ASSERT_TRUE(queued(world[0], 1));
    ForkedChild child{[&](auto report) { report(std::to_string(holder.valid())); }};
    EXPECT_EQ(child.receive(), "0");
    EXPECT_EQ(child.wait(), 0);
    EXPECT_TRUE(queued(world[0], 1));
    const auto released = now();
    EXPECT_THAT(holder.release(), Succeeds());
    waiter.join();
    expect_delay("release after a child's end", now() - released, 0ms);
}

}  // namespace
}  // namespace redlock::test
