// The classes of redlock::asio while memory runs out, against real servers. The file is compiled once with
// Boost.Asio and once with standalone Asio. The program replaces operator new by an operator that fails on
// demand.
#include "support/cluster.hpp"
#include "support/memory_shortage.hpp"
#include "support/wait_until.hpp"

#include <redlock/asio.hpp>
#include <redlock/asio_leader.hpp>
#include <redlock/detail/memory.hpp>
#include <redlock/redlock.hpp>

#if defined(REDLOCK_ASIO_BOOST)
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#else
#include <asio/awaitable.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/io_context.hpp>
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

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

namespace redlock::test::asio_memory_live_test {
namespace {

namespace net = redlock::asio::net;
using namespace std::chrono_literals;
using asio::Leader;
using asio::Lock;
using detail::has_memory_for;
using support::at_each_allocation;
using support::Cluster;
using support::shortage;
using support::wait_until;

/// Repeats the action until there is memory for it.
template <class Action>
void insist(Action action) {
    while (!has_memory_for(action)) {
    }
}

/// Runs the context until it has nothing left to do, although its handlers throw std::bad_alloc.
void run(net::io_context& context) {
    insist([&] { context.run(); });
    context.restart();
}

/// The parameter is the number of allocations that fail, one after the other.
class AsioWithoutMemory : public testing::TestWithParam<long> {
protected:
    /// Shortages of several allocations overlap, so not each allocation has to be the first one that fails.
    static long step() { return (GetParam() + 1) / 2; }
    template <class Test>
    static void at_each_step(Test test) {
        at_each_allocation(step(), test, GetParam(), step());
    }
    bool no_key_is_left() {
        return wait_until([&] {
            for (auto& server : cluster)
                if (server.command({"EXISTS", "orders:42"}) != "0") return false;
            return true;
        });
    }
    /// Makes a lock whose keys only a release removes in time. Tries it until there is memory.
    void make(std::optional<Lock>& it, net::io_context& context) {
        insist([&] { it.emplace(context, nodes, "orders:42", LockOptions{.ttl = 10min}); });
    }
    /// Runs an operation to its end. Returns its result, or nothing if the function that begins it has thrown
    /// std::bad_alloc.
    template <class Begin>
    std::optional<Result> result_of(net::io_context& context, Begin begin) {
        std::optional<Result> result;
        ++begun;
        const bool has_begun = has_memory_for([&] {
            // The handler is so large that Asio has no memory of earlier operations for it.
            begin([this, &result, size = std::array<char, 10'000>{}](Result it) {
                ended += size[0] + 1;
                result = std::move(it);
            });
        });
        if (!has_begun) ++ended;
        run(context);
        EXPECT_EQ(ended, begun);
        return result;
    }

    template <class Work>
    void check_leader(Work work);

