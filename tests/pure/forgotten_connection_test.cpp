// A connection that is dead without a sign: a device on the way, such as a NAT, has forgotten it because it
// was unused for too long. The device swallows what comes.
#include "memory_loop.hpp"
#include "waiting_world.hpp"

#include <redlock/async_lock.hpp>
#include <redlock/lock.hpp>
#include <redlock/query.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>

namespace redlock::test {
namespace {

struct AForgottenConnection : Waiting {
    explicit AForgottenConnection(NodesOptions options = {.node_timeout = 50ms}) : Waiting(3, options) {}

    void forget() {
        for (std::size_t node = 0; node < size; ++node) network.server(node).forget_connections();
    }
    Lock held(milliseconds for_span, LockOptions options = {.ttl = 10min}) {
        Lock it{alice, "r", std::move(options), network.clock(), entropy};
        EXPECT_TRUE(it.acquire());
        network.pass(for_span);
        forget();
        return it;
    }
    std::size_t keys() {
        std::size_t count = 0;
        for (std::size_t node = 0; node < size; ++node)
            if (holder(node) != "(nil)") ++count;
        return count;
    }
};

TEST_F(AForgottenConnection, DoesNotLoseARelease) {
    auto lock = held(5min);
    const auto start = now();
    EXPECT_TRUE(lock.release());
    EXPECT_LE(now() - start, 50ms);
    EXPECT_EQ(keys(), 0U);
}

// Silence right after a reply mostly means that the server is slow. So the connection is kept for this
// release.
TEST_F(AForgottenConnection, IsNotUsedForTheSecondReleaseIfItWasForgottenEarly) {
    auto lock = held(2ms);
    EXPECT_EQ(lock.release().error(), Errc::no_quorum);
    EXPECT_TRUE(lock.release());
    EXPECT_EQ(keys(), 0U);
}

TEST_F(AForgottenConnection, DoesNotLoseAReleaseThatIsNotAwaited) {
    auto lock = held(5min);
    lock.unlock();
    network.pass(200ms);
    EXPECT_EQ(keys(), 0U);
}

TEST_F(AForgottenConnection, IsReplacedByALaterRoundForAReleaseThatIsNotAwaited) {
    auto lock = held(2ms);
    lock.unlock();
    network.pass(60ms);
    ASSERT_EQ(keys(), 3U);
    for (int i = 0; i < 3; ++i) {
        (void)query(alice, "another");
        network.pass(60ms);
    }
    EXPECT_EQ(keys(), 0U);
}

TEST_F(AForgottenConnection, IsReplacedByTheDestructorOfTheNodes) {
    {
        auto lock = held(2ms);
        lock.unlock();
    }
    const auto start = now();
    destroy_clients();
    EXPECT_LE(now() - start, 30ms);
    EXPECT_EQ(keys(), 0U);
}

TEST_F(AForgottenConnection, IsNotUsedForTheNextExtension) {
    auto lock = held(5min);
    EXPECT_EQ(lock.extend(10min).error(), Errc::no_quorum);
    EXPECT_TRUE(lock.extend(10min));
    EXPECT_TRUE(lock.release());
    EXPECT_EQ(keys(), 0U);
}

TEST_F(AForgottenConnection, DelaysAWaiterOnlyUntilTheRelease) {
    auto lock = held(5min, {.ttl = 10min, .fair = true});
    after(5s, [&] { (void)lock.release(); });
    bobs.emplace(this->lock(bob));
    const auto start = now();
    EXPECT_TRUE(bobs->acquire_for(1min));
    EXPECT_LE(now() - start, 6s);
}

// The listener of the waiter is forgotten, too, and its other connections.
TEST_F(AForgottenConnection, OfAWaiterDelaysItForLessThanASecond) {
    Lock lock{alice, "r", {.ttl = 10min, .fair = true}, network.clock(), entropy};
    ASSERT_TRUE(lock.acquire());
    after(5min, [&] { forget(); });
    after(5min + 5s, [&] { (void)lock.release(); });
    bobs.emplace(this->lock(bob));
    const auto start = now();
    EXPECT_TRUE(bobs->acquire_for(9min));
    EXPECT_LE(now() - start, 5min + 6s);
}

// B5. On another connection, the release could overtake the SET of a server that is frozen.
TEST_F(AForgottenConnection, MayOnlyBeLeftIfTheSetWasAnswered) {
    Lock warm{alice, "warm", {.ttl = 10min}, network.clock(), entropy};
    ASSERT_TRUE(warm.acquire());
    network.server(2).paused = true;
    const auto connections = network.server(2).connections();
    Lock lock{alice, "r", {.ttl = 10min}, network.clock(), entropy};
    ASSERT_TRUE(lock.acquire());
    network.pass(5min);
    EXPECT_TRUE(lock.release());
    EXPECT_EQ(network.server(2).connections(), connections);
    network.resume(2);
    network.pass(5ms);
    EXPECT_EQ(keys(), 0U);
}

/// All rounds share connections.
struct AForgottenSharedConnection : testing::Test, WaitingWorld {
    AForgottenSharedConnection() : WaitingWorld(3, {.node_timeout = 50ms}, 0) {}

