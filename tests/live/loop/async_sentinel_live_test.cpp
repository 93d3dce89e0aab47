// AsyncLock in a poll() loop whose node is named by Sentinels.
#include "live/live_world.hpp"
#include "live/scheduling_delay.hpp"
#include "loop_client.hpp"

#include <deque>
#include <string>
#include <vector>

namespace redlock::test {
namespace {

// A9. Asking the Sentinels counts towards node_timeout.
TEST(ALoopWithSentinels, IsNotBlockedByFrozenSentinels) {
    constexpr auto node_timeout = 500ms;
    constexpr std::size_t many = 20;
    const RedisServer server;
    std::deque<RedisServer> sentinels;
    while (sentinels.size() < 3) sentinels.emplace_back(RedisConfig{}.sentinel_of(server.port()));
    std::string uri = "redis+sentinel://";
    for (auto& it : sentinels) uri += (&it == &sentinels.front() ? "" : ",") + it.name();
    for (auto& it : sentinels) it.freeze();
    LoopClient client{std::vector{uri + "/mymaster"}, {.node_timeout = node_timeout}};
    LoopClient another{std::vector{server.uri()}, {.node_timeout = 5s}};
    AsyncLock other{another.of_loop, "other"};
    ASSERT_THAT(another.try_acquire(other), Succeeds());
    std::deque<AsyncLock> locks;
    std::size_t ended = 0;
    int extensions = 0;
    bool extends = false;
    TurnTimer timer;
    const auto took = own_time([&] {
        for (std::size_t i = 0; i < many; ++i)
            locks.emplace_back(client.of_loop, "many:" + std::to_string(i), no_retry())
                .try_acquire([&](const Result& it) {
                    EXPECT_THAT(it, FailsWith(Errc::no_quorum));
                    ++ended;
                });
        EXPECT_TRUE(client.run_until([&] {
            timer.turn();
            if (!std::exchange(extends, true))
                other.extend([&](const Result& it) {
                    EXPECT_THAT(it, Succeeds());
                    extends = false;
                    ++extensions;
                });
            (void)another.loop.run_once(std::chrono::steady_clock::now() + 1ms);
            return ended == many;
        }));
    });
    EXPECT_THAT(took, LastsAtMost(2 * node_timeout - 50ms));
    EXPECT_THAT(timer.longest(), LastsAtMost(node_timeout / 2)) << "nothing blocks the thread";
    EXPECT_GT(extensions, 10) << "the other loop does not wait";
    for (auto& it : sentinels) it.thaw();
    AsyncLock lock{client.of_loop, the_resource, no_retry()};
    EXPECT_TRUE(wait_until([&] { return bool{client.try_acquire(lock)}; }));
    EXPECT_EQ(holder(server), lock.owner());
}

}  // namespace
}  // namespace redlock::test
