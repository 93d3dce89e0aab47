// AsyncLock in a poll() loop while memory runs out, against real servers. This program replaces operator new
// by an operator that fails on demand.
#include "poll_loop.hpp"
#include "support/cluster.hpp"
#include "support/replaced_new.hpp"
#include "support/wait_until.hpp"

#include <redlock/async_lock.hpp>
#include <redlock/redlock.hpp>

#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr long never = -1;
long until_failure = never;  // how many allocations succeed before the next failure
long failures_left = 0;      // how many allocations fail then
bool failed = false;

}  // namespace

void redlock::support::before_allocation() {
    if (until_failure < 0 || until_failure-- > 0) return;
    failed = true;
    until_failure = --failures_left > 0 ? 0 : never;
    throw std::bad_alloc{};
}

namespace redlock::test {
namespace {

using namespace std::chrono_literals;
using support::Cluster;
using support::wait_until;

/// Lets some allocations fail while it lives.
class Shortage {
public:
    Shortage(long first, long failures) {
        failed = false;
        failures_left = failures;
        until_failure = first;
    }
    ~Shortage() { until_failure = never; }
    Shortage(const Shortage&) = delete;
    Shortage& operator=(const Shortage&) = delete;
};

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
    failed = true;
    for (long first = 0; failed; ++first) {
        std::optional<AsyncLock> lock{std::in_place, of_loop, resource, LockOptions{.ttl = 10min}};
        std::optional<Result> result;
        lock->acquire([&](Result it) { result = std::move(it); });
        run();
        ASSERT_TRUE(result);
        ASSERT_TRUE(*result) << result->message() << " after " << first;
        {
            const Shortage shortage{first, GetParam()};
            lock.reset();
            run();
        }
        ASSERT_TRUE(no_key_is_left()) << "failure of allocation " << first;
    }
}

/// An acquisition whose failure nobody notices ends after one node_timeout.
TEST_P(WithoutMemoryForLong, AnAcquisitionEndsSoonAndLeavesNoKey) {
    failed = true;
    for (long first = 0; failed; ++first) {
        int ends = 0;  // calls of the completion, or exceptions
        std::optional<AsyncLock> lock{std::in_place, of_loop, "orders:42", LockOptions{.ttl = 10min}};
        kill_connections();
        const auto start = boot_clock().now();
        {
            const Shortage shortage{first, GetParam()};
            try {
                lock->acquire([&](const Result&) { ++ends; });
            } catch (const std::bad_alloc&) {
                ++ends;
            }
            run();
        }
        ASSERT_EQ(ends, 1) << "failure of allocation " << first;
        ASSERT_LT(boot_clock().now() - start, node_timeout) << "failure of allocation " << first;
        lock.reset();
        run();
        ASSERT_EQ(ends, 1) << "failure of allocation " << first;
        ASSERT_TRUE(no_key_is_left()) << "failure of allocation " << first;
    }
}

INSTANTIATE_TEST_SUITE_P(Failures, WithoutMemoryForLong, testing::Values(1, 8, 30));

}  // namespace
}  // namespace redlock::test
