// Rule D4: a dead node costs its budget once, then almost nothing; it is looked for ever more rarely, and
// back in use within a second of its return.
#include "fault_world.hpp"

#include <functional>
#include <thread>
#include <tuple>

namespace redlock::test {
namespace {

constexpr auto budget = 800ms;

/// A way to be dead.
struct Death {
    const char* name;
    int most_costly;  // rounds that may take the budget: none where the system says at once that nobody is
                      // there
    std::function<void(TcpProxy&)> strike;
};

void PrintTo(const Death& death, std::ostream* out) {
    *out << death.name;
}

std::vector<Death> deaths() {
    return {{"Unreachable", 1, [](auto& link) { link.black_hole(); }},
            {"UnreachableAfterAReset", 1,
             [](auto& link) {
                 link.black_hole();
                 link.reset();
             }},
            {"Mute", 1, [](auto& link) { link.hold(); }},
            {"Gone", 0, [](auto& link) {
                 link.refuse();
                 link.reset();
             }}};
}

class ADeadNode : public testing::TestWithParam<std::tuple<Death, Round>> {
protected:
    ADeadNode() { world.warm_up(); }

    void die(std::size_t node) { std::get<Death>(GetParam()).strike(world.link(node)); }

    /// Locks and unlocks for so long; says how many of the rounds took as long as a budget.
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

INSTANTIATE_TEST_SUITE_P(ThatIs, ADeadNode,
                         testing::Combine(testing::ValuesIn(deaths()),
                                          testing::Values(Round::sequential, Round::all_at_once)),
                         [](const auto& info) {
                             return std::string{std::get<Death>(info.param).name} +
                                    (std::get<Round>(info.param) == Round::sequential ? "InTurn" : "AtOnce");
                         });

// D4. Once, and never again while it stays dead; nor do connections to it pile up.
TEST_P(ADeadNode, CostsItsBudgetOnce) {
    die(0);
    const auto before = world.link(0).traffic().connections;
    EXPECT_LE(costly_rounds(3s), std::get<Death>(GetParam()).most_costly);
    EXPECT_LE(world.link(0).traffic().connections, before + 20);
}

// D4. After the longest back-off, both are asked again within a second.
TEST_P(ADeadNode, IsBackInUseWithinASecondOfItsReturn) {
    for (const std::size_t node : {0U, 2U}) die(node);
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

/// Three nodes, of which the last is dead for long, and the first holds a key of somebody else's: without the
/// dead one there is no majority to be had.
class ADeadNodeBesideAHolder : public InEachRound {
protected:
    ADeadNodeBesideAHolder() {
        world.warm_up();
        world.link(2).black_hole();
        const auto end = boot_clock().now() + 3s;
        auto other = world.lock("another", no_retry());
        while (boot_clock().now() < end) {
            (void)other.acquire();
            (void)other.release();
        }
        world[0].command({"SET", the_resource, "somebody else"});
    }

    FaultWorld world{3, {.node_timeout = budget, .round = GetParam()}};
    Lock lock = world.lock(no_retry());
};

INSTANTIATE_TEST_SUITE_P(When, ADeadNodeBesideAHolder, testing::Values(Round::sequential, Round::all_at_once),
                         name_of_round);

// D4, A8. Who waits for it keeps from others what was granted elsewhere, for the whole budget: clients that
// collide would each hold a part for so long, and none of them ever all.
TEST_P(ADeadNodeBesideAHolder, IsNotWaitedForButForAProbeNowAndThen) {
    int costly = 0;
    for (int i = 0; i < 20; ++i)
        costly +=
            time_taken([&] { EXPECT_THAT(lock.acquire(), FailsWith(Errc::held_by_other)); }) >= budget / 2;
    EXPECT_LE(costly, 4);
    EXPECT_EQ(world.keys_of("somebody else"), 1U);
}

// D4. But the probes do take place, or its return would never be seen.
TEST_P(ADeadNodeBesideAHolder, IsBackInUseWithinASecondOfItsReturn) {
    (void)lock.acquire();
    world.link(2).heal();
    EXPECT_THAT(time_taken([&] { ASSERT_TRUE(wait_until([&] { return bool{lock.acquire()}; })); }),
                LastsAtMost(1s + 300ms));
}

class ANode : public testing::Test {};

// D4. One that answers, but always too late, costs its budget now and then, and its keys are cleaned up.
TEST_F(ANode, ThatIsAlwaysLateCostsItsBudgetNowAndThen) {
    FaultWorld world{5, {.node_timeout = 150ms}};
    world.warm_up();
    world.link(0).delay(100ms);
    auto lock = world.lock(no_retry());
    int rounds = 0;
    int costly = 0;
    const auto end = boot_clock().now() + 4s;
    for (; boot_clock().now() < end; ++rounds) {
        costly += time_taken([&] { EXPECT_THAT(lock.acquire(), Succeeds()); }) >= 150ms ? 1 : 0;
        (void)lock.release();
    }
    EXPECT_LE(costly, 20) << "of " << rounds;  // 10 ms, 20 ms, ... 1 s, 1 s
    world.link(0).heal();
    EXPECT_TRUE(wait_until([&] {
        (void)world.lock("another").acquire();
        return world.clean();
    }));
}

// D4, D1. A new connection repeats the greeting: AUTH and SELECT come before any command.
TEST_F(ANode, IsGreetedAgainOnEachNewConnection) {
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

// D4. Connections that a firewall has forgotten are found out one budget after the other at worst, and not
// used again; new ones are.
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
