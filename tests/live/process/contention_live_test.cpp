// Many clients lock one resource, and each acquires it in bounded time although a node is frozen (S3).
#include "live/live_world.hpp"
#include "support/in_threads.hpp"

#include <atomic>
#include <thread>

namespace redlock::test::contention_live_test {
namespace {

class Contention : public InEachRound {};

INSTANTIATE_TEST_SUITE_P(EachRound, Contention, each_round(), by_round);

// S3, A3: a client that lacks one vote must not delay the others while it waits for a node that does not
// reply. S21, S22: the clients have separate connections, and each acquires the lock ten times.
TEST_P(Contention, LetsEachOfEightClientsAcquireWithOneOfThreeNodesFrozen) {
    Cluster servers{3};
    servers[1].freeze();
    std::atomic<int> holds = 0;
    in_threads(8, [&](std::size_t) {
        RedisNodes nodes{servers.uris(), {.round = GetParam()}};
        Lock lock{nodes, the_resource, {.ttl = 1s, .retry = {.delay = 10ms}}};
        for (int time = 0; time < 10; ++time) {
            const auto result = lock.acquire_for(40s);
            ASSERT_THAT(result, Succeeds());
            ++holds;
            std::this_thread::sleep_for(1ms);
            (void)lock.release();
        }
    });
    EXPECT_EQ(holds, 80);
}

}  // namespace
}  // namespace redlock::test::contention_live_test
