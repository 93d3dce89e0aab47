// The stories behind the rules of behaviour: defects that users of other implementations met.
#include "staged_world.hpp"

#include <algorithm>

namespace redlock::sim {
namespace {

// B5: the node is frozen while it is asked; the release waits behind the SET on the same connection.
TEST(RulesTest, ALateSetDoesNotOutliveItsRelease) {
    StagedWorld world{{.node_timeout = 50ms}};
    auto& alice = world.client("alice");
    for (const std::size_t node : {1U, 2U}) world.node(node).freeze_for(500ms);
    alice.does([&] {
        CheckedLock lock{alice, resource, once(10s)};
        EXPECT_THAT(lock.acquire(), FailsWith(Errc::no_quorum));
        alice.sleep(1s);
        EXPECT_EQ(world.nodes_with_key(), 0U);
    });
    world.run();
}

// B5: where the connection broke, nothing keeps the order; the key blocks for a ttl and breaks nothing.
TEST(RulesTest, AStrayKeyOfABrokenConnectionLivesForAtMostATtl) {
    WorldOptions options{.node_timeout = 50ms};
    options.conditions = {.mean = 100us, .breaks = 0.5, .longest_late = 1s};
    bool stray = false;
    for (options.seed = 1; options.seed <= 40; ++options.seed) {
        StagedWorld world{options};
        auto& alice = world.client("alice");
        alice.does([&] {
            CheckedLock lock{alice, resource, once(2s)};
            (void)lock.acquire();
            (void)lock.release();
        });
        world.run();
        stray = stray || world.nodes_with_key() > 0;
        world.settle(2s + 100ms);
        EXPECT_THAT(world.violations(), IsEmpty());
    }
    EXPECT_TRUE(stray) << "there was none: the story was not told";
}

// C5
TEST(RulesTest, TheLockOfAMachineThatWasSuspendedIsOver) {
    StagedWorld world;
    auto& laptop = world.client("laptop");
    laptop.does([&] {
        CheckedLock lock{laptop, resource, once(5s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        laptop.process().pause_for(6s);
        laptop.sleep(1us);
        EXPECT_FALSE(lock.valid());
        EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
    });
    world.run();
}

// C2, C3: the extension is under way when the lock ends; bob is in before its answers are.
TEST(RulesTest, AnExtensionThatRacesWithTheEndLosesIt) {
    StagedWorld world{{.node_timeout = 400ms}};
    auto& alice = world.client("alice");
    auto& bob = world.client("bob");
    alice.does([&] {
        CheckedLock lock{alice, resource, once(1s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        alice.sleep(900ms);
        for (std::size_t node = 0; node < 3; ++node) alice.network().link(node).delay_to_node = 200ms;
        EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
    });
    bob.does([&] {
        bob.sleep(1001ms);
        CheckedLock lock{bob, resource, once(1s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        bob.sleep(500ms);
        EXPECT_TRUE(lock.valid());
        EXPECT_THAT(lock.release(), Succeeds());
    });
    world.run();
    EXPECT_THAT(world.violations(), IsEmpty());
}

// A2, A12
TEST(RulesTest, ACancelledAcquireLeavesNothing) {
    StagedWorld world{{.nodes = 5, .node_timeout = 100ms}};
    auto& alice = world.client("alice");
    std::stop_source stop;
    for (const std::size_t node : {1U, 2U, 3U}) world.node(node).freeze_for(10s);
    world.at(150ms, [&] { stop.request_stop(); });
    alice.does([&] {
        CheckedLock lock{alice, resource, {.ttl = 30s}};
        EXPECT_THAT(lock.acquire(stop.get_token()), FailsWith(Errc::cancelled));
        EXPECT_LT(world.now(), 400ms);
        alice.sleep(11s);
        EXPECT_EQ(world.nodes_with_key(), 0U);
    });
    world.run();
}

// Tokens over everything that a node can forget.
TEST(RulesTest, TokensGrowWhateverTheNodesForget) {
    std::vector<std::uint64_t> tokens;
    StagedWorld world{{.nodes = 3, .quarantine = 2s, .skew = 1s}};
    auto& alice = world.client("alice");
    alice.does([&] {
        for (const auto data : {Data::nothing, Data::old, Data::kept, Data::nothing}) {
            for (std::size_t node = 0; node < 3; ++node) {
                CheckedLock lock{alice, resource, {.ttl = 1s, .fencing = true}};
                EXPECT_THAT(lock.acquire_for(10s), Succeeds());
                tokens.push_back(lock.fencing_token());
                world.node((node + 1) % 3).take_snapshot();
                world.node(node).restart(data);
            }
        }
    });
    world.run();
    EXPECT_EQ(tokens.size(), 12U);
    EXPECT_TRUE(std::ranges::is_sorted(tokens, std::ranges::less_equal{}) &&
                std::ranges::adjacent_find(tokens) == tokens.end());
    EXPECT_THAT(world.violations(), IsEmpty());
}

}  // namespace
}  // namespace redlock::sim
