// redlock::asio::Leader against real servers.
#include "asio_world.hpp"
#include "live/forked_child.hpp"

#include <redlock/asio_leader.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace redlock::test::asio_leader_live_test {
namespace {

using asio::Leader;

struct AsioLeader : Asio {
    /// The ttl is so long that only a release removes a key in time.
    static LeaderOptions options() { return {.ttl = 10min, .margin = 3s, .retry = {.delay = 20ms}}; }
};

TEST_F(AsioLeader, CoroutinesLeadInTurn) {
    std::deque<net::cancellation_signal> signals;
    std::uint64_t last_token = 0;
    int inside = 0;
    int led = 0;
    int ended = 0;
    const auto work = [&](redlock::Term term) -> net::awaitable<void> {
        EXPECT_EQ(++inside, 1) << "two leaders at once";
        EXPECT_GT(term.fencing_token(), last_token);
        last_token = term.fencing_token();
        net::steady_timer timer{co_await net::this_coro::executor, 1ms};
        co_await timer.async_wait(net::use_awaitable);
        EXPECT_GT(term.remaining(), 3s);
        --inside;
        if (++led == 12)
            for (auto& signal : signals) signal.emit(net::cancellation_type::terminal);
    };
    std::deque<Leader> leaders;
    for (int i = 0; i < 3; ++i)
        leaders.emplace_back(context, nodes, "orders:42", options())
            .async_run(work,
                       net::bind_cancellation_slot(signals.emplace_back().slot(), [&](std::exception_ptr it) {
                           EXPECT_FALSE(it);
                           ++ended;
                       }));
    run();
    EXPECT_EQ(ended, 3);
    EXPECT_GE(led, 12);
    EXPECT_TRUE(no_key_is_left());
}

TEST_F(AsioLeader, ACoroutineGetsTheExceptionOfTheWork) {
    EXPECT_THROW(run([&]() -> net::awaitable<void> {
                     const auto executor = co_await net::this_coro::executor;
                     Leader leader{executor, nodes, "orders:42", options()};
                     const auto work = [](redlock::Term) -> net::awaitable<void> {
                         throw std::runtime_error("broken");
                         co_return;
                     };
                     co_await leader.async_run(work, net::use_awaitable);
                 }),
                 std::runtime_error);
    EXPECT_TRUE(no_key_is_left());
}

TEST_F(AsioLeader, ReportsExceptionsByTheExecutor) {
    const auto strand = net::make_strand(context);
    std::vector<std::string> errors;
    auto its = options();
    its.on_error = [&](const std::exception_ptr& it) {
        EXPECT_TRUE(strand.running_in_this_thread());
        try {
            std::rethrow_exception(it);
        } catch (const std::runtime_error& error) {
            errors.emplace_back(error.what());
        }
        if (errors.size() == 3) context.stop();
    };
    Leader leader{strand, nodes, "orders:42", its};
    leader.async_run(
        [](redlock::Term) -> net::awaitable<void> {
            throw std::runtime_error("broken");
            co_return;
        },
        [](std::exception_ptr) {});
    run();
    EXPECT_THAT(errors, testing::ElementsAre("broken", "broken", "broken"));
}

TEST_F(AsioLeader, SeveralThreadsRunTheContext) {
    std::atomic<int> inside = 0;
    std::atomic<int> led = 0;
    std::atomic<int> ended = 0;
    std::deque<Leader> leaders;
    std::deque<net::cancellation_signal> signals;
    for (int i = 0; i < 4; ++i) {
        const auto strand = net::make_strand(context);
        signals.emplace_back();
        auto& leader = leaders.emplace_back(strand, nodes, "orders:42", options());
        leader.async_run(
            [&](AsyncTerm term) {
                EXPECT_EQ(++inside, 1);
                ++led;
                std::thread{[&, it = std::move(term)]() mutable {
                    --inside;
                    it.end();
                }}.join();
            },
            net::bind_cancellation_slot(signals.back().slot(), [&](std::exception_ptr) { ++ended; }));
    }
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { context.run(); });
    EXPECT_TRUE(wait_until([&] { return led >= 12; }));
    for (std::size_t i = 0; i < leaders.size(); ++i)
        net::post(leaders[i].get_executor(), [&, i] { signals[i].emit(net::cancellation_type::terminal); });
    threads.clear();
    EXPECT_EQ(ended, 4);
    EXPECT_TRUE(no_key_is_left());
}

/// A function that knows whether it exists when it is called.
struct Existing {
    Existing() { all.insert(this); }
    Existing(const Existing&) : Existing() {}
    Existing& operator=(const Existing&) = delete;
    ~Existing() { all.erase(this); }
    void operator()(const auto&) const { ++(all.contains(this) ? calls : late_calls); }

    static inline std::set<const Existing*> all{};
    static inline int calls = 0;
    static inline int late_calls = 0;
};

// A busy executor makes the call when async_run() has ended, and the options do not exist any more.
TEST_F(AsioLeader, APostedCallOutlivesTheLeader) {
    net::io_context caller;
    int posted = 0;
    Existing::calls = Existing::late_calls = 0;
    for (const bool work_fails : {false, true}) {
        auto owned = std::make_shared<int>();
        const std::weak_ptr of_options{owned};
        auto its = options();
        its.retry.delay = its.longest_pause = 1h;
        its.on_error = [owned](const std::exception_ptr&) {};
        its.on_failure = [owned](const Result&) {};
        owned.reset();
        if (work_fails)
            its.on_error = Existing{};
        else
            its.on_failure = Existing{};
        posted = 0;
        std::optional<Leader> leader{std::in_place, Elsewhere{&context, &caller, &posted}, nodes, "orders:42",
                                     std::move(its)};
        leader->async_run(
            [&](AsyncTerm term) {
                for (auto& server : cluster) server.command({"DEL", "orders:42"});
                if (work_fails) term.end(std::make_exception_ptr(std::runtime_error("broken")));
            },
            [](std::exception_ptr) {});
        ASSERT_TRUE(run_until([&] { return posted == 1; })) << "the work";
        caller.poll();
        ASSERT_TRUE(run_until([&] { return posted >= 2; })) << "the call of on_failure or on_error";
        leader.reset();
        ASSERT_TRUE(run_until([&] { return of_options.expired(); }));
        caller.restart();
        caller.poll();
        caller.restart();
    }
    EXPECT_EQ(Existing::calls, 2);
    EXPECT_EQ(Existing::late_calls, 0);
}

// The mutex stays locked for ever in the child, because its owner is a thread of the parent.
TEST_F(AsioLeader, AForkedChildThatDestroysATermDoesNotWaitForTheMutexOfItsParent) {
    std::optional<AsyncTerm> term;
    Leader leader{context, nodes, "orders:42", options()};
    leader.async_run([&](AsyncTerm it) { term.emplace(std::move(it)); }, [](std::exception_ptr) {});
    while (!term) context.run_one();
    std::unique_lock locked{asio::detail::loop_of(context.get_executor(), nodes)->mutex()};
    const ForkedChild child{[&](const Report& report) {
        term.reset();
        report("has destroyed the term");
    }};
    locked.unlock();
    EXPECT_EQ(child.receive(), "has destroyed the term");
    EXPECT_GT(term->remaining(), 0s);
}

}  // namespace
}  // namespace redlock::test::asio_leader_live_test
