// A device on the way, such as a NAT, forgets the connections of a lock that is held, and swallows what comes
// on them. They are the connections of a thread, those that threads share, or those of an event loop.
#include "live/live_world.hpp"
#include "live/loop/loop_client.hpp"

#include "os/os_network.hpp"
#include "redis/node_config.hpp"
#include "redis/thread_group.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace redlock::test {
namespace {

/// It is longer than any wait of a test.
constexpr auto ttl = 10min;

/// Nodes with which all rounds share connections.
class SharingNodes final : public Nodes {
public:
    SharingNodes(const std::vector<std::string>& uris, const NodesOptions& options)
        : Nodes(uris, options.node_timeout, options.quarantine),
          group_(configs_of(uris, options), options, network_, 0) {}

    using Nodes::ask;
    void ask(std::span<const Request> requests, const RoundLimits& limits,
             std::span<Tally> tallies) override {
        group_.ask(requests, limits, tallies);
    }
    std::unique_ptr<Waiter> waiter() override { return group_.waiter(); }

private:
    static std::vector<NodeConfig> configs_of(const std::vector<std::string>& uris,
                                              const NodesOptions& options) {
        std::vector<NodeConfig> configs;
        for (const auto& uri : uris)
            configs.push_back(NodeConfig::of(Endpoint::parse(uri), options.node_timeout));
        return for_one_process(std::move(configs));
    }

    OsNetwork network_{};
    ThreadGroup group_;
};

/// Three servers, each behind a proxy that can forget its connections.
struct ForgetfulWorld {
    ForgetfulWorld() {
        for (auto& server : servers) names.push_back(links.emplace_back(server.port()).name());
    }
    void forget() {
        std::this_thread::sleep_for(1100ms);  // so long that the library does not rely on the connections
        for (auto& link : links) link.forget();
    }
    bool clean() {
        return std::ranges::all_of(servers, [](auto& it) { return holder(it) == "(nil)"; });
    }
    bool becomes_clean() {
        return wait_until([this] { return clean(); });
    }

    const NodesOptions options{.node_timeout = 4s};
    Cluster servers{3};
    std::deque<TcpProxy> links{};
    std::vector<std::string> names{};
};

enum class Use { own, shared };

struct ForgottenConnections : testing::TestWithParam<Use>, ForgetfulWorld {
    void hold_and_forget() {
        if (GetParam() == Use::own)
            nodes = std::make_unique<RedisNodes>(names, options);
        else
            nodes = std::make_unique<SharingNodes>(names, options);
        lock.emplace(*nodes, the_resource, LockOptions{.ttl = ttl, .fair = true});
        ASSERT_THAT(lock->acquire(), Succeeds());
        forget();
    }

    std::unique_ptr<Nodes> nodes{};
    std::optional<Lock> lock{};
};
INSTANTIATE_TEST_SUITE_P(OfThreads, ForgottenConnections, testing::Values(Use::own, Use::shared),
                         [](const auto& info) { return info.param == Use::own ? "Own" : "Shared"; });

TEST_P(ForgottenConnections, DoNotLoseARelease) {
    hold_and_forget();
    EXPECT_THAT(lock->release(), Succeeds());
    EXPECT_TRUE(clean());
}

TEST_P(ForgottenConnections, DoNotLoseAReleaseThatIsNotAwaited) {
    hold_and_forget();
    lock->unlock();
    EXPECT_TRUE(becomes_clean());
}

TEST_P(ForgottenConnections, AreNotUsedForTheNextExtension) {
    hold_and_forget();
    EXPECT_THAT(lock->extend(ttl), FailsWith(Errc::no_quorum));
    EXPECT_THAT(lock->extend(ttl), Succeeds());
    EXPECT_THAT(lock->release(), Succeeds());
    EXPECT_TRUE(clean());
}

TEST_P(ForgottenConnections, DoNotKeepAFairWaiterWaiting) {
    RedisNodes of_waiter{servers.uris(), options};
    hold_and_forget();
    const auto keys = servers[0].command({"DBSIZE"});
    const std::jthread waiter{[&] {
        Lock waiting{of_waiter, the_resource, {.fair = true}};
        EXPECT_THAT(waiting.acquire_for(2min), Succeeds());
    }};
    EXPECT_TRUE(wait_until([&] { return servers[0].command({"DBSIZE"}) != keys; })) << "it is in the queue";
    EXPECT_THAT(lock->release(), Succeeds());
}

struct ForgottenConnectionsOfALoop : testing::Test, ForgetfulWorld {
    void SetUp() override {
        ASSERT_THAT(client.acquire(*lock), Succeeds());
        forget();
    }

    LoopClient client{names, options};
    std::optional<AsyncLock> lock{std::in_place, client.of_loop, the_resource, LockOptions{.ttl = ttl}};
};

TEST_F(ForgottenConnectionsOfALoop, DoNotLoseARelease) {
    EXPECT_THAT(client.release(*lock), Succeeds());
    EXPECT_TRUE(clean());
}

TEST_F(ForgottenConnectionsOfALoop, DoNotLoseTheReleaseOfALockThatIsDestroyed) {
    lock.reset();
    EXPECT_TRUE(client.run_until([this] { return clean(); }));
}

}  // namespace
}  // namespace redlock::test
