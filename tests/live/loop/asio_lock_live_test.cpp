// redlock::asio::Lock against real servers.
#include "asio_world.hpp"
#include "live/forked_child.hpp"
#include "live/own_files.hpp"
#include "live/process/silent_address.hpp"
#include "support/in_threads.hpp"
#include "support/process_files.hpp"
#include "support/process_state.hpp"
#include "support/temporary_directory.hpp"

#include <redlock/asio_semaphore.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace redlock::test::asio_lock_live_test {
namespace {

using asio::Lock;

TEST_F(Asio, TakesEveryKindOfToken) {
    Lock lock{context, nodes, "orders:42"};
    auto future = lock.async_try_acquire(net::use_future);
    run();
    EXPECT_TRUE(future.get());
    bool released = false;
    lock.async_release([&](Result it) { released = static_cast<bool>(it); });
    EXPECT_FALSE(released);
    run();
    EXPECT_TRUE(released);
}

TEST_F(Asio, CallsAHandlerInItsExecutor) {
    net::io_context of_handler;
    Lock lock{context, nodes, "orders:42"};
    bool called = false;
    lock.async_try_acquire(
        net::bind_executor(of_handler, [&](Result it) { called = static_cast<bool>(it); }));
    of_handler.poll();
    EXPECT_FALSE(of_handler.stopped()) << "the operation keeps it at work";
    run();
    EXPECT_FALSE(called);
    of_handler.run();
    EXPECT_TRUE(called);
}

TEST(AsioExecutor, IsThatOfAnIoContextOrOfAnotherContext) {
    net::io_context context;
    net::thread_pool pool{1};
    const net::any_io_executor of_pool = pool.get_executor();
    const net::any_io_executor of_context = context.get_executor();
    EXPECT_EQ(asio::detail::io_context_of(of_context), &context);
    EXPECT_EQ(asio::detail::io_context_of(net::make_strand(context)), &context);
    EXPECT_EQ(asio::detail::io_context_of(net::make_strand(of_context)), &context);
    EXPECT_EQ(asio::detail::io_context_of(of_pool), nullptr);
    EXPECT_EQ(asio::detail::io_context_of(net::make_strand(pool)), nullptr);
    EXPECT_EQ(asio::detail::io_context_of(net::make_strand(of_pool)), nullptr);
}

// on_lost must not run while the mutex of the loop is locked.
TEST_F(Asio, CallsOnLostInTheExecutor) {
    const auto strand = net::make_strand(context);
    int losses = 0;
    const LockOptions watched{.ttl = 10min, .watchdog = loop_watchdog(), .on_lost = [&](const Result&) {
                                  EXPECT_TRUE(strand.running_in_this_thread());
                                  ++losses;
                              }};
    Lock lock{strand, nodes, "orders:42", watched};
    asio::Semaphore semaphore{strand, nodes, "jobs", 3, watched};
    const auto lose = [this](auto& it) {
        it.async_acquire([this, &it](const Result& acquired) {
            EXPECT_TRUE(acquired) << acquired.message();
            for (auto& server : cluster) server.command({"DEL", it.resource()});
            it.async_extend([](const Result&) {});
        });
    };
    lose(lock);
    lose(semaphore);
    run();
    EXPECT_EQ(losses, 2);
}

// co_await begins the operation when the function that makes it has returned. Here this function is called
// deep in the stack, so that nothing but its second call overwrites the span of the first one.
TEST_F(Asio, AnOperationThatBeginsLaterHasItsTimeLimit) {
    for (auto& server : cluster) server.command({"SET", "orders:42", "somebody else", "PX", "200"});
    Lock lock{context, nodes, "orders:42", {.retry = {.delay = 20ms}}};
    const auto acquire_for = [&](std::chrono::milliseconds span) {
        [[maybe_unused]] volatile char space[100'000];
        space[0] = 0;
        return lock.async_acquire_for(span, net::use_awaitable);
    };
    run([&]() -> net::awaitable<void> {
        auto operation = acquire_for(1min);
        (void)acquire_for(0ms);
        const auto acquired = co_await std::move(operation);
        EXPECT_TRUE(acquired) << acquired.message();
    });
}

TEST_F(Asio, AMovedFromLockIsFreeAndCannotBeAcquired) {
    Lock lock{context, nodes, "orders:42"};
    const auto next = std::move(lock);
    EXPECT_EQ(&net::query(lock.get_executor(), net::execution::context), &context);
    EXPECT_FALSE(lock.valid());
    EXPECT_EQ(lock.remaining(), std::chrono::nanoseconds::zero());
    EXPECT_FALSE(lock.lost().stop_possible());
    EXPECT_EQ(lock.resource(), "");
    EXPECT_TRUE(lock.resources().empty());
    EXPECT_EQ(lock.owner(), "");
    EXPECT_EQ(lock.fencing_token(), 0U);
    std::vector<std::error_code> errors;
    const auto report = [&](const Result& it) { errors.push_back(it.error()); };
    lock.async_acquire(report);
    lock.async_try_acquire(report);
    lock.async_acquire_for(1s, report);
    lock.async_extend(report);
    lock.async_extend(10s, report);
    lock.async_release(report);
    EXPECT_TRUE(errors.empty()) << "a handler is called as if by post()";
    run();
    const std::error_code invalid = std::make_error_code(std::errc::invalid_argument);
    const std::error_code not_held = Errc::not_held;
    EXPECT_THAT(errors, testing::ElementsAre(invalid, invalid, invalid, not_held, not_held, not_held));
    lock = Lock{context, nodes, "orders:42"};
    acquire(lock);
}

TEST_F(Asio, FairLocksWaitInTheQueue) {
    const LockOptions fair{.ttl = 1min, .retry = {.delay = 1min}, .fair = true};
    Lock holder{context, nodes, "orders:42", fair};
    std::vector<int> order;
    std::vector<Lock> waiting;
    for (int i = 0; i < 6; ++i) waiting.emplace_back(context, nodes, "orders:42", fair);
    run([&]() -> net::awaitable<void> {
        const auto acquired = co_await holder.async_acquire(net::use_awaitable);
        EXPECT_TRUE(acquired) << acquired.message();
        const auto executor = co_await net::this_coro::executor;
        net::steady_timer timer{executor};
        for (int i = 0; i < 6; ++i) {
            waiting[static_cast<std::size_t>(i)].async_acquire_for(50s, [&, i](Result it) {
                EXPECT_TRUE(it) << it.message();
                order.push_back(i);
                waiting[static_cast<std::size_t>(i)].async_release([](Result) {});
            });
            timer.expires_after(100ms);
            co_await timer.async_wait(net::use_awaitable);
        }
        EXPECT_EQ(cluster[0].command({"ZCARD", "{orders:42}:queue"}), "4");
        const auto released = co_await holder.async_release(net::use_awaitable);
        EXPECT_TRUE(released);
    });
    EXPECT_THAT(order, testing::ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_TRUE(no_key_is_left());
}

TEST_F(Asio, ASecondOperationDoesNotDisturbTheCancellationOfTheFirst) {
    for (const bool cancel_first : {true, false}) {
        redlock::Lock other{nodes, "orders:42"};
        ASSERT_TRUE(other.acquire());
        Lock lock{context, nodes, "orders:42", {.retry = {.delay = 20ms}}};
        net::cancellation_signal first_signal;
        net::cancellation_signal second_signal;
        std::optional<Result> first;
        std::optional<Result> second;
        lock.async_acquire_for(
            5s, net::bind_cancellation_slot(first_signal.slot(), [&](Result it) { first = std::move(it); }));
        lock.async_acquire_for(5s, net::bind_cancellation_slot(second_signal.slot(),
                                                               [&](Result it) { second = std::move(it); }));
        // No handler is called before run(), so each signal still reaches its operation.
        (cancel_first ? first_signal : second_signal).emit(net::cancellation_type::terminal);
        if (!cancel_first) {
            ASSERT_TRUE(other.release());
        }
        run();
        ASSERT_TRUE(first);
        ASSERT_TRUE(second);
        EXPECT_EQ(second->error(), std::errc::operation_in_progress);
        EXPECT_EQ(first->error(), cancel_first ? make_error_code(Errc::cancelled) : std::error_code{});
    }
}

// The handler of the first operation waits in its executor.
TEST_F(Asio, ALateCancellationDoesNotReachTheNextOperation) {
    redlock::Lock other{nodes, "orders:42"};
    ASSERT_TRUE(other.acquire());
    net::io_context of_handler;
    Lock lock{context, nodes, "orders:42", {.retry = {.delay = 20ms}}};
    net::cancellation_signal signal;
    std::optional<Result> first;
    std::optional<Result> second;
    lock.async_try_acquire(net::bind_cancellation_slot(
        signal.slot(), net::bind_executor(of_handler, [&](Result it) { first = std::move(it); })));
    run();
    lock.async_acquire_for(5s, [&](Result it) { second = std::move(it); });
    signal.emit(net::cancellation_type::terminal);
    ASSERT_TRUE(other.release());
    run();
    ASSERT_TRUE(second);
    EXPECT_TRUE(*second) << second->message();
    EXPECT_FALSE(first);
    of_handler.run();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->error(), Errc::held_by_other);
}

TEST_F(Asio, ACancellationOfNoTypeHasNoEffect) {
    Lock lock{context, nodes, "orders:42"};
    net::cancellation_signal signal;
    std::optional<Result> acquired;
    lock.async_acquire(net::bind_cancellation_slot(signal.slot(), [&](Result it) { acquired = it; }));
    signal.emit(net::cancellation_type::none);
    run();
    ASSERT_TRUE(acquired);
    EXPECT_TRUE(*acquired) << acquired->message();
}

// Otherwise a later emit() would call a function of the library.
TEST_F(Asio, TheCancellationSlotIsEmptyWhenTheHandlerIsCalled) {
    Lock lock{context, nodes, "orders:42"};
    net::cancellation_signal signal;
    std::optional<bool> can_cancel;
    lock.async_try_acquire(net::bind_cancellation_slot(
        signal.slot(), [&](const Result&) { can_cancel = signal.slot().has_handler(); }));
    EXPECT_TRUE(signal.slot().has_handler());
    run();
    EXPECT_EQ(can_cancel, false);
}

/// A slot without memory for what is to be called, and a handler with this slot.
struct FullSlot {
    static bool is_connected() noexcept { return true; }
    template <class Function>
    void assign(Function&&) {
        throw std::bad_alloc{};
    }
    static void clear() noexcept {}
};
struct WithFullSlot {
    using cancellation_slot_type = FullSlot;
    static FullSlot get_cancellation_slot() noexcept { return {}; }
    void operator()(const Result&) const { *called = true; }
    bool* called;
};

TEST_F(Asio, AnOperationDoesNotBeginBeforeItCanBeCancelled) {
    Lock lock{context, nodes, "orders:42"};
    bool called = false;
    EXPECT_THROW(lock.async_acquire(WithFullSlot{&called}), std::bad_alloc);
    run();
    EXPECT_FALSE(called);
    EXPECT_FALSE(lock.valid());
    acquire(lock);
}

TEST_F(Asio, DestroyingTheContextCallsNoHandler) {
    redlock::Lock other{nodes, "held", {.ttl = 10min}};
    ASSERT_TRUE(other.acquire());
    for (const bool contended : {false, true})
        for (std::size_t steps = 0; steps < 20; ++steps) {
            const std::string resource = contended ? "held" : "orders:42";
            bool ended = false;
            auto of_loop = std::make_unique<net::io_context>();
            // The frame of the coroutine owns the lock, and the context owns the frame.
            net::co_spawn(
                *of_loop,
                [&]() -> net::awaitable<void> {
                    Lock lock{*of_loop, nodes, resource, {.retry = {.attempts = 1000}}};
                    (void)co_await lock.async_acquire(net::use_awaitable);
                    (void)co_await lock.async_release(net::use_awaitable);
                    ended = true;
                },
                net::detached);
            for (std::size_t i = 0; i < steps; ++i) of_loop->run_one_for(1ms);
            const bool ended_before = std::exchange(ended, false);
            of_loop.reset();
            EXPECT_FALSE(ended);
            if (!ended_before && !contended) {
                EXPECT_TRUE(no_key_is_left()) << "after " << steps;
            }
        }
    EXPECT_TRUE(other.valid());
    EXPECT_EQ(keys("held"), 5U);
}

TEST_F(Asio, ALockMayOutliveItsContext) {
    std::optional<net::io_context> of_lock{std::in_place};
    Lock lock{*of_lock, nodes, "orders:42"};
    lock.async_acquire([](Result) {});
    of_lock->run();
    EXPECT_TRUE(lock.valid());
    of_lock.reset();
    EXPECT_TRUE(lock.valid());
    lock = Lock{context, nodes, "another"};
    EXPECT_TRUE(no_key_is_left());
    ASSERT_EQ(&net::query(lock.get_executor(), net::execution::context), &context);
    acquire(lock);
}

// The destructor of the context destroys handlers: first those of the operations of locks, and then those
// that were posted. The destructors of these handlers make locks with the nodes of the first lock, and with
// others.
TEST_F(Asio, AHandlerThatIsDestroyedWithItsContextMayMakeLocks) {
    RedisNodes others{cluster.uris()};
    for (const auto* const owner : {"an operation", "a posted handler", "a posted handler, without a lock"}) {
        SCOPED_TRACE(owner);
        const std::string_view of{owner};
        std::vector<Lock> made;
        std::optional<Lock> lock;
        auto of_lock = std::make_unique<net::io_context>();
        const auto make_locks = [&made, &its_context = *of_lock, of_others = &others,
                                 of_nodes = &nodes](void*) {
            for (auto* const of_late : {of_nodes, of_others}) {
                made.emplace_back(its_context, *of_late, "orders:42");
                made.back().async_acquire([](const Result&) { FAIL(); });
            }
        };
        const auto handler = [](auto end) { return [end = std::move(end)](const auto&...) { FAIL(); }; };
        std::shared_ptr<void> at_its_end{nullptr, make_locks};
        if (of != "a posted handler, without a lock") lock.emplace(*of_lock, nodes, "orders:42");
        if (of == "an operation")
            lock->async_acquire(handler(std::move(at_its_end)));
        else
            net::post(*of_lock, handler(std::move(at_its_end)));
        of_lock.reset();
        EXPECT_EQ(made.size(), 2U);
        EXPECT_FALSE(made.front().valid());
    }
    EXPECT_TRUE(no_key_is_left());
}

TEST_F(Asio, LocksOfTwoNodesInOneContextUseTheirOwnServers) {
    const auto with_the_first = [this](std::size_t second, std::size_t third) {
        return std::vector{cluster[0].uri(), cluster[second].uri(), cluster[third].uri()};
    };
    RedisNodes some{with_the_first(1, 2), {.node_timeout = 1s}};
    RedisNodes others{with_the_first(3, 4), {.node_timeout = 1s}};
    Lock first{context, some, "first"};
    Lock second{context, others, "second"};
    for (auto* const lock : {&first, &second}) lock->async_acquire([](const Result& it) { EXPECT_TRUE(it); });
    run();
    const auto has = [this](std::size_t node, const std::string& resource) {
        return cluster[node].command({"EXISTS", resource}) == "1";
    };
    for (std::size_t node = 0; node < cluster.size(); ++node) {
        EXPECT_EQ(has(node, "first"), node < 3) << node;
        EXPECT_EQ(has(node, "second"), node == 0 || node > 2) << node;
    }
}

// Every other lock is still sending its release when its nodes are destroyed.
TEST_F(Asio, ClosesTheConnectionsToNodesThatWereDestroyed) {
    const auto before = support::descriptors().size();
    for (int i = 0; i < 20; ++i) {
        RedisNodes others{cluster.uris(), {.node_timeout = 1s}};
        {
            Lock lock{context, others, "orders:42"};
            acquire(lock);
        }
        if (i % 2 != 0) continue;
        run();
        EXPECT_TRUE(no_key_is_left());
    }
    EXPECT_LT(support::descriptors().size(), before + 20) << "each of them had more than five";
}

/// A handler for which there is no memory at first.
struct LateHandler final : asio::detail::Postable {
    LateHandler(const bool& of_memory, int& calls) : has_memory(of_memory), posted(calls) {}
    void post() override {
        if (!has_memory) throw std::bad_alloc{};
        ++posted;
    }
    const bool& has_memory;
    int& posted;
};

TEST_F(Asio, PostsAHandlerThatWaitsForMemoryAlthoughItsNodesWereDestroyed) {
    bool has_memory = false;
    int posted = 0;
    {
        RedisNodes others{cluster.uris()};
        const auto loop = asio::detail::loop_of(context.get_executor(), others);
        const std::lock_guard guard{loop->mutex()};
        loop->post(std::make_shared<LateHandler>(has_memory, posted));
        loop->wake_after(std::chrono::nanoseconds::max());  // nothing else is left to do
    }
    const Lock another{context, nodes, "orders:42"};
    has_memory = true;
    run();
    EXPECT_EQ(posted, 1);
}

TEST_F(Asio, RunReturnsAlthoughANodeDropsPackets) {
    const SilentAddress silent{"127.0.0.5", cluster[2].port()};
    RedisNodes others{
        {cluster[0].uri(), cluster[1].uri(), "redis://127.0.0.5:" + std::to_string(cluster[2].port())},
        {.node_timeout = 1s}};
    const auto start = std::chrono::steady_clock::now();
    Lock lock{context, others, "orders:42"};
    acquire(lock);
    lock.async_release([](const Result& it) { EXPECT_TRUE(it); });
    run();
    EXPECT_LT(std::chrono::steady_clock::now(), start + 60s) << "the kernel gives up after two minutes";
}

TEST_F(Asio, AnExceptionOfAHandlerOrOfItsExecutorReachesRunOnce) {
    int posted = 0;
    const net::any_io_executor rejects = Elsewhere{&context, nullptr, &posted};
    for (const auto& executor : {net::any_io_executor{context.get_executor()}, rejects}) {
        Lock lock{context, nodes, "orders:42"};
        lock.async_acquire(
            net::bind_executor(executor, [](const Result&) { throw std::runtime_error("of the user"); }));
        EXPECT_THROW(context.run(), std::runtime_error);
        EXPECT_TRUE(lock.valid());
        auto released = lock.async_release(net::use_future);
        run();
        EXPECT_TRUE(released.get());
    }
}

TEST_F(Asio, ACoroutineCanCatchTheExceptionOfABadTtl) {
    bool caught = false;
    net::co_spawn(
        context,
        [&]() -> net::awaitable<void> {
            Lock lock{context, nodes, "orders:42"};
            EXPECT_TRUE(co_await lock.async_acquire(net::use_awaitable));
            try {
                (void)co_await lock.async_extend(0ms, net::use_awaitable);
            } catch (const std::invalid_argument& error) {
                caught = std::string{error.what()}.find("ttl") != std::string::npos;
            }
        },
        net::detached);
    run();
    EXPECT_TRUE(caught);
}

TEST_F(Asio, SeveralThreadsRunTheContext) {
    std::atomic<int> inside = 0;
    std::atomic<int> entered = 0;
    for (int i = 0; i < 40; ++i)
        net::co_spawn(
            net::make_strand(context),
            [&, i]() -> net::awaitable<void> {
                const auto executor = co_await net::this_coro::executor;
                const auto resource = "shared:" + std::to_string(i % 8);
                Lock lock{executor, nodes, resource, {.ttl = 1min, .retry = {.delay = 5ms}}};
                const auto acquired = co_await lock.async_acquire_for(1min, net::use_awaitable);
                EXPECT_TRUE(acquired) << acquired.message();
                EXPECT_LE(++inside, 8);
                ++entered;
                --inside;
                const auto released = co_await lock.async_release(net::use_awaitable);
                EXPECT_TRUE(released);
            },
            net::detached);
    support::in_threads(4, [&](auto) { context.run(); });
    EXPECT_EQ(entered, 40);
}

// Each function of the library in the context waits for the mutex, which this thread has locked.
TEST_F(Asio, NoThreadWorksForTheLibraryWithoutTheMutex) {
    Lock lock{context, nodes, "orders:42"};
    acquire(lock);
    lock.async_extend(1min, [](const Result& it) { EXPECT_TRUE(it) << it.message(); });
    const auto loop = asio::detail::loop_of(context.get_executor(), nodes);
    while (lock.remaining() < 30s) {
        std::unique_lock locked{loop->mutex()};
        const auto step = std::async(std::launch::async, [&] { (void)context.run_one(); });
        ASSERT_EQ(step.wait_for(10ms), std::future_status::timeout);
        locked.unlock();
    }
    run();
}

TEST_F(Asio, ABlockedExecutorOfTheFirstLockDelaysNoOtherLock) {
    const auto strand = net::make_strand(context);
    Lock first{strand, nodes, "first"};
    Lock second{context, nodes, "orders:42"};
    std::promise<void> end;
    net::post(strand, [&] { end.get_future().wait(); });
    auto acquired = second.async_acquire(net::use_future);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i) threads.emplace_back([&] { context.run(); });
    EXPECT_EQ(acquired.wait_for(1min), std::future_status::ready);
    end.set_value();
    threads.clear();
    EXPECT_TRUE(acquired.get());
}

// The handler may wait for another thread, which waits for the mutex.
TEST_F(Asio, AHandlerInAThreadPoolRunsWithoutTheMutex) {
    net::thread_pool pool{1};
    Lock lock{pool, nodes, "orders:42"};
    const auto loop = asio::detail::loop_of(pool.get_executor(), nodes);
    std::promise<bool> is_free;
    lock.async_acquire([&](const Result&) {
        const auto try_lock = [&] { return std::unique_lock{loop->mutex(), std::try_to_lock}.owns_lock(); };
        is_free.set_value(std::async(std::launch::async, try_lock).get());
    });
    EXPECT_TRUE(is_free.get_future().get());
}

TEST_F(Asio, ACallbackOnALossMayMakeALockWhileAnotherThreadMakesOne) {
    Lock lock{context, nodes, "orders:42", {.ttl = 3s, .watchdog = loop_watchdog()}};
    lock.async_acquire([](Result it) { EXPECT_TRUE(it); });
    EXPECT_TRUE(run_until([&] { return lock.valid(); }));
    std::jthread other;
    std::future<void> third;
    std::atomic<pid_t> id_of_other = 0;
    bool called = false;
    const auto other_sleeps = [&] { return support::state_of(std::to_string(id_of_other)) == 'S'; };
    const std::stop_callback on_loss{
        lock.lost(), [&] {
            other = std::jthread{[&] {
                id_of_other = static_cast<pid_t>(::syscall(SYS_gettid));
                const Lock of_other{context, nodes, "other"};
            }};
            EXPECT_TRUE(wait_until([&] { return id_of_other != 0 && other_sleeps(); }));
            called = true;
            third = std::async(std::launch::async,
                               [&] { (void)asio::detail::loop_of(context.get_executor(), nodes); });
            if (third.wait_for(1min) != std::future_status::ready)
                return ADD_FAILURE() << "the other thread keeps everybody from making a lock";
            const Lock of_callback{context, nodes, "callback"};
        }};
    for (auto& server : cluster) server.command({"DEL", "orders:42"});
    EXPECT_TRUE(run_until([&] { return called; }));
}

/// Acquires and releases a lock in a context of its own. A child of fork() has no threads that would call the
/// handlers of use_future.
bool acquires_and_releases(RedisNodes& nodes) {
    net::io_context context;
    Lock lock{context, nodes, "the child's", {.watchdog = loop_watchdog()}};
    std::optional<Result> released;
    lock.async_acquire([&](const Result& acquired) {
        if (acquired) lock.async_release([&](Result it) { released = std::move(it); });
    });
    context.run();
    return released && *released;
}

TEST_F(Asio, AForkedChildLeavesTheLoopOfItsParentAlone) {
    auto of_lock = std::make_unique<net::io_context>();
    auto lock = std::make_unique<Lock>(*of_lock, nodes, "orders:42");
    lock->async_acquire([](Result it) { EXPECT_TRUE(it); });
    of_lock->run();
    of_lock->restart();
    auto waiting =
        std::make_unique<Lock>(*of_lock, nodes, "orders:42", LockOptions{.retry = {.attempts = 1000}});
    waiting->async_acquire([](Result) {});
    const ForkedChild child{[&](const Report& report) {
        report(lock->valid() ? "valid" : "not valid");
        lock.reset();
        waiting.reset();
        of_lock.reset();
        report("has destroyed all");
    }};
    EXPECT_EQ(child.receive(), "not valid");
    EXPECT_EQ(child.receive(), "has destroyed all");
    EXPECT_TRUE(lock->valid());
    EXPECT_EQ(keys(), 5U);
    waiting.reset();
    bool released = false;
    lock->async_release([&](Result it) { released = static_cast<bool>(it); });
    of_lock->run();
    EXPECT_TRUE(released);
    EXPECT_TRUE(no_key_is_left());
}

// Nothing but the context refers to the loop, because no lock exists and nothing is under way.
TEST_F(Asio, AForkedChildThatDestroysAnIdleContextLeavesTheLoopOfItsParentAlone) {
    auto of_lock = std::make_unique<net::io_context>();
    const auto run = [&of_lock] {
        of_lock->run();
        of_lock->restart();
    };
    {
        Lock lock{*of_lock, nodes, "orders:42"};
        lock.async_acquire([](const Result& it) { EXPECT_TRUE(it) << it.message(); });
        run();
    }
    run();
    const ForkedChild child{[&](const Report& report) {
        of_lock.reset();
        report("has destroyed the context");
    }};
    EXPECT_EQ(child.receive(), "has destroyed the context");
    Lock lock{*of_lock, nodes, "orders:42"};
    lock.async_acquire([](const Result& it) { EXPECT_TRUE(it) << it.message(); });
    EXPECT_TRUE(wait_until([&] {
        (void)of_lock->run_for(10ms);
        return lock.valid();
    }));
}

// The daemon closes all descriptors, and opens files that get their numbers. It keeps the context of its
// parent for ever, because Asio would close its descriptors by their numbers.
TEST_F(Asio, ADaemonKeepsItsFilesAndUsesAContextOfItsOwn) {
    const support::TemporaryDirectory directory;
    std::optional<Lock> lock{std::in_place, context, nodes, "orders:42",
                             LockOptions{.ttl = 1min, .watchdog = loop_watchdog()}};
    lock->async_acquire([](const Result& it) { EXPECT_TRUE(it); });
    while (!lock->valid()) context.run_one();
    std::optional<Lock> waiting{std::in_place, context, nodes, "orders:42", LockOptions{.fair = true}};
    waiting->async_acquire_for(1min, [](const Result&) {});
    ASSERT_TRUE(run_until([&] { return cluster[0].command({"ZCARD", "{orders:42}:queue"}) == "1"; }));
    const ForkedChild daemon{[&](const Report& report) {
        OwnFiles files{directory.path(), report.descriptor()};
        lock.reset();
        waiting.reset();
        report(files.state());
        for (int i = 0; i < 3; ++i) report(acquires_and_releases(nodes) ? "worked" : "did not work");
        report(files.state());
    }};
    EXPECT_EQ(daemon.receive(), "as written") << "after the daemon has destroyed the locks of its parent";
    for (int i = 0; i < 3; ++i) EXPECT_EQ(daemon.receive(), "worked");
    EXPECT_EQ(daemon.receive(), "as written");
    EXPECT_EQ(OwnFiles::lines_executed_by(cluster), 0U);
    EXPECT_TRUE(lock->valid());
    EXPECT_EQ(keys(), 5U);
}

// The mutex stays locked for ever in the child, because its owner is a thread of the parent.
TEST_F(Asio, AForkedChildDoesNotWaitForTheMutexOfItsParent) {
    std::optional<Lock> lock{std::in_place, context, nodes, "orders:42", LockOptions{.ttl = 1min}};
    acquire(*lock);
    lock->async_extend([](const Result&) {});
    context.run_one();
    std::unique_lock locked{asio::detail::loop_of(context.get_executor(), nodes)->mutex()};
    context.notify_fork(net::execution_context::fork_prepare);
    const ForkedChild child{[&](const Report& report) {
        context.notify_fork(net::execution_context::fork_child);
        context.run_for(100ms);
        report("has run the context");
        lock.reset();
        report("has destroyed the lock");
    }};
    context.notify_fork(net::execution_context::fork_parent);
    locked.unlock();
    EXPECT_EQ(child.receive(), "has run the context");
    EXPECT_EQ(child.receive(), "has destroyed the lock");
    run();
    EXPECT_TRUE(lock->valid());
}

// After notify_fork() the child may go on with its own work in the context of its parent, which does nothing
// for the locks of the parent there.
TEST_F(Asio, AForkedChildMayUseTheContextOfItsParentForOtherWork) {
    Lock lock{context, nodes, "orders:42", {.ttl = 1min}};
    acquire(lock);
    std::optional<Result> extended;
    lock.async_extend([&](Result it) { extended = std::move(it); });
    context.notify_fork(net::execution_context::fork_prepare);
    const ForkedChild child{[&](const Report& report) {
        context.notify_fork(net::execution_context::fork_child);
        report(acquires_and_releases(nodes) ? "worked" : "did not work");
        net::steady_timer timer{context, 200ms};
        timer.async_wait([&](auto) { context.stop(); });
        context.run();
        report(extended ? "ended" : "under way");
    }};
    context.notify_fork(net::execution_context::fork_parent);
    run();
    ASSERT_TRUE(extended);
    EXPECT_TRUE(*extended) << extended->message();
    EXPECT_EQ(child.receive(), "worked");
    EXPECT_EQ(child.receive(), "under way");
}

}  // namespace
}  // namespace redlock::test::asio_lock_live_test
