// Rule D4: a dead node costs one node_timeout once, then almost nothing. It is probed less and less often,
// and used again within a second of its return.
#include "fault_world.hpp"

#include "live/scheduling_delay.hpp"

#include <functional>
#include <tuple>

namespace redlock::test {
namespace {

constexpr auto node_timeout = 800ms;

/// A way in which a node is unreachable.
struct Outage {
    const char* name;
    int max_costly;  // rounds that may take a node_timeout: none if the kernel refuses at once
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

    struct Rounds {
        int costly = 0;  ///< rounds that took a node_timeout or longer
        int failed = 0;
    };

    /// Locks and unlocks for this time.
    Rounds lock_and_unlock(milliseconds span) {
        Rounds rounds;
        const auto count = [&](auto verb) {
            rounds.costly += time_taken([&] { rounds.failed += verb() ? 0 : 1; }) >= node_timeout ? 1 : 0;
        };
        const auto end = boot_clock().now() + span;
        while (boot_clock().now() < end) {
            count([&] { return lock.acquire(); });
            count([&] { return lock.release(); });
        }
        return rounds;
    }

    FaultWorld world{5, {.node_timeout = node_timeout, .round = std::get<Round>(GetParam())}};
    Lock lock = world.lock(no_retry());
    Rounds rounds{};
    std::size_t connections = 0;
};

INSTANTIATE_TEST_SUITE_P(EachOutage, ADeadNode, testing::Combine(testing::ValuesIn(outages()), each_round()),
                         [](const auto& info) {
                             return std::string{std::get<Outage>(info.param).name} +
                                    (std::get<Round>(info.param) == Round::sequential ? "InTurn" : "AtOnce");
                         });

// D4. A dead node costs a node_timeout once, and not again until it returns. Connections to it do not
// accumulate.
TEST_P(ADeadNode, CostsItsNodeTimeoutOnce) {
    disconnect(0);
    repeat_where_delayed(world, node_timeout / 2, [&] {
        const auto before = world.link(0).traffic().connections;
        rounds = lock_and_unlock(3s);
        connections = world.link(0).traffic().connections - before;
        return rounds.failed == 0 && rounds.costly <= std::get<Outage>(GetParam()).max_costly;
    });
    EXPECT_EQ(rounds.failed, 0);
    EXPECT_LE(rounds.costly, std::get<Outage>(GetParam()).max_costly);
    EXPECT_LE(connections, 20U);
}

// D4. After the longest back-off, both nodes are asked again within a second.
TEST_P(ADeadNode, IsUsedAgainWithinASecondOfItsReturn) {
    for (const std::size_t node : {0U, 2U}) disconnect(node);
    (void)lock_and_unlock(3s);
    for (auto& link : world.links()) link.heal();
    const auto healed = boot_clock().now();
    const auto waited = processor_wait(world);
    EXPECT_TRUE(wait_until([&] {
        auto fresh = world.lock("fresh " + std::to_string(boot_clock().now().time_since_epoch().count()));
        (void)fresh.acquire();
        return count(fresh.release(), Vote::granted) == 5;
    }));
    EXPECT_THAT(boot_clock().now() - healed - (processor_wait(world) - waited),
                LastsAtMost(1s + 300ms));  // 300 ms for a busy machine
}

// D4, D1. A new connection repeats the handshake: AUTH and SELECT come before any other command.
TEST(ANode, RepeatsTheHandshakeOnEachNewConnection) {
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
        const auto seen = link.commands();
        const auto newest = seen.back().connection;
        EXPECT_NE(std::exchange(connection, newest), newest);
        std::vector<std::string> words;
        for (const auto& command : seen)
            if (command.connection == newest) words.push_back(command.words[0]);
        words.resize(3);
        EXPECT_THAT(words, ElementsAre("AUTH", "SELECT", "PING"));
        link.reset();
        (void)lock.release();
    }
}

}  // namespace
}  // namespace redlock::test
