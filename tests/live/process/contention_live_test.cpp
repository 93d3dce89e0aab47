// Many clients lock one resource: their pauses differ (rule A8), and every one of them gets it in bounded
// time, also with a node down (S3).
#include "live/forked_child.hpp"
#include "live/in_threads.hpp"
#include "live/live_world.hpp"

#include <cstdint>
#include <deque>
#include <exception>
#include <set>
#include <sstream>
#include <thread>

namespace redlock::test {
namespace {

using testing::AllOf;
using testing::Gt;
using testing::Le;

// ---- Pauses

/// The system's, but it records how long the pauses are.
class RecordingClock final : public Clock {
public:
    time_point now() noexcept override { return boot_clock().now(); }
    void sleep_until(time_point until, std::stop_token stop) override {
        pauses_ += std::to_string((until - now()).count()) + ' ';
        boot_clock().sleep_until(until, std::move(stop));
    }
    const std::string& pauses() const noexcept { return pauses_; }

private:
    std::string pauses_{};
};

/// Another client holds the resource on its only node.
class OccupiedNode final : public Nodes {
public:
    OccupiedNode() : Nodes({"occupied"}) {}
    void ask(std::span<const Request> requests, const RoundLimits&, std::span<Tally> tallies) override {
        for (std::size_t i = 0; i < requests.size(); ++i) tallies[i].refuse(0);
    }
};

// A8, A6, S20: children of a server that forks have a copy of whatever state their parent had.
TEST(Pauses, OfForkedProcessesDiffer) {
    constexpr int attempts = 5;
    constexpr auto delay = 200ms;
    OccupiedNode node;
    const auto pauses = [&](Clock& clock) {
        Lock lock{node, the_resource, {.ttl = 1min, .retry = {.attempts = attempts, .delay = delay}}, clock};
        (void)lock.acquire();
    };
    pauses(boot_clock());  // randomness has been drawn: a generator of the library's own would now be copied
    std::deque<ForkedChild> children;
    for (int child = 0; child < 8; ++child)
        children.emplace_back([&](auto report) {
            RecordingClock clock;
            pauses(clock);
            report(clock.pauses());
        });
    std::set<Clock::rep> first;
    for (auto& child : children) {
        std::vector<Clock::duration> taken;
        std::istringstream numbers{child.receive()};
        for (Clock::rep pause = 0; numbers >> pause;) taken.emplace_back(pause);
        ASSERT_THAT(taken, SizeIs(attempts - 1)) << "none after the last attempt";
        // From the instant it was drawn for to the instant it began, a little of it is over.
        EXPECT_THAT(taken, Each(AllOf(Gt(delay / 2 - 20ms), Le(delay))));
        first.insert(taken.front().count());
    }
    EXPECT_THAT(first, SizeIs(8)) << "they would all come back at once";
}

// ---- Contention

class Contention : public InEachRound {
protected:
    /// Each of the clients, with connections of its own, gets the lock so many times.
    void expect_all_to_acquire(Cluster& servers, std::size_t clients, int times) {
        std::atomic<int> holds = 0;
        in_threads(clients, [&](std::size_t) {
            RedisNodes nodes{servers.uris(), {.round = GetParam()}};
            Lock lock{nodes, the_resource, {.ttl = 1s, .retry = {.delay = 10ms}}};
            for (int time = 0; time < times; ++time) {
                const auto result = lock.acquire_for(40s);
                ASSERT_THAT(result, Succeeds());
                ++holds;
                std::this_thread::sleep_for(1ms);
                (void)lock.release();
            }
        });
        EXPECT_EQ(holds, static_cast<int>(clients) * times);
    }
};

INSTANTIATE_TEST_SUITE_P(Asking, Contention, each_round(), by_round);

// S21, S22
TEST_P(Contention, OfFiveClientsLetsEachAcquireTwentyTimes) {
    Cluster servers;
    expect_all_to_acquire(servers, 5, 20);
}

// S3, A3: a client that lacks one vote must not keep the others waiting while it waits for a node that does
// not answer.
TEST_P(Contention, OfEightClientsWithAFrozenNodeAmongThreeLetsEachAcquire) {
    Cluster servers{3};
    servers[1].freeze();
    expect_all_to_acquire(servers, 8, 10);
}

TEST_P(Contention, OfEightClientsWithADeadNodeAmongThreeLetsEachAcquire) {
    Cluster servers{3};
    servers[1].kill();
    expect_all_to_acquire(servers, 8, 10);
}

// S3, A3: a majority is up as soon as the dead node is back, and what is needed is asked.
TEST_P(Contention, AsksANodeThatCameBackAtOnceWhereAnotherIsFrozen) {
    Cluster servers{3};
    RedisNodes nodes{servers.uris(), {.node_timeout = 200ms, .round = GetParam()}};
    Lock lock{nodes, the_resource, {.ttl = 10s, .retry = {.delay = 10ms}}};
    servers[2].kill();
    int failures = 0;
    EXPECT_TRUE(wait_until(
        [&] {  // until it is left alone for about a second after each
            const auto result = lock.acquire_for(10s);
            failures += result.nodes()[2].cause == Errc::connection_failed ? 1 : 0;
            return lock.release() && failures >= 8;
        },
        30s));
    servers[0].freeze();
    EXPECT_FALSE(lock.try_acquire());
    EXPECT_FALSE(lock.try_acquire());
    servers[2].restart();
    EXPECT_TRUE(lock.try_acquire() || lock.try_acquire());
    servers[0].thaw();
}

// S3: lock() waits while others hold it; that a node is down must not make it give up.
TEST_P(Contention, MakesLockWaitForTheHolderAlsoWithANodeDown) {
    LiveWorld world{5, {.round = GetParam()}};
    for (const std::size_t node : {1U, 2U, 3U}) ASSERT_EQ(occupy(world[node]), "OK");
    world[0].kill();
    std::string error;
    {
        const std::jthread waiting{[&] {
            try {
                world.lock({.ttl = 10min, .retry = {.attempts = 3, .delay = 5ms}}).lock();
            } catch (const std::exception& thrown) {
                error = thrown.what();
            }
        }};
        EXPECT_TRUE(wait_until([&] { return calls(world[1], "set") >= 20; }));
        for (const std::size_t node : {1U, 2U, 3U}) world[node].command({"DEL", the_resource});
    }
    EXPECT_THAT(error, IsEmpty());
}

}  // namespace
}  // namespace redlock::test
