// Many clients lock one resource, and each of them acquires it in bounded time, even if a node is down (S3).
#include "live/in_threads.hpp"
#include "live/live_world.hpp"

#include <atomic>
#include <thread>

namespace redlock::test {
namespace {

class Contention : public InEachRound {
protected:
    /// Lets each client acquire the lock this number of times. The clients have separate connections.
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

INSTANTIATE_TEST_SUITE_P(EachRound, Contention, each_round(), by_round);

// S21, S22
TEST_P(Contention, LetsEachOfFiveClientsAcquireTwentyTimes) {
    Cluster servers;
    expect_all_to_acquire(servers, 5, 20);
}

// S3, A3: a client that lacks one vote must not delay the others while it waits for a node that does not
// reply.
TEST_P(Contention, LetsEachOfEightClientsAcquireWithOneOfThreeNodesFrozen) {
    Cluster servers{3};
    servers[1].freeze();
    expect_all_to_acquire(servers, 8, 10);
}

TEST_P(Contention, LetsEachOfEightClientsAcquireWithOneOfThreeNodesDead) {
    Cluster servers{3};
    servers[1].kill();
    expect_all_to_acquire(servers, 8, 10);
}

}  // namespace
}  // namespace redlock::test
