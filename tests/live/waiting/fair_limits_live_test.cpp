// LockOptions::fair: a stop ends the waiting at once, a refusal reports the place, and a child of fork() has
// a place of its own. The tests in tests/pure have the other limits.
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

namespace redlock::test::fair_limits_live_test {
namespace {

struct Limits : Held {
    Lock lock = world.lock(fair());

    /// It has left the queue, and nothing of it is on the other nodes.
    void expect_no_trace() {
        for (auto& server : world) {
            EXPECT_EQ(queue_length(server), 0U);
            EXPECT_EQ(test::holder(server), holder.owner());
        }
    }
};

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

// S69. A refusal reports the place, even if there is little time: for a client that has connected to no node
// before, and then for one that knows that others hold the resource. On a busy machine, most calls may have
// no time for it. Without a reserve for the last attempt, none has.
TEST_F(Limits, ARefusalAfter200MsReportsThePlace) {
    const std::string place = "held by another on [345] of 5 nodes, for at most [0-9]+ ms more, 0 in front.*";
    std::deque<TcpProxy> links;
    const auto names = names_of(links, world);
    for (auto& link : links) link.delay(2ms);
    const SchedulingDelayMonitor monitor;
    const auto before = processor_wait(world);
    std::array<int, 2> reported{};
    for (int client = 0; client < 10 || (client < 100 && std::ranges::min(reported) == 0); ++client) {
        ASSERT_THAT(holder.extend(), Succeeds());
        RedisNodes nodes{names, timeouts()};
        for (auto& of_call : reported) {
            const auto message = Lock{nodes, the_resource, fair()}.acquire_for(200ms).message();
            of_call += testing::Value(message, testing::MatchesRegex(place)) ? 1 : 0;
        }
    }
    const auto delay = monitor.delay() + processor_wait(world) - before;
    EXPECT_GE(std::ranges::min(reported), delay < 20ms ? 9 : 1) << testing::PrintToString(reported);
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

}  // namespace
}  // namespace redlock::test::fair_limits_live_test