    void hold_and_forget(milliseconds for_span) {
        ASSERT_TRUE(lock.acquire());
        network.pass(for_span);
        for (std::size_t node = 0; node < size; ++node) network.server(node).forget_connections();
    }
    void expect_no_key() {
        for (std::size_t node = 0; node < size; ++node) EXPECT_EQ(holder(node), "(nil)");
    }

    MemoryNodes& nodes = client();
    Lock lock{nodes, "r", {.ttl = 10min}, network.clock(), entropy};
};

TEST_F(AForgottenSharedConnection, DoesNotLoseARelease) {
    hold_and_forget(5min);
    const auto start = now();
    EXPECT_TRUE(lock.release());
    EXPECT_LE(now() - start, 50ms);
    expect_no_key();
}

TEST_F(AForgottenSharedConnection, DoesNotLoseAReleaseThatIsNotAwaited) {
    hold_and_forget(5min);
    lock.unlock();
    network.pass(200ms);
    expect_no_key();
}

TEST_F(AForgottenSharedConnection, IsReplacedByLaterRoundsForAReleaseThatIsNotAwaited) {
    hold_and_forget(2ms);
    lock.unlock();
    for (int i = 0; i < 3; ++i) {
        network.pass(60ms);
        (void)query(nodes, "another");
    }
    expect_no_key();
}

TEST_F(AForgottenSharedConnection, IsReplacedByTheDestructorOfTheNodes) {
    hold_and_forget(2ms);
    lock.unlock();
    destroy_clients();
    expect_no_key();
}

struct AForgottenConnectionOfALoop : testing::Test, WaitingWorld {
    void run_for(Clock::duration span) {
        const auto end = now() + span;
        while (now() < end && (loop.run_once(end) || now() < end)) {
        }
    }
    void hold_and_forget() {
        std::optional<Result> result;
        lock->acquire([&](Result it) { result = std::move(it); });
        while (!result && loop.run_once(now() + 1min)) {
        }
        ASSERT_TRUE(result && *result);
        run_for(5min);
        for (std::size_t node = 0; node < size; ++node) network.server(node).forget_connections();
    }
    void expect_no_key() {
        for (std::size_t node = 0; node < size; ++node) EXPECT_EQ(holder(node), "(nil)");
    }

    std::optional<MemoryLoopNodes> nodes{std::in_place, network, size, NodesOptions{.node_timeout = 50ms}};
    MemoryLoop loop{network};
    std::optional<AsyncNodes> of_loop{std::in_place, *nodes, loop, network.clock(), entropy};
    std::optional<AsyncLock> lock{std::in_place, *of_loop, "r", LockOptions{.ttl = 10min}};
};

TEST_F(AForgottenConnectionOfALoop, DoesNotLoseARelease) {
    hold_and_forget();
    bool released = false;
    lock->release([&](const Result& it) { released = static_cast<bool>(it); });
    run_for(50ms);
    EXPECT_TRUE(released);
    expect_no_key();
}

TEST_F(AForgottenConnectionOfALoop, DoesNotLoseTheReleaseOfALockThatIsDestroyed) {
    hold_and_forget();
    lock.reset();
    run_for(200ms);
    expect_no_key();
}

}  // namespace
}  // namespace redlock::test
