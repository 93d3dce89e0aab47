// A server freezes while only extensions run on shared connections: in an event loop, and in threads. The
// other nodes are a quorum, so no round waits for the frozen server.
#include "live/live_world.hpp"
#include "loop_client.hpp"
#include "support/sentinel_group.hpp"

#include "os/os_network.hpp"
#include "redis/lane.hpp"
#include "redis/node_config.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace redlock::test {
namespace {

constexpr std::size_t silent = 2;  // the index of the node whose server freezes

struct Failures : Observer {
    void backing_off(std::string_view, std::error_code, std::string_view,
                     std::chrono::nanoseconds) noexcept override {
        ++count;
    }
    std::atomic<int> count = 0;
};

/// Holds a lock on three nodes.
class Holder {
public:
    Holder() = default;
    virtual ~Holder() = default;
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

    virtual std::vector<NodeReport> acquire() = 0;
    virtual std::vector<NodeReport> extend() = 0;
};

class HolderInALoop final : public Holder {
public:
    HolderInALoop(const std::vector<std::string>& uris, const NodesOptions& options)
        : client_{uris, options} {}
    std::vector<NodeReport> acquire() override { return reports_of(client_.try_acquire(lock_)); }
    std::vector<NodeReport> extend() override { return reports_of(client_.extend(lock_)); }

private:
    static std::vector<NodeReport> reports_of(const Result& result) {
        return {result.nodes().begin(), result.nodes().end()};
    }

    LoopClient client_;
    AsyncLock lock_{client_.of_loop, the_resource, {.ttl = 10min}};
};

class HolderInAThread final : public Holder {
public:
    HolderInAThread(const std::vector<std::string>& uris, const NodesOptions& options)
        : names_(std::make_shared<const std::vector<std::string>>(uris)),
          rounds_{configs_of(uris, options), options, network_} {}
    std::vector<NodeReport> acquire() override { return ask(Verb::set_if_absent); }
    std::vector<NodeReport> extend() override { return ask(Verb::compare_and_expire); }

private:
    static std::vector<NodeConfig> configs_of(const std::vector<std::string>& uris,
                                              const NodesOptions& options) {
        std::vector<NodeConfig> configs;
        for (const auto& uri : uris)
            configs.push_back(NodeConfig::of(Endpoint::parse(uri), options.node_timeout));
        return configs;
    }
    std::vector<NodeReport> ask(Verb verb) {
        const std::vector<std::string> resources{the_resource};
        const Request request{.command = {.verb = verb, .resources = resources, .owner = "A", .ttl = 10min}};
        const RoundLimits limits{};
        Tally tally{names_};
        rounds_.ask({&request, 1}, limits, {&tally, 1});
        return {tally.reports().begin(), tally.reports().end()};
    }

    const Tally::Names names_;
    OsNetwork network_{};
    Lane rounds_;
};

enum class Front { loop, threads };

class AFrozenServer : public testing::TestWithParam<Front> {
protected:
    std::unique_ptr<Holder> make_holder(const std::vector<std::string>& uris) {
        const NodesOptions options{.node_timeout = 500ms, .round = Round::all_at_once, .observer = &failures};
        std::unique_ptr<Holder> made;
        if (GetParam() == Front::loop)
            made = std::make_unique<HolderInALoop>(uris, options);
        else
            made = std::make_unique<HolderInAThread>(uris, options);
        (void)made->acquire();
        return made;
    }
    /// Extends again and again until the condition is true.
    template <class Condition>
    static bool extends_until(Holder& holder, Condition condition) {
        return support::wait_until([&] { return condition(holder.extend()); });
    }

    Failures failures{};
};
INSTANTIATE_TEST_SUITE_P(Behind, AFrozenServer, testing::Values(Front::loop, Front::threads),
                         [](const auto& info) {
                             return info.param == Front::loop ? "AConnectionOfALoop" : "AConnectionOfThreads";
                         });

// D4.
TEST_P(AFrozenServer, IsNoticedIfOnlyExtensionsRun) {
    support::Cluster cluster{3};
    const auto lock = make_holder(cluster.uris());
    const auto is_granted = [](const auto& reports) { return reports[silent].vote == Vote::granted; };
    ASSERT_TRUE(extends_until(*lock, is_granted));
    const auto before = failures.count.load();
    cluster[silent].freeze();
    EXPECT_TRUE(extends_until(*lock, [&](const auto&) { return failures.count > before; }));
    cluster[silent].thaw();
    EXPECT_TRUE(extends_until(*lock, is_granted)) << "trusted again";
}

// The Sentinels name another master after the server has left one extension unanswered.
TEST_P(AFrozenServer, IsLeftForItsSuccessor) {
    support::SentinelGroup group;
    support::Cluster cluster{2};
    auto uris = cluster.uris();
    uris.push_back(group.uri());
    const auto lock = make_holder(uris);
    const auto is_granted = [](const auto& reports) { return reports[silent].vote == Vote::granted; };
    ASSERT_TRUE(extends_until(*lock, is_granted));
    ASSERT_TRUE(support::wait_until([&] { return holder(group.servers[1]) != "(nil)"; }));
    group.servers[0].freeze();
    (void)lock->extend();
    group.fail_over_to(group.servers[1]);
    group.take_over(group.servers[1]);
    EXPECT_TRUE(extends_until(*lock, is_granted)) << "by the promoted server, which has the key";
    group.servers[0].thaw();
}

}  // namespace
}  // namespace redlock::test
