// Rule D4: a dead node costs its budget once, then almost nothing; it is probed more and more rarely, and is
// back in use within a second of its return.
#include "fault_world.hpp"

#include <functional>
#include <thread>
#include <tuple>

namespace redlock::test {
namespace {

constexpr auto budget = 800ms;

/// How a node is unreachable.
struct Outage {
    const char* name;
    int most_costly;  // rounds that may take the budget: none where the kernel refuses at once
    std::function<void(TcpProxy&)> begin;
};

void PrintTo(const Outage& outage, std::ostream* out) {
    *out << outage.name;
}

std::vector<Outage> outages() {
    return {{"Unreachable", 1, [](auto& link) { link.black_hole(); }}, {"Gone", 0, [](auto& link) {
                                                                            link.refuse();
                                                                            link.reset();
                                                                        }}};
}

class ADeadNode : public testing::TestWithParam<std::tuple<Outage, Round>> {
protected:
    ADeadNode() { world.warm_up(); }

    void disconnect(std::size_t node) { std::get<Outage>(GetParam()).begin(world.link(node)); }

    /// Locks and unlocks for so long; returns how many of the rounds took as long as a budget.
    int costly_rounds(milliseconds span) {
        int costly = 0;
        const auto count_costly = [&](auto verb) {
            costly += time_taken([&] { EXPECT_THAT(verb(), Succeeds()); }) >= budget ? 1 : 0;
        };
        const auto end = boot_clock().now() + span;
        while (boot_clock().now() < end) {
            count_costly([&] { return lock.acquire(); });
            count_costly([&] { return lock.release(); });
        }
        return costly;
    }

    FaultWorld world{5, {.node_timeout = budget, .round = std::get<Round>(GetParam())}};
    Lock lock = world.lock(no_retry());
};

INSTANTIATE_TEST_SUITE_P(ThatIs, ADeadNode, testing::Combine(testing::ValuesIn(outages()), each_round()),
                         [](const auto& info) {
                             return std::string{std::get<Outage>(info.param).name} +
                                    (std::get<Round>(info.param) == Round::sequential ? "InTurn" : "AtOnce");
                         });

// D4. Once, and never again while it stays dead; nor do connections to it pile up.
TEST_P(ADeadNode, CostsItsBudgetOnce) {
    disconnect(0);
    const auto before = world.link(0).traffic().connections;
    EXPECT_LE(costly_rounds(3s), std::get<Outage>(GetParam()).most_costly);
    EXPECT_LE(world.link(0).traffic().connections, before + 20);
}

// D4. After the longest back-off, both are asked again within a second.
TEST_P(ADeadNode, IsBackInUseWithinASecondOfItsReturn) {
    for (const std::size_t node : {0U, 2U}) disconnect(node);
    (void)costly_rounds(3s);
    for (auto& link : world.links()) link.heal();
    const auto healed = boot_clock().now();
    EXPECT_TRUE(wait_until([&] {
        auto fresh = world.lock("fresh " + std::to_string(boot_clock().now().time_since_epoch().count()));
        const auto result = fresh.acquire();
        return count(fresh.release(), Vote::granted) == 5;
    }));
    EXPECT_THAT(boot_clock().now() - healed,
                LastsAtMost(1s + 300ms));  // what a busy machine takes in between
}

class ANode : public testing::Test {};

// D4, D1. A new connection repeats the handshake: AUTH and SELECT come before any command.
TEST_F(ANode, RepeatsTheHandshakeOnEachNewConnection) {
    RedisServer server{RedisConfig{}.password("s3cret")};
    TcpProxy link{server.port()};
    const std::vector<Endpoint> endpoints{
        {.host = "127.0.0.1", .port = link.port(), .password = "s3cret", .database = 3}};
    RedisNodes nodes{endpoints, {.node_timeout = 2s}};
    Lock lock{nodes, the_resource, no_retry()};
    link.record();
    std::size_t connection = 0;
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(wait_until([&] { return static_cast<bool>(lock.acquire()); }));
        const auto set = commands(link, "SET").back();
        EXPECT_NE(std::exchange(connection, set.connection), set.connection);
        std::vector<std::string> words;
        for (const auto& command : link.commands())
            if (command.connection == set.connection) words.push_back(command.words[0]);
        words.resize(3);
        EXPECT_THAT(words, ElementsAre("AUTH", "SELECT", "PING"));
        link.reset();
        (void)lock.release();
    }
}

// D4. Connections that a firewall has forgotten cost a budget each at worst, and are replaced by new ones.
TEST_F(ANode, WhoseIdleConnectionsWereForgottenIsUsedByNewOnes) {
    FaultWorld world{1, {.node_timeout = 200ms}};
    {
        world.link(0).delay(20ms);
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back(
                [&, i] { (void)world.lock("warm " + std::to_string(i), no_retry()).acquire(); });
    }
    world.link(0).heal();
    world.warm_up();
    ASSERT_GE(world.link(0).traffic().open, 2U);
    world.link(0).forget();
    auto lock = world.lock(no_retry());
    const auto taken =
        time_taken([&] { EXPECT_TRUE(wait_until([&] { return static_cast<bool>(lock.acquire()); })); });
    EXPECT_THAT(taken, LastsAtMost(3s));
    EXPECT_THAT(lock.release(), Succeeds());
}

}  // namespace
}  // namespace redlock::test
