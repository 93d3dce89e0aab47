// redlock::asio::Lock while memory runs out, against real servers. The file is compiled once with Boost.Asio
// and once with standalone Asio. The program replaces operator new by an operator that fails on demand.
#include "support/cluster.hpp"
#include "support/replaced_new.hpp"
#include "support/wait_until.hpp"

#include <redlock/asio.hpp>
#include <redlock/redlock.hpp>

#if defined(REDLOCK_ASIO_BOOST)
#include <boost/asio/io_context.hpp>
#else
#include <asio/io_context.hpp>
#endif

#include <chrono>
#include <new>
#include <optional>
#include <utility>

namespace {

constexpr long never = -1;
long until_failure = never;  // how many allocations succeed before one fails
bool failed = false;

}  // namespace

void redlock::support::before_allocation() {
    if (until_failure < 0 || until_failure-- > 0) return;
    failed = true;
    throw std::bad_alloc{};
}

namespace redlock::test {
namespace {

namespace net = redlock::asio::net;
using namespace std::chrono_literals;
using asio::Lock;
using support::Cluster;
using support::wait_until;

/// Runs the context until it has nothing left to do, although its handlers throw std::bad_alloc.
void run(net::io_context& context) {
    for (bool more = true; more;) try {
            context.run();
            more = false;
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the context goes on
        }
    context.restart();
}

TEST(AsioWithoutMemory, NoFailureOfAnAllocationEndsTheProgramOrLeavesAKey) {
    Cluster cluster{3};
    RedisNodes nodes{cluster.uris(), {.node_timeout = 10s}};
    const auto no_key_is_left = [&] {
        for (auto& server : cluster)
            if (server.command({"DBSIZE"}) != "0") return false;
        return true;
    };
    failed = true;
    for (long first = 0; failed; ++first) {
        failed = false;
        // A new context has no memory from earlier operations.
        net::io_context context;
        std::optional<Lock> lock{std::in_place, context, nodes, "orders:42", LockOptions{.ttl = 10min}};
        until_failure = first;
        try {
            lock->async_acquire([](const Result&) {});
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the operation has not begun
        }
        run(context);
        lock.reset();
        run(context);
        until_failure = never;
        ASSERT_TRUE(wait_until(no_key_is_left)) << "failure of allocation " << first;
    }
}

}  // namespace
}  // namespace redlock::test
