// Threads and event loops on one RedisNodes at once. They share the kept releases of each node and the list
// of former loops. ThreadSanitizer runs this test, too.
#include "live/live_world.hpp"
#include "poll_loop.hpp"
#include "support/in_threads.hpp"

#include <redlock/async_lock.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace redlock::test::threads_and_loops_live_test {
namespace {

constexpr auto ttl = 2s;
constexpr std::size_t loops = 2;
constexpr std::size_t lives = 4;  // of the AsyncNodes of each loop
constexpr std::size_t locks = 24;
constexpr std::size_t turns = 12;

std::string resource_of(std::string_view kind, std::size_t number, std::size_t lock) {
    return std::string{kind} + std::to_string(number) + ":" + std::to_string(lock);
}

class ThreadsAndLoops : public InEachRound {
protected:
    /// A thread acquires and releases. Nobody awaits two of three releases.
    void use_locks(std::size_t thread) {
        for (std::size_t turn = 0; turn < turns; ++turn) {
            Lock lock{
                world.nodes, resource_of("thread", thread, turn), {.ttl = ttl, .retry = {.attempts = 1}}};
            record(lock.acquire());
            if (turn % 3 == 0) (void)lock.release();
            if (turn % 3 == 1) lock.unlock();
        }
    }

    /// The locks of a loop do the same, and every fourth one is destroyed while it is being acquired. Every
    /// second AsyncNodes is destroyed while half of the operations are under way.
    void use_loop(std::size_t number) {
        for (std::size_t life = 0; life < lives; ++life) {
            std::vector<std::unique_ptr<AsyncLock>> all;
            std::size_t ended = 0;
            PollLoop loop;
            AsyncNodes of_loop{world.nodes, loop};
            for (std::size_t i = 0; i < locks; ++i) {
                const LockOptions options{.ttl = ttl, .retry = {.attempts = 1}};
                all.push_back(std::make_unique<AsyncLock>(of_loop, resource_of("loop", number, i), options));
                all[i]->acquire([&, i](const Result& result) {
                    ++ended;
                    record(result);
                    if (i % 4 == 0)
                        all[i].reset();
                    else if (all[i])
                        all[i]->release([](const Result&) {});
                });
            }
            for (std::size_t i = 1; i < locks; i += 4) all[i].reset();
            const auto enough = life % 2 == 0 ? locks : locks / 2;
            while (ended < enough && loop.run_once()) {
            }
            EXPECT_GE(ended, enough);
        }
    }

    void record(const Result& result) {
        if (result) ++successes;
        ++operations;
    }

    LiveWorld world{3, {.node_timeout = 1s, .round = GetParam(), .share_connections = true}};
    std::atomic<std::size_t> operations = 0;
    std::atomic<std::size_t> successes = 0;
};
INSTANTIATE_TEST_SUITE_P(EachRound, ThreadsAndLoops, each_round(), by_round);

// All connections break several times. A key can stay until it expires if its connection broke while its SET
// was pending.
TEST_P(ThreadsAndLoops, ShareOneRedisNodesWhileConnectionsBreak) {
    const auto threads = std::max<std::size_t>(16, 4 * std::thread::hardware_concurrency());
    std::jthread breaking{[&](const std::stop_token& stop) {
        for (std::size_t seen = 0; !stop.stop_requested();) {
            if (!wait_until([&] { return stop.stop_requested() || operations >= seen + 20; })) return;
            seen = operations;
            for (const auto& server : world) server.command({"CLIENT", "KILL", "TYPE", "normal"});
        }
    }};
    in_threads(threads + loops, [&](std::size_t number) {
        if (number < loops)
            use_loop(number);
        else
            use_locks(number - loops);
    });
    breaking = {};
    EXPECT_GT(successes, 0U);
    EXPECT_TRUE(wait_until([&] { return world.clean(); }));
    EXPECT_TRUE(world.warm_up());
    EXPECT_TRUE(wait_until([&] { return world.clean(); }));
}

}  // namespace
}  // namespace redlock::test::threads_and_loops_live_test
