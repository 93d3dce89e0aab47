// AsyncLock in a poll() loop while memory runs out, against real servers. This program replaces operator new
// by an operator that fails on demand.
#include "poll_loop.hpp"
#include "support/cluster.hpp"
#include "support/memory_shortage.hpp"
#include "support/wait_until.hpp"

#include <redlock/async_lock.hpp>
#include <redlock/redlock.hpp>

#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test {
namespace {

using namespace std::chrono_literals;
using support::at_each_allocation;
using support::Cluster;
using support::wait_until;

class WithoutMemory : public testing::Test {
protected:
    /// Runs the loop until it has nothing left to do, although calls of it throw std::bad_alloc.
    void run() {
        for (bool more = true; more;) try {
                more = loop.run_once();
            } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the loop goes on
            }
    }
    bool no_key_is_left() {
        return wait_until([&] {
            for (auto& server : cluster)
                if (server.command({"DBSIZE"}) != "0") return false;
            return true;
        });
    }
    /// Disconnects all clients from the servers.
    void kill_connections() {
        for (auto& server : cluster) (void)server.command({"CLIENT", "KILL", "TYPE", "normal"});
    }

    static constexpr auto node_timeout = 60s;

    Cluster cluster{3};
    PollLoop loop{};
    RedisNodes nodes{cluster.uris(), {.node_timeout = node_timeout}};
    AsyncNodes of_loop{nodes, loop};
};

/// The parameter is the number of allocations that fail, one after the other.
class WithoutMemoryForLong : public WithoutMemory, public testing::WithParamInterface<long> {};

/// The name is so long that no socket accepts a command with it at once.
TEST_P(WithoutMemoryForLong, ALockThatIsDestroyedLeavesNoKey) {
    const std::string resource(12'000'000, 'a');
    at_each_allocation(
        1,
        [&](auto starve) {
            std::optional<AsyncLock> lock{std::in_place, of_loop, resource, LockOptions{.ttl = 10min}};
            std::optional<Result> result;
            lock->acquire([&](Result it) { result = std::move(it); });
            run();
            ASSERT_TRUE(result);
            ASSERT_TRUE(*result) << result->message();
            starve([&] {
                lock.reset();
                run();
            });
            ASSERT_TRUE(no_key_is_left());
        },
        GetParam());
}

/// An acquisition whose failure nobody notices ends after one node_timeout.
TEST_P(WithoutMemoryForLong, AnAcquisitionEndsSoonAndLeavesNoKey) {
    at_each_allocation(
        1,
        [&](auto starve) {
            int ends = 0;  // calls of the completion, or exceptions
            std::optional<AsyncLock> lock{std::in_place, of_loop, "orders:42", LockOptions{.ttl = 10min}};
            kill_connections();
            const auto start = boot_clock().now();
            starve([&] {
                try {
                    lock->acquire([&](const Result&) { ++ends; });
                } catch (const std::bad_alloc&) {
                    ++ends;
                }
                run();
            });
            ASSERT_EQ(ends, 1);
            ASSERT_LT(boot_clock().now() - start, node_timeout);
            lock.reset();
            run();
            ASSERT_EQ(ends, 1);
            ASSERT_TRUE(no_key_is_left());
        },
        GetParam());
}

INSTANTIATE_TEST_SUITE_P(Failures, WithoutMemoryForLong, testing::Values(1, 8, 30));

}  // namespace
}  // namespace redlock::test
