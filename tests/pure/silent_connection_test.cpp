// A server that stops to answer while only extensions run. The other nodes are a quorum, so each round is
// over before the reply of this server is due, and no round waits for it. The connection that the rounds
// share must find out by itself that a reply is missing.
#include "memory_loop.hpp"

#include "redis/shared_rounds.hpp"

#include <redlock/async_lock.hpp>
#include <redlock/observer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace redlock::test {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

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

/// A client that holds the lock "r".
class Holder {
public:
    Holder() = default;
    virtual ~Holder() = default;
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

    virtual std::vector<NodeReport> acquire() = 0;
    virtual std::vector<NodeReport> extend() = 0;
    virtual std::vector<NodeReport> release() = 0;
};

class HolderInALoop final : public Holder {
public:
    HolderInALoop(MemoryNetwork& network, const std::vector<NodeConfig>& configs, const NodesOptions& options)
        : clock_(network.clock()),
          nodes_{network, configs, options},
          loop_{network},
          of_loop_{nodes_, loop_, network.clock(), network.entropy()} {}

    std::vector<NodeReport> acquire() override {
        return result_of([this](Completion done) { lock_.try_acquire(std::move(done)); });
    }
    std::vector<NodeReport> extend() override {
        return result_of([this](Completion done) { lock_.extend(std::move(done)); });
    }
    std::vector<NodeReport> release() override {
        return result_of([this](Completion done) { lock_.release(std::move(done)); });
    }

private:
    template <class Begin>
    std::vector<NodeReport> result_of(Begin begin) {
        std::optional<Result> result;
        begin([&](Result it) { result = std::move(it); });
        while (!result) (void)loop_.run_once(clock_.now() + 1s);
        return {result->nodes().begin(), result->nodes().end()};
    }

    Clock& clock_;
    MemoryLoopNodes nodes_;
    MemoryLoop loop_;
    AsyncNodes of_loop_;
    AsyncLock lock_{of_loop_, "r", {.ttl = 10min}};
};

class HolderInAThread final : public Holder {
public:
    HolderInAThread(MemoryNetwork& network, const std::vector<NodeConfig>& configs,
                    const NodesOptions& options)
        : rounds_{configs, options, network} {}

    std::vector<NodeReport> acquire() override { return ask(Verb::set_if_absent); }
    std::vector<NodeReport> extend() override { return ask(Verb::compare_and_expire); }
    std::vector<NodeReport> release() override { return ask(Verb::compare_and_delete); }

private:
    std::vector<NodeReport> ask(Verb verb) {
        const std::vector<std::string> resources{"r"};
        const Request request{.command = {.verb = verb, .resources = resources, .owner = "A", .ttl = 10min}};
        const RoundLimits limits{};
        Tally tally{std::make_shared<const std::vector<std::string>>(std::vector<std::string>(size, "n"))};
        rounds_.ask({&request, 1}, limits, {&tally, 1});
        return {tally.reports().begin(), tally.reports().end()};
    }

    SharedRounds rounds_;
};

enum class Front { loop, threads };
enum class Named { by_its_address, by_sentinels };

class SilentConnection : public testing::TestWithParam<std::tuple<Front, Named>> {
protected:
    SilentConnection() {
        (void)holder->acquire();
        (void)holder->extend();
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
    std::unique_ptr<Holder> make_holder() {
        const NodesOptions options{
            .node_timeout = node_timeout, .round = Round::all_at_once, .observer = &failures};
        if (std::get<Front>(GetParam()) == Front::loop)
            return std::make_unique<HolderInALoop>(network, configs(), options);
        return std::make_unique<HolderInAThread>(network, configs(), options);
    }

    /// Extends the lock every 10 ms. The other nodes always grant that.
    void extend_for(Clock::duration span) {
        for (const auto end = network.clock().now() + span; network.clock().now() < end; network.pass(10ms)) {
            const auto reports = holder->extend();
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
    std::unique_ptr<Holder> holder = make_holder();
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
        (void)holder->extend();
        EXPECT_EQ(failures.count, i);
        network.pass(900ms);
    }
    EXPECT_EQ(server.connections(), 2U);
}

// A process that was suspended reads what has arrived meanwhile before it judges.
TEST_P(SilentConnection, IsReadBeforeItIsJudged) {
    network.server(silent).latency = 5ms;
    (void)holder->extend();
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
    (void)holder->release();
    auto& server = network.server(silent);
    server.paused = true;
    server.forget_log();
    (void)holder->acquire();
    extend_for(200ms);
    EXPECT_EQ(failures.count, 1U);
    (void)holder->release();
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
}  // namespace redlock::test
