// One test for each feature, on real servers: a first run shows that they work on this machine. The other
// live tests examine faults and limits. The examples show the watchdog, the leader and Asio.
#include "cluster/cluster_world.hpp"
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

namespace redlock::test::features_live_test {
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

// ---- On three servers, and on a node that is a Redis Cluster

template <class World>
struct OnServersOrACluster : testing::Test {
    World world{};
};
using Worlds = testing::Types<LiveWorld, ClusterWorld>;
TYPED_TEST_SUITE(OnServersOrACluster, Worlds);

TYPED_TEST(OnServersOrACluster, SeveralResourcesAreHeldTogetherOrNotAtAll) {
    Lock both{this->world.nodes, ResourceList{"{orders}:1", "{orders}:2"}, no_retry()};
    auto one = this->world.lock("{orders}:2", no_retry());
    ASSERT_THAT(one.acquire(), Succeeds());
    EXPECT_THAT(both.acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(one.release(), Succeeds());
    ASSERT_THAT(both.acquire(), Succeeds());
    EXPECT_THAT(one.acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(both.extend(), Succeeds());
    EXPECT_THAT(both.release(), Succeeds());
    EXPECT_TRUE(this->world.clean());
}

TYPED_TEST(OnServersOrACluster, ReadersShareALock) {
    auto options = no_retry();
    auto writer = this->world.lock(the_resource, options);
    options.shared = true;
    auto reader = this->world.lock(the_resource, options);
    auto another = this->world.lock(the_resource, options);
    ASSERT_THAT(reader.acquire(), Succeeds());
    ASSERT_THAT(another.acquire(), Succeeds());
    EXPECT_THAT(writer.acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(reader.extend(), Succeeds());
    EXPECT_THAT(reader.release(), Succeeds());
    EXPECT_THAT(another.release(), Succeeds());
    EXPECT_TRUE(this->world.clean());
}

TYPED_TEST(OnServersOrACluster, AMinimumHoldOutlastsTheRelease) {
    auto job = this->world.lock(the_resource, {.ttl = 1min, .min_hold = 1min});
    ASSERT_THAT(job.acquire(), Succeeds());
    EXPECT_THAT(job.release(), Succeeds());
    EXPECT_THAT(this->world.lock(the_resource, no_retry()).acquire(), FailsWith(Errc::held_by_other));
}

TYPED_TEST(OnServersOrACluster, ASemaphoreHasAsManyHoldersAsItsLimit) {
    Semaphore one{this->world.nodes, "exports", 2, no_retry()};
    Semaphore two{this->world.nodes, "exports", 2, no_retry()};
    Semaphore three{this->world.nodes, "exports", 2, no_retry()};
    ASSERT_THAT(one.acquire(), Succeeds());
    ASSERT_THAT(two.acquire(), Succeeds());
    EXPECT_THAT(three.acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(one.release(), Succeeds());
    EXPECT_THAT(three.acquire(), Succeeds());
}

TYPED_TEST(OnServersOrACluster, AQueryShowsTheHolder) {
    auto lock = this->world.lock(the_resource, {.ttl = 1min, .holder = "host=web1"});
    ASSERT_THAT(lock.acquire(), Succeeds());
    LockStatus status;
    EXPECT_TRUE(wait_until([&] {
        status = query(this->world.nodes, the_resource);
        return status.holder == "host=web1";
    }));
    EXPECT_EQ(status.kind, LockStatus::Kind::held);
    EXPECT_EQ(status.owner, lock.owner());
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_EQ(query(this->world.nodes, the_resource).kind, LockStatus::Kind::free);
    EXPECT_TRUE(wait_until([&] { return this->world.clean(); }));
}

#if defined(REDLOCK_TEST_TLS)
using FeaturesOverTls = TlsWorld;

TEST_F(FeaturesOverTls, ALockIsAcquired) {
    const TlsServer server{good, authority};
    EXPECT_THAT(acquire_from(server.endpoint(authority)), Succeeds());
}
#endif

}  // namespace
}  // namespace redlock::test::features_live_test
