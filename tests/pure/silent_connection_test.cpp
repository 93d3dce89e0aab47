// A server that stops to answer while only extensions run. The other nodes are a quorum, so each round is
// over before the reply of this server is due, and no round waits for it. The connection that the rounds
// share must find out by itself that a reply is missing.
#include "memory_loop.hpp"
#include "support/any_front.hpp"

#include <redlock/lock.hpp>
#include <redlock/observer.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

namespace redlock::test::silent_connection_test {
namespace {

constexpr std::size_t size = 3;     // nodes
constexpr std::size_t silent = 2;   // the node that stops to answer
constexpr std::size_t replica = 3;  // the server that the Sentinels name later
constexpr auto node_timeout = 50ms;

struct Failures : Observer {
    void backing_off(std::string_view, std::error_code cause, std::string_view detail,
                     std::chrono::nanoseconds) noexcept override {
        last = cause.message() + ", " + std::string{detail};
        ++count;
    }
    std::size_t count = 0;
    std::string last{};
};

enum class Front { loop, threads };
enum class Named { by_its_address, by_sentinels };

class SilentConnection : public testing::TestWithParam<std::tuple<Front, Named>> {
protected:
    SilentConnection() {
        (void)lock.try_acquire();
        (void)lock.extend();
        network.server(silent).forget_log();
    }

    std::vector<NodeConfig> configs() {
        auto result = network.configs();
        result.resize(size);
        if (std::get<Named>(GetParam()) == Named::by_its_address) return result;
        result[silent].sentinels = std::make_shared<const std::vector<NodeConfig>>(1);
        result[silent].asks_sentinels = [this] {
            return Resolution::of_host("127.0.0.1", static_cast<std::uint16_t>(1 + named));
        };
        return result;
    }
    using AnyLock = support::OfAnyFront<Lock, AsyncLock>;
    /// The rounds of threads share connections, because there are no processors.
    AnyLock make_lock() {
        const LockOptions ttl{.ttl = 10min};
        if (std::get<Front>(GetParam()) == Front::threads)
            return AnyLock{Lock{nodes, "r", ttl, network.clock(), network.entropy()}};
        return {AsyncLock{of_loop, "r", ttl},
                {.one = [this] { return loop.run_once(network.clock().now() + 1s) || true; }}};
    }

    /// Extends the lock every 10 ms. The other nodes always grant that.
    void extend_for(Clock::duration span) {
        for (const auto end = network.clock().now() + span; network.clock().now() < end; network.pass(10ms)) {
            const auto result = lock.extend();
            const auto reports = result.nodes();
            EXPECT_EQ(std::ranges::count(reports, Vote::granted, &NodeReport::vote) -
                          (reports[silent].vote == Vote::granted),
                      2);
        }
    }
    std::size_t extensions_at(std::size_t server) {
        return static_cast<std::size_t>(std::ranges::count_if(
            network.server(server).log(), [](auto& it) { return it.find(" EVAL") != it.npos; }));
    }

    MemoryNetwork network{size + 1};
    std::size_t named = silent;
    Failures failures{};
    MemoryLoopNodes nodes{network,
                          configs(),
                          {.node_timeout = node_timeout, .round = Round::all_at_once, .observer = &failures},
                          0};
    MemoryLoop loop{network};
    AsyncNodes of_loop{nodes, loop, network.clock(), network.entropy()};
    AnyLock lock = make_lock();
};
INSTANTIATE_TEST_SUITE_P(Of, SilentConnection,
                         testing::Combine(testing::Values(Front::loop, Front::threads),
                                          testing::Values(Named::by_its_address, Named::by_sentinels)),
                         [](const auto& info) {
                             return std::string{std::get<Front>(info.param) == Front::loop ? "ALoop"
                                                                                           : "Threads"} +
                                    (std::get<Named>(info.param) == Named::by_its_address ? ""
                                                                                          : "WithSentinels");
                         });

// D4.
TEST_P(SilentConnection, IsAFailureOfItsNode) {
    network.server(silent).paused = true;
    extend_for(node_timeout);
    EXPECT_EQ(failures.count, 0U) << "a reply may take a node_timeout";
    extend_for(500ms);
    EXPECT_EQ(failures.count, 1U);
    EXPECT_THAT(failures.last, HasSubstr("timed out"));
    EXPECT_THAT(failures.last, HasSubstr("a reply is missing")) << failures.last;
    network.server(silent).resume(network.clock().now());
    EXPECT_LE(extensions_at(silent), node_timeout / 10ms + 1) << "further ones would wait for nothing";
    extend_for(500ms);
    EXPECT_GT(extensions_at(silent), 30U) << "trusted again";
}

// A watchdog extends once in a third of the ttl.
TEST_P(SilentConnection, IsReplacedByTheRoundThatNoticesIt) {
    auto& server = network.server(silent);
    server.paused = true;
    for (std::size_t i = 0; i < 2; ++i) {
        (void)lock.extend();
        EXPECT_EQ(failures.count, i);
        network.pass(900ms);
    }
    EXPECT_EQ(server.connections(), 2U);
}

// A process that was suspended reads what has arrived meanwhile before it judges.
TEST_P(SilentConnection, IsReadBeforeItIsJudged) {
    network.server(silent).latency = 5ms;
    (void)lock.extend();
    network.pass(500ms);
    network.server(silent).latency = 1ms;
    extend_for(200ms);
    EXPECT_EQ(failures.count, 0U);
    EXPECT_EQ(network.server(silent).connections(), 1U);
}

// The time belongs to the oldest command without a reply. A connection may be unused for any time.
TEST_P(SilentConnection, MayAnswerSlowly) {
    network.server(silent).latency = node_timeout - 5ms;
    for (int i = 0; i < 5; ++i) {
        extend_for(300ms);
        network.pass(500ms);
    }
    EXPECT_EQ(failures.count, 0U);
    EXPECT_EQ(network.server(silent).connections(), 1U);
}

// B5. The server has not answered the SET. No other command of its owner may overtake the SET.
TEST_P(SilentConnection, GetsTheReleaseOfItsPendingSet) {
    (void)lock.release();
    auto& server = network.server(silent);
    server.paused = true;
    server.forget_log();
    (void)lock.try_acquire();
    extend_for(200ms);
    EXPECT_EQ(failures.count, 1U);
    (void)lock.release();
    network.resume(silent);
    EXPECT_TRUE(server.redis->keys().empty());
    EXPECT_EQ(server.log().front(), "1 SET");
    EXPECT_THAT(server.log(), Each(StartsWith("1 ")));
}

/// The Sentinels name another server a while after theirs has frozen.
using SilentMaster = SilentConnection;
INSTANTIATE_TEST_SUITE_P(Of, SilentMaster,
                         testing::Combine(testing::Values(Front::loop, Front::threads),
                                          testing::Values(Named::by_sentinels)),
                         [](const auto& info) {
                             return std::get<Front>(info.param) == Front::loop ? "ALoop" : "Threads";
                         });

TEST_P(SilentMaster, IsLeftSoonAfterAnotherIsNamed) {
    network.server(silent).paused = true;
    extend_for(3s);
    named = replica;
    const auto start = network.clock().now();
    while (extensions_at(replica) == 0 && network.clock().now() < start + 15s) extend_for(10ms);
    EXPECT_LE(network.clock().now() - start, 1200ms) << "max_connecting, and a pause";
    EXPECT_LE(extensions_at(silent), 1U);
}

}  // namespace
}  // namespace redlock::test::silent_connection_test
