// What a lock and a semaphore promise in each front, against real servers.
#include "live_fronts.hpp"
#include "support/tcp_proxy.hpp"

#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace redlock::test::fronts_live_test {
namespace {

template <class Front>
class LockOnServers : public Front {};
TYPED_TEST_SUITE(LockOnServers, Fronts);

TYPED_TEST(LockOnServers, IsAcquiredExtendedAndReleased) {
    auto lock = this->lock();
    EXPECT_FALSE(lock.valid());
    const auto acquired = lock.try_acquire();
    ASSERT_TRUE(acquired) << acquired.message();
    EXPECT_EQ(acquired.nodes().size(), 5U);
    EXPECT_TRUE(lock.valid());
    EXPECT_GT(lock.remaining(), 9s);
    EXPECT_EQ(lock.owner().size(), 40U);
    EXPECT_EQ(this->ClusterTest::keys(), 5U);
    EXPECT_TRUE(lock.extend());
    EXPECT_TRUE(lock.extend(20s));
    EXPECT_GT(lock.remaining(), 18s);
    EXPECT_EQ(lock.try_acquire().error(), Errc::already_held);
    EXPECT_TRUE(lock.release());
    EXPECT_FALSE(lock.valid());
    EXPECT_EQ(this->ClusterTest::keys(), 0U);
    EXPECT_EQ(lock.release().error(), Errc::not_held);
    EXPECT_EQ(lock.extend().error(), Errc::not_held);
}

TYPED_TEST(LockOnServers, WaitsForAThreadWithinItsTime) {
    redlock::Lock other{this->nodes, "orders:42"};
    ASSERT_TRUE(other.acquire());
    auto lock = this->lock({.retry = {.attempts = 3, .delay = 20ms}});
    EXPECT_EQ(lock.acquire().attempts(), 3);
    const auto refused = lock.acquire_for(1s);
    EXPECT_EQ(refused.error(), Errc::held_by_other);
    EXPECT_GT(refused.attempts(), 1);
    const std::jthread releases{[&] {
        std::this_thread::sleep_for(100ms);
        EXPECT_TRUE(other.release());
    }};
    const auto acquired = lock.acquire_for(std::chrono::hours::max());
    EXPECT_TRUE(acquired) << acquired.message();
}

TYPED_TEST(LockOnServers, IsReleasedWhenItIsDestroyed) {
    { ASSERT_TRUE(this->lock().acquire()); }
    EXPECT_TRUE(this->no_key_is_left());
}

// A NAT forgets the connections, and swallows what comes.
TYPED_TEST(LockOnServers, LeavesNoKeyIfItsConnectionsAreForgottenBeforeItIsDestroyed) {
    std::deque<support::TcpProxy> links;
    this->others.emplace(names_of(links, this->cluster), NodesOptions{.node_timeout = 500ms});
    {
        auto lock = this->lock_on(*this->others, {.ttl = 1h});
        ASSERT_TRUE(lock.try_acquire());
        std::this_thread::sleep_for(1100ms);  // the connections must be silent for a second
        for (auto& link : links) link.forget();
    }
    EXPECT_EQ(this->ClusterTest::keys(), 5U);
    EXPECT_TRUE(this->run_until([&] { return this->ClusterTest::keys() == 0; }));
}

TYPED_TEST(LockOnServers, IsDelayedOnceByAFrozenNode) {
    auto lock = this->lock();
    ASSERT_TRUE(lock.try_acquire());
    ASSERT_TRUE(lock.release());
    this->cluster[2].freeze();
    const auto acquired = lock.try_acquire();
    EXPECT_TRUE(acquired) << acquired.message();
    EXPECT_EQ(acquired.nodes()[2].cause, Errc::timed_out);
    EXPECT_TRUE(lock.release());
    this->cluster[2].thaw();
    EXPECT_TRUE(this->no_key_is_left());
}

TYPED_TEST(LockOnServers, NoticesThatTheServersHaveClosedItsConnections) {
    auto lock = this->lock();
    ASSERT_TRUE(lock.try_acquire());
    ASSERT_TRUE(lock.release());
    for (auto& server : this->cluster) {
        server.command({"CLIENT", "KILL", "TYPE", "normal"});
        ASSERT_TRUE(support::wait_until([&] { return server.info("clients", "connected_clients") == "1"; }));
    }
    std::this_thread::sleep_for(
        2ms);  // a connection that was used within the last millisecond is used unchecked
    const auto acquired = lock.try_acquire();
    EXPECT_TRUE(acquired) << acquired.message();
    for (const auto& node : acquired.nodes()) EXPECT_EQ(node.vote, Vote::granted) << node.cause.message();
}

TYPED_TEST(LockOnServers, IsExtendedByAWatchdogWhichReportsItsLoss) {
    std::optional<Result> loss;
    std::atomic<bool> is_lost = false;
    auto lock = this->lock({.ttl = 9s, .watchdog = this->watchdog(), .on_lost = [&](const Result& it) {
                                loss = it;
                                is_lost = true;
                            }});
    ASSERT_TRUE(lock.try_acquire());
    auto before = lock.remaining();
    EXPECT_TRUE(this->run_until([&] {
        const auto now = lock.remaining();
        return now > std::exchange(before, now);
    })) << "it is not extended";
    EXPECT_TRUE(lock.valid());
    EXPECT_FALSE(is_lost);
    const auto lost = lock.lost();
    for (auto& server : this->cluster) server.command({"DEL", "orders:42"});
    ASSERT_TRUE(this->run_until([&] { return is_lost.load(); }));
    EXPECT_EQ(loss->error(), Errc::lost);
    EXPECT_TRUE(lost.stop_requested());
    EXPECT_FALSE(lock.valid());
}

template <class Front>
class SemaphoreOnServers : public Front {};
TYPED_TEST_SUITE(SemaphoreOnServers, Fronts);

TYPED_TEST(SemaphoreOnServers, HasAsManyHoldersAsSlotsTogetherWithThreads) {
    redlock::Semaphore of_thread{this->nodes, "jobs", this->limit, {.ttl = 1min}};
    ASSERT_TRUE(of_thread.acquire());
    std::deque<decltype(this->semaphore({}))> all;
    std::set<std::size_t> slots{of_thread.slot()};
    for (int i = 0; i < 2; ++i) {
        auto& it = all.emplace_back(this->semaphore({.ttl = 1min, .fencing = true}));
        const auto acquired = it.try_acquire();
        ASSERT_TRUE(acquired) << acquired.message();
        EXPECT_GT(it.fencing_token(), 0U);
        EXPECT_EQ(it.resource(), "{jobs}:slot:" + std::to_string(it.slot()));
        slots.insert(it.slot());
    }
    EXPECT_EQ(slots.size(), this->limit);
    EXPECT_EQ(this->keys(), 15U);
    auto late = this->semaphore({.ttl = 1min});
    EXPECT_EQ(late.try_acquire().error(), Errc::held_by_other);
    EXPECT_TRUE(of_thread.release());
    EXPECT_TRUE(late.try_acquire());
    EXPECT_EQ(late.slot(), of_thread.slot());
    EXPECT_TRUE(late.extend(2min));
    EXPECT_GT(late.remaining(), 61s);
    EXPECT_TRUE(late.release());
    EXPECT_FALSE(late.valid());
    all.clear();
    EXPECT_TRUE(this->run_until([&] { return this->keys() == 0; }));
}

}  // namespace
}  // namespace redlock::test::fronts_live_test
