// AsyncLock in a poll() loop whose node is named by Sentinels: three real Sentinels with a master and its
// replica.
#include "live/guarantees/guarantee_world.hpp"
#include "live/scheduling_delay.hpp"
#include "loop_client.hpp"
#include "support/sentinel_group.hpp"

#include <deque>
#include <string>
#include <vector>

namespace redlock::test::async_sentinel_live_test {
namespace {

using support::SentinelGroup;

struct SentinelClient : LoopClient {
    SentinelClient(const SentinelGroup& group, milliseconds its_quarantine)
        : LoopClient{std::vector{group.uri()}, {.node_timeout = 1s, .quarantine = its_quarantine}} {}
};

// The key of one lock was replicated before the failover, and that of the other one was not.
TEST(ALoopWithSentinels, KeepsItsLocksForTheRestOfTheirTtl) {
    constexpr milliseconds ttl = 2min;  // also the quarantine
    SentinelGroup group;
    whole_since(group.servers[0], 5min);
    SentinelClient client{group, ttl};
    AsyncLock lock{client.of_loop, the_resource, no_retry(ttl)};
    AsyncLock unreplicated{client.of_loop, "unreplicated", no_retry(ttl)};
    ASSERT_THAT(client.try_acquire(lock), Succeeds());
    ASSERT_THAT(client.try_acquire(unreplicated), Succeeds());
    EXPECT_EQ(holder(group.servers[0]), lock.owner());
    ASSERT_TRUE(wait_until([&] { return holder(group.servers[1]) == lock.owner(); }));
    group.fail_over_to(group.servers[1]);
    group.take_over(group.servers[1]);
    EXPECT_TRUE(wait_until([&] { return client.extend(lock).nodes()[0].cause == Errc::quarantined; }));
    group.servers[1].command({"DEL", "unreplicated"});
    SentinelClient second{group, ttl};
    AsyncLock of_second{second.of_loop, "unreplicated", no_retry(ttl)};
    EXPECT_THAT(second.try_acquire(of_second), Reports(0, Errc::quarantined));
    SentinelClient without{group, 0ms};
    AsyncLock of_without{without.of_loop, "unreplicated", no_retry(ttl)};
    EXPECT_THAT(without.try_acquire(of_without), Succeeds()) << "as everybody would, without the quarantine";
    EXPECT_TRUE(unreplicated.valid());
    EXPECT_TRUE(lock.valid());
    whole_since(group.servers[1], 5min);  // as if the quarantine were over
    EXPECT_THAT(client.extend(lock), Succeeds());
    EXPECT_THAT(client.release(lock), Succeeds());
    EXPECT_EQ(holder(group.servers[1]), "(nil)");
    EXPECT_THAT(client.try_acquire(lock), Succeeds());
    EXPECT_EQ(holder(group.servers[1]), lock.owner());
}

// A9. Asking the Sentinels counts towards node_timeout.
TEST(ALoopWithSentinels, IsNotBlockedByFrozenSentinels) {
    constexpr auto node_timeout = 500ms;
    constexpr std::size_t many = 20;
    const RedisServer server;
    std::deque<RedisServer> sentinels;
    while (sentinels.size() < 3) sentinels.emplace_back(RedisConfig{}.sentinel_of(server.port()));
    const auto names = support::comma_list(sentinels, [](const auto& it) { return it.name(); });
    for (auto& it : sentinels) it.freeze();
    LoopClient client{std::vector{"redis+sentinel://" + names + "/mymaster"}, {.node_timeout = node_timeout}};
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
}  // namespace redlock::test::async_sentinel_live_test
