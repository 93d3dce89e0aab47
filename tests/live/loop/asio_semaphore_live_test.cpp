// redlock::asio::Semaphore against real servers.
#include "asio_world.hpp"

#include <redlock/asio_semaphore.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace redlock::test {
namespace {

using asio::Semaphore;

constexpr std::size_t limit = 3;

struct AsioSemaphore : Asio {
    std::size_t keys_of_slots() {
        std::size_t count = 0;
        for (std::size_t slot = 0; slot < limit; ++slot) count += keys("{jobs}:slot:" + std::to_string(slot));
        return count;
    }
    bool has_keys(std::size_t count) {
        return wait_until([&] { return keys_of_slots() == count; });
    }
};

TEST_F(AsioSemaphore, ACoroutineAcquiresExtendsAndReleases) {
    run([&]() -> net::awaitable<void> {
        const auto executor = co_await net::this_coro::executor;
        Semaphore semaphore{executor, nodes, "jobs", limit, {.ttl = 10s, .fencing = true}};
        EXPECT_FALSE(semaphore.valid());
        const auto acquired = co_await semaphore.async_acquire(net::use_awaitable);
        EXPECT_TRUE(acquired) << acquired.message();
        EXPECT_TRUE(semaphore.valid());
        EXPECT_EQ(semaphore.owner().size(), 40U);
        EXPECT_GT(semaphore.fencing_token(), 0U);
        EXPECT_EQ(semaphore.resource(), "{jobs}:slot:" + std::to_string(semaphore.slot()));
        EXPECT_EQ(keys(semaphore.resource()), 5U);
        const auto again = co_await semaphore.async_extend(20s, net::use_awaitable);
        EXPECT_TRUE(again);
        EXPECT_GT(semaphore.remaining(), 18s);
        const auto released = co_await semaphore.async_release(net::use_awaitable);
        EXPECT_TRUE(released);
        EXPECT_FALSE(semaphore.valid());
    });
    EXPECT_EQ(keys_of_slots(), 0U);
}

TEST_F(AsioSemaphore, ManyCoroutinesShareTheSlots) {
    std::size_t inside = 0;
    std::size_t served = 0;
    const auto worker = [&]() -> net::awaitable<void> {
        const auto executor = co_await net::this_coro::executor;
        Semaphore semaphore{executor, nodes, "jobs", limit, {.ttl = 1min, .retry = {.delay = 5ms}}};
        const auto acquired = co_await semaphore.async_acquire_for(5min, net::use_awaitable);
        EXPECT_TRUE(acquired) << acquired.message();
        EXPECT_LE(++inside, limit);
        net::steady_timer timer{executor, 2ms};
        co_await timer.async_wait(net::use_awaitable);
        --inside;
        const auto released = co_await semaphore.async_release(net::use_awaitable);
        EXPECT_TRUE(released) << released.message();
        ++served;
    };
    for (int i = 0; i < 20; ++i) net::co_spawn(context, worker, net::detached);
    context.run();
    EXPECT_EQ(served, 20U);
    EXPECT_EQ(keys_of_slots(), 0U);
}

TEST_F(AsioSemaphore, CancellationAndDestructionLeaveNoKey) {
    redlock::Semaphore other{nodes, "jobs", 1, {.ttl = 10min}};  // the first slot
    ASSERT_TRUE(other.acquire());
    for (const bool destroys : {false, true})
        for (std::size_t steps = 0; steps < 20; ++steps) {
            std::optional<Semaphore> semaphore{std::in_place, context, nodes,
                                               "jobs",        limit,   LockOptions{.ttl = 10min}};
            net::cancellation_signal signal;
            std::optional<Result> result;
            semaphore->async_try_acquire(
                net::bind_cancellation_slot(signal.slot(), [&](Result it) { result = std::move(it); }));
            for (std::size_t i = 0; i < steps; ++i) context.run_one_for(1ms);
            if (destroys)
                semaphore.reset();
            else
                signal.emit(net::cancellation_type::terminal);
            context.run();
            context.restart();
            ASSERT_TRUE(result);
            if (!*result) {
                EXPECT_EQ(result->error(), Errc::cancelled);
            }
            semaphore.reset();
            context.run();
            context.restart();
            EXPECT_TRUE(has_keys(5)) << "those of the other holder, after " << steps;
        }
}

TEST_F(AsioSemaphore, DestroyingTheContextCallsNoHandler) {
    for (std::size_t steps = 0; steps < 20; ++steps) {
        bool ended = false;
        auto of_loop = std::make_unique<net::io_context>();
        net::co_spawn(
            *of_loop,
            [&]() -> net::awaitable<void> {
                Semaphore semaphore{*of_loop, nodes, "jobs", limit, {.ttl = 10min}};
                (void)co_await semaphore.async_acquire(net::use_awaitable);
                (void)co_await semaphore.async_release(net::use_awaitable);
                ended = true;
            },
            net::detached);
        for (std::size_t i = 0; i < steps; ++i) of_loop->run_one_for(1ms);
        ended = false;
        of_loop.reset();
        EXPECT_FALSE(ended);
        EXPECT_TRUE(has_keys(0)) << "after " << steps;
    }
}

TEST_F(AsioSemaphore, TheWatchdogReportsTheLossOfTheSlot) {
    std::optional<Result> loss;
    Semaphore semaphore{
        context,
        nodes,
        "jobs",
        limit,
        {.ttl = 3s, .watchdog = loop_watchdog(), .on_lost = [&](const Result& it) { loss = it; }}};
    semaphore.async_acquire([](Result it) { EXPECT_TRUE(it); });
    EXPECT_TRUE(wait_until([&] {
        (void)context.run_for(10ms);
        return semaphore.valid();
    }));
    for (auto& server : cluster) server.command({"DEL", semaphore.resource()});
    EXPECT_TRUE(wait_until([&] {
        (void)context.run_for(10ms);
        return loss.has_value();
    }));
    EXPECT_FALSE(semaphore.valid());
}

}  // namespace
}  // namespace redlock::test
