// One test for each feature, on real servers: a first run shows that they work on this machine. The other
// live tests examine faults and limits. The examples show the watchdog, the leader and Asio.
#include "guarantees/guarantee_world.hpp"
#include "loop/loop_client.hpp"

#include "support/sentinel_group.hpp"
#if defined(REDLOCK_TEST_TLS)
#include "tls/tls_world.hpp"
#endif

#include <redlock/async_lock.hpp>
#include <redlock/observer.hpp>
#include <redlock/query.hpp>
#include <redlock/semaphore.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <thread>

namespace redlock::test {
namespace {

TEST(Features, AMajoritySufficesIfOneNodeIsDown) {
    LiveWorld world{3};
    world[0].kill();
    auto mine = world.lock();
    auto other = world.lock(no_retry());
    ASSERT_THAT(mine.acquire(), Succeeds());
    EXPECT_EQ(other.acquire().error(), Errc::held_by_other);
    EXPECT_THAT(mine.extend(), Succeeds());
    EXPECT_THAT(mine.release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

TEST(Features, SeveralResourcesAreHeldTogetherOrNotAtAll) {
    LiveWorld world{3};
    Lock both{world.nodes, ResourceList{"from", "to"}, no_retry()};
    Lock one{world.nodes, "to", no_retry()};
    ASSERT_THAT(one.acquire(), Succeeds());
    EXPECT_EQ(both.acquire().error(), Errc::held_by_other);
    EXPECT_THAT(one.release(), Succeeds());
    EXPECT_THAT(both.acquire(), Succeeds());
}

TEST(Features, ReadersShareALock) {
    LiveWorld world{3};
    auto options = no_retry();
    auto writer = world.lock(options);
    options.shared = true;
    auto reader = world.lock(options);
    auto another = world.lock(options);
    ASSERT_THAT(reader.acquire(), Succeeds());
    EXPECT_THAT(another.acquire(), Succeeds());
    EXPECT_EQ(writer.acquire().error(), Errc::held_by_other);
}

TEST(Features, FairWaitersAreServedInTurn) {
    LiveWorld world{3};
    const LockOptions fair{.ttl = 1min, .retry = {.delay = 1min}, .fair = true};
    auto holder = world.lock(fair);
    ASSERT_THAT(holder.acquire(), Succeeds());
    std::atomic<int> served{0};
    const auto wait = [&](int turn) {
        auto lock = world.lock(fair);
        ASSERT_THAT(lock.acquire_for(1min), Succeeds());
        EXPECT_EQ(++served, turn);
    };
    const auto waiters = [&] { return world[0].command({"ZCARD", "{orders:42}:queue"}); };
    const std::jthread first{wait, 1};
    ASSERT_TRUE(wait_until([&] { return waiters() == "1"; }));
    const std::jthread second{wait, 2};
    ASSERT_TRUE(wait_until([&] { return waiters() == "2"; }));
    EXPECT_THAT(holder.release(), Succeeds());
}

TEST(Features, FencingTokensGrow) {
    LiveWorld world{3};
    auto lock = world.lock(LockOptions{.fencing = true});
    ASSERT_THAT(lock.acquire(), Succeeds());
    const auto before = lock.fencing_token();
    EXPECT_THAT(lock.release(), Succeeds());
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_GT(lock.fencing_token(), before);
}

TEST(Features, ANodeThatRestartedEmptyDoesNotVote) {
    QuarantineWorld world;
    world[2].restart_empty();
    EXPECT_TRUE(wait_until([&] {  // at first, the connection may be found broken
        auto lock = world.claim();
        const auto result = lock.acquire();
        return result && result.nodes()[2].cause == Errc::quarantined;
    }));
}

TEST(Features, AMinimumHoldOutlastsTheRelease) {
    LiveWorld world{3};
    auto job = world.lock(LockOptions{.ttl = 1min, .min_hold = 1min});
    ASSERT_THAT(job.acquire(), Succeeds());
    EXPECT_THAT(job.release(), Succeeds());
    auto options = no_retry();
    EXPECT_EQ(world.lock(options).acquire().error(), Errc::held_by_other);
}

TEST(Features, ASemaphoreHasAsManyHoldersAsItsLimit) {
    LiveWorld world{3};
    Semaphore one{world.nodes, "exports", 2, no_retry()};
    Semaphore two{world.nodes, "exports", 2, no_retry()};
    Semaphore three{world.nodes, "exports", 2, no_retry()};
    ASSERT_THAT(one.acquire(), Succeeds());
    ASSERT_THAT(two.acquire(), Succeeds());
    EXPECT_EQ(three.acquire().error(), Errc::held_by_other);
    EXPECT_THAT(one.release(), Succeeds());
    EXPECT_THAT(three.acquire(), Succeeds());
}

TEST(Features, AQueryNamesTheHolder) {
    LiveWorld world{3};
    auto lock = world.lock(LockOptions{.holder = "host=web1"});
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_TRUE(wait_until([&] { return query(world.nodes, the_resource).holder == "host=web1"; }));
}

/// The largest number of commands in one write, and the number of rounds.
struct CountingObserver final : Observer {
    void wrote(std::string_view, std::size_t commands, std::chrono::nanoseconds) noexcept override {
        most_commands = std::max(most_commands, commands);
    }
    void round_ended(const Command&, const Tally&, std::chrono::nanoseconds) noexcept override { ++rounds; }
    std::size_t most_commands = 0;
    std::size_t rounds = 0;
};

TEST(Features, AnEventLoopHasManyOperationsUnderWay) {
    LiveWorld world{3};
    CountingObserver observer;
    LoopClient client{world.uris(), {.node_timeout = 2s, .observer = &observer}};
    std::deque<AsyncLock> locks;
    std::size_t acquired = 0;
    for (int i = 0; i < 100; ++i)
        locks.emplace_back(client.of_loop, "job-" + std::to_string(i)).acquire([&](const Result& result) {
            acquired += result ? 1U : 0U;
        });
    EXPECT_TRUE(client.run_until([&] { return acquired == locks.size(); }));
    EXPECT_GT(observer.most_commands, 1U) << "one operation after the other";
    EXPECT_GE(observer.rounds, locks.size());
}

TEST(Features, SentinelsNameTheMaster) {
    const support::SentinelGroup group;
    RedisNodes nodes{{group.uri()}, {.node_timeout = 2s}};
    Lock lock{nodes, the_resource};
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(holder(group.servers[0]), lock.owner());
}

#if defined(REDLOCK_TEST_TLS)
using FeaturesOverTls = TlsWorld;

TEST_F(FeaturesOverTls, ALockIsAcquired) {
    const TlsServer server{good, authority};
    EXPECT_THAT(acquire_from(server.endpoint(authority)), Succeeds());
}
#endif

}  // namespace
}  // namespace redlock::test
