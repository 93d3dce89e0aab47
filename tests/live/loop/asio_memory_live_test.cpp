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

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <utility>

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

/// Asio allocates the memory of its operations by this function.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
    try {
        redlock::support::before_allocation();
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
    void* memory = nullptr;
    return ::posix_memalign(&memory, std::max(alignment, sizeof(void*)), size) == 0 ? memory : nullptr;
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

/// The parameter is the number of allocations that fail, one after the other.
class AsioWithoutMemory : public testing::TestWithParam<long> {};

TEST_P(AsioWithoutMemory, AnAcquisitionThrowsOrCallsItsHandlerOnceAndLeavesNoKey) {
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
        failures_left = GetParam();
        until_failure = first;
        int ends = 0;  // calls of the handler, or exceptions
        try {
            // The handler is so large that Asio has no memory of earlier operations for it.
            lock->async_acquire(
                [&ends, size = std::array<char, 10'000>{}](const Result&) { ends += size[0] + 1; });
        } catch (const std::bad_alloc&) {
            ++ends;
        }
        run(context);
        ASSERT_EQ(ends, 1) << "failure of allocation " << first;
        lock.reset();
        run(context);
        until_failure = never;
        ASSERT_EQ(ends, 1) << "failure of allocation " << first;
        ASSERT_TRUE(wait_until(no_key_is_left)) << "failure of allocation " << first;
    }
}

// The first allocation that fails follows the stop on lost(), which comes right before the call of on_lost.
TEST_P(AsioWithoutMemory, ALossIsReportedOnce) {
    Cluster cluster{3};
    RedisNodes nodes{cluster.uris(), {.node_timeout = 10s}};
    failed = true;
    for (long first = 0; failed; ++first) {
        failed = false;
        net::io_context context;
        int losses = 0;
        std::optional<Lock> lock{std::in_place, context, nodes, "orders:42",
                                 LockOptions{.ttl = 10min,
                                             .watchdog = loop_watchdog(),
                                             .on_lost = [&losses, size = std::array<char, 10'000>{}](
                                                            const Result&) { losses += size[0] + 1; }}};
        const auto run_until = [&](auto condition) {
            return wait_until([&] {
                try {
                    (void)context.run_for(1ms);
                } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the context goes on
                }
                return condition();
            });
        };
        lock->async_acquire([](const Result& it) { EXPECT_TRUE(it); });
        ASSERT_TRUE(run_until([&] { return lock->valid(); }));
        for (auto& server : cluster) server.command({"DEL", "orders:42"});
        const std::stop_callback on_stop{lock->lost(), [&] {
                                             failures_left = GetParam();
                                             until_failure = first;
                                         }};
        lock->async_extend([](const Result&) {});
        const bool reported = run_until([&] { return losses > 0; });
        until_failure = never;
        ASSERT_TRUE(reported) << "failure of allocation " << first;
        lock.reset();
        run(context);
        ASSERT_EQ(losses, 1) << "failure of allocation " << first;
    }
}

/// Its allocator must not be read after it was moved.
class Handler {
public:
    using allocator_type = std::allocator<void>;
    explicit Handler(int& calls) noexcept : calls_(&calls) {}
    Handler(Handler&& other) noexcept : calls_(std::exchange(other.calls_, nullptr)) {}
    allocator_type get_allocator() const noexcept {
        EXPECT_TRUE(calls_);
        return {};
    }
    void operator()(int) { ++*calls_; }

private:
    int* calls_;
};

// An executor may throw std::bad_alloc although it has accepted the handler.
TEST(AsioOutcome, CallsAHandlerOnceThatIsPostedTwice) {
    net::io_context context;
    int calls = 0;
    const auto outcome =
        std::make_shared<asio::detail::Outcome<Handler, int>>(Handler{calls}, context.get_executor());
    outcome->set(1);
    for (int i = 0; i < 2; ++i) {
        outcome->post();
        context.poll();
    }
    EXPECT_EQ(calls, 1);
}

INSTANTIATE_TEST_SUITE_P(Failures, AsioWithoutMemory, testing::Values(1, 8, 30));

}  // namespace
}  // namespace redlock::test
