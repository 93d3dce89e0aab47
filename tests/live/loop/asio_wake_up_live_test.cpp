// How the library wakes up in an execution context. The program counts how often the timer is set.
#include "asio_world.hpp"

#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <string>

namespace {

std::atomic<int> timer_calls{0};

}  // namespace

// Precedes the function of the C library.
extern "C" int timerfd_settime(int fd, int flags, const itimerspec* next, itimerspec* previous) noexcept {
    ++timer_calls;
    return static_cast<int>(::syscall(SYS_timerfd_settime, fd, flags, next, previous));
}

namespace redlock::test::asio_wake_up_live_test {
namespace {

using asio::Lock;
using AsioWakeUp = Asio;

constexpr int operations = 3;

net::awaitable<void> acquire_and_release(const net::any_io_executor& executor, RedisNodes& nodes,
                                         std::string resource) {
    for (int i = 0; i < operations; ++i) {
        Lock lock{executor, nodes, resource};
        const auto acquired = co_await lock.async_acquire(net::use_awaitable);
        EXPECT_TRUE(acquired) << acquired.message();
        const auto released = co_await lock.async_release(net::use_awaitable);
        EXPECT_TRUE(released) << released.message();
    }
}

/// Returns how often the timer is set for each acquire + release, with `count` coroutines at the same time.
double timer_calls_with(int count, net::io_context& context, const net::any_io_executor& executor,
                        RedisNodes& nodes) {
    for (int i = 0; i < count; ++i)
        net::co_spawn(executor, acquire_and_release(executor, nodes, "orders:" + std::to_string(i)),
                      net::detached);
    const int before = timer_calls;
    context.run();
    return static_cast<double>(timer_calls - before) / (count * operations);
}

TEST_F(AsioWakeUp, SetsTheTimerRarelyWithManyCoroutines) {
    EXPECT_LT(timer_calls_with(1000, context, context.get_executor(), nodes), 0.1);
}

TEST_F(AsioWakeUp, SetsTheTimerRarelyWithAStrand) {
    EXPECT_LT(timer_calls_with(1000, context, net::make_strand(context), nodes), 0.1);
}

TEST_F(AsioWakeUp, SetsTheTimerRarelyWithAStrandOfAnyExecutor) {
    const net::any_io_executor any = context.get_executor();
    EXPECT_LT(timer_calls_with(1000, context, net::make_strand(any), nodes), 0.1);
}

/// A round sets the timer to its deadline, unless it is set to an earlier instant.
TEST_F(AsioWakeUp, SetsTheTimerAtMostOnceForARoundOfOneCoroutine) {
    EXPECT_LE(timer_calls_with(1, context, context.get_executor(), nodes), 2);
}

/// A timer that is due stays readable until it is set again. If it is not, the context spins.
TEST_F(AsioWakeUp, CallsFewHandlersWhileALockWaits) {
    Lock holder{context, nodes, "orders:42"};
    acquire(holder);
    Lock waiting{context, nodes, "orders:42"};
    waiting.async_acquire_for(1s, [](const Result& it) { EXPECT_EQ(it.error(), Errc::held_by_other); });
    EXPECT_LT(context.run(), 2000U);
}

}  // namespace
}  // namespace redlock::test::asio_wake_up_live_test
