// One RedisNodes and many threads (rule D9). No thread waits for the round trips of another one, and nodes
// are created and destroyed by many threads. ThreadSanitizer runs these tests, too.
#include "live/live_world.hpp"
#include "support/in_threads.hpp"

#include <atomic>
#include <thread>

namespace redlock::test::threads_live_test {
namespace {

constexpr std::size_t threads = 16;

std::string own_resource(std::size_t thread) {
    return "resource of thread " + std::to_string(thread);
}

// D9, A4. The names may still be being resolved, and some nodes are down or frozen.
TEST(ManyRedisNodes, AreCreatedAndDestroyedByManyThreads) {
    Cluster servers{4};
    auto uris = servers.uris();
    uris[0] = "localhost:" + std::to_string(servers[0].port());
    servers[2].kill();
    servers[3].freeze();
    in_threads(threads, [&](std::size_t thread) {
        for (int time = 0; time < 5; ++time) {
            RedisNodes unused{uris};
            RedisNodes nodes{
                uris, {.node_timeout = 5ms, .round = time % 2 == 0 ? Round::sequential : Round::all_at_once}};
            Lock lock{nodes, own_resource(thread), {.ttl = 1min}};
            (void)lock.try_acquire();  // two of four are no majority, so it may fail
        }
    });
    RedisNodes nodes{servers[0].uri(), servers[1].uri(),
                     servers[2].uri()};  // a machine may not know "localhost"
    Lock lock{nodes, "afterwards"};
    EXPECT_THAT(lock.acquire_for(10s), Succeeds());
}

// D9, S23. A thread that waits for a frozen node does not delay the quorum of another thread.
TEST(ThreadsWithRoundsAllAtOnce, AreNotDelayedByAThreadThatWaitsForAFrozenNode) {
    LiveWorld world{3, {.node_timeout = 20s, .round = Round::all_at_once}};
    auto lock = world.lock({.ttl = 1min});
    ASSERT_TRUE(wait_until([&] {  // from now on there is a connection to all three
        return lock.try_acquire() && count(lock.release(), Vote::granted) == 3;
    }));
    std::atomic<bool> acquired{false};
    std::atomic<bool> released{false};
    world[0].freeze();
    {
        const std::jthread waiting{[&] {
            auto another = world.lock("another", {.ttl = 1min});
            acquired = static_cast<bool>(another.try_acquire());
            (void)another.release();  // asks all three, and waits for the frozen one
            released = true;
        }};
        EXPECT_TRUE(wait_until([&] { return acquired && holder(world[1], "another") == "(nil)"; }));
        EXPECT_THAT(lock.try_acquire(), Succeeds());
        EXPECT_THAT(lock.extend(), Succeeds());
        EXPECT_FALSE(released);
        world[0].thaw();
    }
    EXPECT_THAT(lock.release(), Succeeds());
}

}  // namespace
}  // namespace redlock::test::threads_live_test