    Cluster cluster{3};
    RedisNodes nodes{cluster.uris(), {.node_timeout = 2s}};
    int begun = 0;  // operations
    int ended = 0;  // calls of their handlers, or exceptions
};

TEST_P(AsioWithoutMemory, AnAcquisitionThrowsOrCallsItsHandlerOnceAndLeavesNoKey) {
    at_each_step([&](auto starve) {
        // A new context has no memory from earlier operations.
        net::io_context context;
        std::optional<Lock> lock;
        const auto acquire = [&](auto handler) { lock->async_acquire(std::move(handler)); };
        starve([&] {
            make(lock, context);
            const auto result = result_of(context, acquire);
            ASSERT_EQ(lock->valid(), result && *result);
            lock.reset();
            run(context);
        });
        ASSERT_EQ(ended, begun);
        ASSERT_TRUE(no_key_is_left());
        make(lock, context);
        const auto repeated = result_of(context, acquire);
        ASSERT_TRUE(repeated && *repeated);
        lock.reset();
        run(context);
        ASSERT_TRUE(no_key_is_left());
    });
}

TEST_P(AsioWithoutMemory, AnExtensionOrAReleaseThrowsOrCallsItsHandlerOnceAndCanBeRepeated) {
    at_each_step([&](auto starve) {
        net::io_context context;
        std::optional<Lock> lock;
        make(lock, context);
        const auto acquire = [&](auto handler) { lock->async_acquire(std::move(handler)); };
        const auto extend = [&](auto handler) { lock->async_extend(std::move(handler)); };
        const auto release = [&](auto handler) { lock->async_release(std::move(handler)); };
        const auto succeeds = [&](auto begin) {
            const auto result = result_of(context, begin);
            return result && *result;
        };
        ASSERT_TRUE(succeeds(acquire));
        starve([&] { (void)result_of(context, extend); });
        ASSERT_TRUE(lock->valid());
        ASSERT_TRUE(succeeds(extend));
        bool released = false;
        starve([&] { released = succeeds(release); });
        ASSERT_TRUE(released || succeeds(release));
        ASSERT_FALSE(lock->valid());
        ASSERT_TRUE(no_key_is_left());
        net::cancellation_signal signal;
        const auto cancelled = result_of(context, [&](auto handler) {
            lock->async_acquire(net::bind_cancellation_slot(signal.slot(), std::move(handler)));
            signal.emit(net::cancellation_type::terminal);
        });
        ASSERT_TRUE(cancelled);
        ASSERT_EQ(cancelled->error(), Errc::cancelled) << "an operation that has not begun is not under way";
        ASSERT_TRUE(succeeds(acquire));
        ASSERT_TRUE(succeeds(release));
        ASSERT_EQ(ended, begun);
    });
}

/// `work(terms)` makes a function for Leader::async_run(), which counts its calls in `terms`. A run that ends
/// because there is no memory to post a call of on_error is begun again.
template <class Work>
void AsioWithoutMemory::check_leader(Work work) {
    at_each_step([&](auto starve) {
        net::cancellation_signal signal;
        net::io_context context;
        int terms = 0;
        int runs = 0;
        int ends = 0;
        bool cancelled = false;
        const auto run_until = [&](auto condition) {
            return wait_until([&] {
                context.restart();
                (void)has_memory_for([&] {
                    for (int left = 100; left > 0 && !condition(); --left)
                        if (context.run_one_for(100ms) == 0) break;
                });
                return condition();
            });
        };
        const auto on_end = [&](const std::exception_ptr& failure) {
            ++ends;
            EXPECT_EQ(failure == nullptr, cancelled);
        };
        std::optional<Leader> leader;
        const auto begin_run = [&] {
            insist([&] {
                leader->async_run(work(terms), net::bind_cancellation_slot(signal.slot(), on_end));
                ++runs;
            });
        };
        const auto leads = [&](int until) {
            return run_until([&] {
                if (ends == runs) begin_run();
                return terms >= until;
            });
        };
        starve([&] {
            insist([&] {
                leader.emplace(context, nodes, "orders:42",
                               LeaderOptions{.ttl = 10min,
                                             .retry = {.delay = 1ms},
                                             .longest_pause = 2ms,
                                             .on_error = [](const std::exception_ptr&) {},
                                             .on_failure = [](const Result&) {}});
            });
            ASSERT_TRUE(leads(2));
        });
        ASSERT_TRUE(leads(terms + 2));
        cancelled = true;
        signal.emit(net::cancellation_type::terminal);
        run(context);
        ASSERT_EQ(ends, runs);
        ASSERT_TRUE(no_key_is_left());
    });
}

TEST_P(AsioWithoutMemory, ALeaderGoesOnAndLeavesNoKey) {
    check_leader([](int& terms) { return [&terms](const AsyncTerm&) { ++terms; }; });
}

// If there is no memory to begin the coroutine of the work, and none to destroy it, Asio calls
// std::terminate(). So only one allocation fails here.
class AsioCoroutineWithoutMemory : public AsioWithoutMemory {};

TEST_P(AsioCoroutineWithoutMemory, ALeaderGoesOnAndLeavesNoKey) {
    check_leader([](int& terms) {
        return [&terms](redlock::Term) -> net::awaitable<void> {
            ++terms;
            co_return;
        };
    });
}

// The first allocation that fails follows the stop on lost(), which comes right before the call of on_lost.
TEST_P(AsioWithoutMemory, ALossIsReportedOnce) {
    shortage.has_failed = true;
    for (long first = 0; shortage.has_failed; ++first) {
        shortage.has_failed = false;
        net::io_context context;
        int losses = 0;
        std::optional<Lock> lock{std::in_place, context, nodes, "orders:42",
                                 LockOptions{.ttl = 10min,
                                             .watchdog = loop_watchdog(),
                                             .on_lost = [&losses, size = std::array<char, 10'000>{}](
                                                            const Result&) { losses += size[0] + 1; }}};
        const auto run_until = [&](auto condition) {
            return wait_until([&] {
                (void)has_memory_for([&] { (void)context.run_for(1ms); });
                return condition();
            });
        };
        lock->async_acquire([](const Result& it) { EXPECT_TRUE(it); });
        ASSERT_TRUE(run_until([&] { return lock->valid(); }));
        for (auto& server : cluster) server.command({"DEL", "orders:42"});
        const std::stop_callback on_stop{lock->lost(), [&] { shortage.begin(first, GetParam()); }};
        lock->async_extend([](const Result&) {});
        const bool reported = run_until([&] { return losses > 0; });
        shortage.end();
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
INSTANTIATE_TEST_SUITE_P(OneFailure, AsioCoroutineWithoutMemory, testing::Values(1));

}  // namespace
}  // namespace redlock::test::asio_memory_live_test
