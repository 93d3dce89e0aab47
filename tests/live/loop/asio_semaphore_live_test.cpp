// redlock::asio::Semaphore against real servers.
#include "asio_world.hpp"

#include <redlock/asio_semaphore.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace redlock::test {
namespace {

using asio::Semaphore;

struct AsioSemaphore : support::SemaphoreTest {
    net::io_context context{};
};

TEST_F(AsioSemaphore, ManyCoroutinesShareTheSlots) {
    std::size_t inside = 0;
    std::size_t served = 0;
    const auto worker = [&]() -> net::awaitable<void> {
        const auto executor = co_await net::this_coro::executor;
        Semaphore semaphore{executor, nodes, "jobs", limit, {.ttl = 1min, .retry = {.delay = 5ms}}};
        const auto acquired = co_await semaphore.async_acquire_for(5min, net::use_awaitable);
        EXPECT_TRUE(acquired) << acquired.message();
        EXPECT_LE(++inside, limit);
        const auto extended = co_await semaphore.async_extend(2min, net::use_awaitable);
        EXPECT_TRUE(extended) << extended.message();
        --inside;
        const auto released = co_await semaphore.async_release(net::use_awaitable);
        EXPECT_TRUE(released) << released.message();
        ++served;
    };
    for (int i = 0; i < 20; ++i) net::co_spawn(context, worker, net::detached);
    context.run();
    EXPECT_EQ(served, 20U);
    EXPECT_EQ(keys(), 0U);
}

}  // namespace
}  // namespace redlock::test
