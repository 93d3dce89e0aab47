// The descriptions of the holders (LockOptions::holder), which are keys beside the locks, on a node that
// Sentinels name. A connection without news for a second may lead to a former master by then.
#include "guarantee_world.hpp"
#include "live/in_threads.hpp"

#include "support/sentinel_group.hpp"

#include <redlock/observer.hpp>

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

namespace redlock::test {
namespace {

/// Counts the connections that have ended. A description that is lost with its connection is not written
/// again.
struct Disconnections final : Observer {
    void disconnected(std::string_view, std::error_code, std::string_view) noexcept override { ++count; }
    std::atomic<std::size_t> count = 0;
};

struct DescribedWorld : support::SentinelGroup {
    Lock lock(const std::string& resource) {
        return Lock{nodes, resource, {.ttl = 10min, .retry = {.attempts = 1}, .holder = "web1"}};
    }
    bool describes(const std::string& resource) const {
        return servers[0].command({"EXISTS", "{" + resource + "}:holder"}) == "1";
    }
    /// Waits until the server has no key any more: neither a lock nor a description.
    bool is_empty() const {
        return wait_until([&] { return servers[0].command({"DBSIZE"}) == "0"; });
    }

    Disconnections disconnections{};
    RedisNodes nodes{{uri()}, {.node_timeout = 20s, .observer = &disconnections}};
};

/// Acquires and releases in many threads, which share connections. Every other release is not awaited.
void lock_in_threads(DescribedWorld& world, std::size_t turns, std::atomic<std::size_t>& missing) {
    in_threads(32, [&](std::size_t thread) {
        for (std::size_t turn = 0; turn < turns; ++turn) {
            const auto resource = "orders:" + std::to_string(thread) + ":" + std::to_string(turn);
            auto lock = world.lock(resource);
            if (!lock.acquire()) continue;  // the connection broke
            const auto is_known = [&] { return world.disconnections.count > 0 || world.describes(resource); };
            if (turn % 10 == 0 && missing == 0 && !wait_until(is_known)) ++missing;
            if (turn % 2 == 0)
                lock.unlock();
            else
                (void)lock.release();
        }
    });
}

TEST(AHolderDescription, IsWrittenAndDeletedAmongTheCommandsOfManyThreads) {
    DescribedWorld world;
    std::atomic<std::size_t> missing = 0;
    lock_in_threads(world, 50, missing);
    if (world.disconnections.count > 0)
        GTEST_SKIP() << "too slow a machine: a second without news has ended a connection";
    EXPECT_EQ(missing, 0U);
    EXPECT_TRUE(world.is_empty()) << world.servers[0].command({"DBSIZE"}) << " descriptions are left";
}

// The connection may lead to a former master when the release is sent. The release is sent nevertheless.
TEST(AHolderDescription, IsDeletedAfterASilenceOfMoreThanASecond) {
    DescribedWorld world;
    for (const bool awaited : {true, false}) {
        auto lock = world.lock("orders");
        ASSERT_THAT(lock.acquire(), Succeeds());
        EXPECT_TRUE(wait_until([&] { return world.describes("orders"); }));
        std::this_thread::sleep_for(1100ms);
        if (awaited)
            EXPECT_THAT(lock.release(), Succeeds());
        else
            lock.unlock();
        EXPECT_TRUE(world.is_empty()) << "awaited: " << awaited;
    }
}

}  // namespace
}  // namespace redlock::test
