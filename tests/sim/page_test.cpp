// The stories of the Redis page "Distributed Locks with Redis", told to whole clients on whole nodes. The
// numbers are those of the sources' claims, as in tests/pure/paper_test.cpp.
#include "staged_world.hpp"

namespace redlock::sim {
namespace {

// S1
TEST(PageTest, OfTwoWhoRaceOneHolds) {
    int holders = 0;
    StagedWorld world{{.nodes = 5}};
    for (const auto* const name : {"alice", "bob"}) {
        auto& client = world.client(name);
        client.does([&] {
            CheckedLock lock{client, resource, once()};
            holders += lock.acquire() ? 1 : 0;
            client.sleep(1s);
        });
    }
    world.run();
    EXPECT_EQ(holders, 1);
    EXPECT_THAT(world.violations(), IsEmpty());
}

// S2: the others wait for a ttl, no longer.
TEST(PageTest, TheLockOfACrashedHolderEndsWithItsTtl) {
    StagedWorld world;
    auto& alice = world.client("alice");
    auto& bob = world.client("bob");
    alice.does([&] {
        CheckedLock lock{alice, resource, once(5s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        alice.sleep(1h);
    });
    world.at(1s, [&] { alice.process().crash(); });
    bob.does([&] {
        bob.sleep(2s);
        CheckedLock lock{bob, resource, once(5s)};
        EXPECT_THAT(lock.try_acquire(), FailsWith(Errc::held_by_other));
        EXPECT_THAT(lock.acquire_for(10s), Succeeds());
        EXPECT_LT(world.now(), 5s + 300ms);
    });
    world.run();
    EXPECT_THAT(world.violations(), IsEmpty());
}

// S3
TEST(PageTest, AMinorityThatIsDownHindersNobody) {
    StagedWorld world{{.nodes = 5}};
    auto& alice = world.client("alice");
    world.crash({0, 3});
    alice.does([&] {
        CheckedLock lock{alice, resource, once()};
        EXPECT_THAT(lock.acquire(), Succeeds());
        EXPECT_THAT(lock.extend(), Succeeds());
        EXPECT_THAT(lock.release(), Succeeds());
    });
    world.run();
    EXPECT_EQ(world.nodes_with_key(), 0U);
}

TEST(PageTest, AMajorityThatIsDownLetsNobodyInUntilItIsBack) {
    StagedWorld world{{.nodes = 5}};
    auto& alice = world.client("alice");
    world.crash({0, 2, 4});
    world.at(3s, [&] { world.restart({0}, Data::kept); });
    alice.does([&] {
        CheckedLock lock{alice, resource, once()};
        EXPECT_THAT(lock.acquire(), FailsWith(Errc::no_quorum));
        alice.sleep_until(alice.process().now() + 4s);
        EXPECT_THAT(lock.acquire(), Succeeds());
    });
    world.run();
    EXPECT_THAT(world.violations(), IsEmpty());
}

// S8: a release that only deletes would end the lock of the next.
TEST(PageTest, AReleaseAfterAStallLeavesTheNextHolderAlone) {
    StagedWorld world;
    auto& alice = world.client("alice");
    auto& bob = world.client("bob");
    alice.does([&] {
        CheckedLock lock{alice, resource, once(5s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        alice.process().pause_for(7s);
        alice.sleep(1ms);
        EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    });
    bob.does([&] {
        bob.sleep(6s);
        CheckedLock lock{bob, resource, once(5s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        bob.sleep(3s);
        EXPECT_EQ(world.nodes_with_key(), 3U);
        EXPECT_THAT(lock.extend(), Succeeds());
    });
    world.run();
    EXPECT_THAT(world.violations(), IsEmpty());
}

// S13
TEST(PageTest, NodesThatHangCostTheirBudgetAndNoMore) {
    StagedWorld world{{.nodes = 5, .node_timeout = 50ms}};
    auto& alice = world.client("alice");
    for (const std::size_t node : {1U, 2U}) world.node(node).freeze_for(1min);
    alice.does([&] {
        CheckedLock lock{alice, resource, once()};
        EXPECT_THAT(lock.acquire(), Succeeds());
        EXPECT_LT(world.now(), 101ms);
        EXPECT_THAT(lock.release(), Succeeds());
        EXPECT_LT(world.now(), 152ms);
    });
    world.run();
    EXPECT_EQ(world.nodes_with_key(), 0U) << "also where it arrived late";
}

// S17, S18, S24
TEST(PageTest, AMajorityThatIsWonTooLateIsNoLockAndIsGivenBackAtOnce) {
    StagedWorld world{{.node_timeout = 400ms}};
    auto& alice = world.client("alice");
    alice.does([&] {
        EXPECT_THAT((CheckedLock{alice, "another", once()}.acquire()), Succeeds()) << "to be connected";
        for (std::size_t node = 0; node < 3; ++node) alice.network().link(node).delay_to_process = 350ms;
        CheckedLock lock{alice, resource, once(1s)};
        EXPECT_THAT(lock.acquire(), FailsWith(Errc::validity_exhausted));
        EXPECT_EQ(world.nodes_with_key(), 0U);
    });
    world.run();
    EXPECT_THAT(world.violations(), IsEmpty());
}

// S20: three that ask all at once, each with a node of its own nearby, would split the votes for ever.
TEST(PageTest, ClientsThatSplitTheVotesEndWithOneHolder) {
    int holders = 0;
    StagedWorld world{{.round = Round::all_at_once}};
    for (std::size_t number = 0; number < 3; ++number) {
        auto& client = world.client("client " + std::to_string(number));
        for (std::size_t node = 0; node < 3; ++node)
            if (node != number) client.network().link(node).delay_to_node = 2ms;
        client.does([&] {
            CheckedLock lock{client, resource, {.ttl = 10s, .retry = {.attempts = 20, .delay = 50ms}}};
            holders += lock.acquire() ? 1 : 0;
            client.sleep(5s);
        });
    }
    world.run(4s);
    EXPECT_EQ(holders, 1);
    EXPECT_THAT(world.violations(), IsEmpty());
}

// S25: it can neither release nor extend.
TEST(PageTest, AHolderThatIsCutOffCostsOneTtl) {
    StagedWorld world;
    auto& alice = world.client("alice");
    auto& bob = world.client("bob");
    alice.does([&] {
        CheckedLock lock{alice, resource, once(5s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        for (std::size_t node = 0; node < 3; ++node) alice.cut_off(node, 1min);
        EXPECT_THAT(lock.extend(), FailsWith(Errc::no_quorum));
        EXPECT_TRUE(lock.valid());
        EXPECT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    });
    bob.does([&] {
        bob.sleep(1s);
        CheckedLock lock{bob, resource, once(5s)};
        EXPECT_THAT(lock.acquire_for(10s), Succeeds());
        EXPECT_GT(world.now(), 5s - 50ms);
    });
    world.run();
    EXPECT_THAT(world.violations(), IsEmpty());
}

/// Alice holds on nodes 0 and 1, since 2 was away; then 1 restarts, and 2 is back: the page's example.
void node_restarts_under_alice(StagedWorld& world, Data data, Result& bobs) {
    auto& alice = world.client("alice");
    auto& bob = world.client("bob");
    world.crash({2});
    alice.does([&] {
        CheckedLock lock{alice, resource, once(5s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        alice.sleep(4s);
    });
    world.at(1s, [&] {
        world.restart({2}, Data::kept);
        world.restart({1}, data);
    });
    bob.does([&] {
        bob.sleep(2s);
        CheckedLock lock{bob, resource, once(5s)};
        bobs = lock.try_acquire();
        bob.sleep(1s);
    });
    world.run();
}

// S28
TEST(PageTest, ANodeThatRestartsWithoutItsDataLetsASecondHolderIn) {
    Result bobs{Errc::not_held};
    StagedWorld world;
    node_restarts_under_alice(world, Data::nothing, bobs);
    EXPECT_THAT(bobs, Succeeds());
    EXPECT_THAT(world.violations(), ElementsAre(Breaks(Rule::one_holder)));
}

// S28: what `appendfsync everysec` may lose.
TEST(PageTest, ANodeThatRestartsWithOldDataLetsASecondHolderIn) {
    Result bobs{Errc::not_held};
    StagedWorld world;
    world.node(1).take_snapshot();
    node_restarts_under_alice(world, Data::old, bobs);
    EXPECT_THAT(bobs, Succeeds());
    EXPECT_THAT(world.violations(), ElementsAre(Breaks(Rule::one_holder)));
}

// S28: `appendfsync always`.
TEST(PageTest, ANodeThatRestartsWithAllItsDataLetsNobodyIn) {
    Result bobs{Errc::not_held};
    StagedWorld world;
    node_restarts_under_alice(world, Data::kept, bobs);
    EXPECT_THAT(bobs, FailsWith(Errc::held_by_other));
    EXPECT_THAT(world.violations(), IsEmpty());
}

// S29, S30
TEST(PageTest, ANodeInQuarantineLetsNobodyIn) {
    for (const auto data : {Data::nothing, Data::old}) {
        Result bobs{Errc::not_held};
        StagedWorld world{{.quarantine = 6s}};
        world.node(1).take_snapshot();
        node_restarts_under_alice(world, data, bobs);
        EXPECT_FALSE(bobs);
        EXPECT_THAT(world.violations(), IsEmpty());
    }
}

// S30: the page's price of a delayed restart, counted from the first that asks.
TEST(PageTest, AMajorityThatLostItsDataIsUnavailableForAQuarantine) {
    StagedWorld world{{.quarantine = 6s}};
    auto& alice = world.client("alice");
    world.restart({0, 1}, Data::nothing);
    alice.does([&] {
        CheckedLock lock{alice, resource, {.ttl = 5s}};
        EXPECT_THAT(lock.try_acquire(), FailsWith(Errc::no_quorum));
        EXPECT_THAT(lock.acquire_for(1min), Succeeds());
        EXPECT_GE(world.now(), 6s);
        EXPECT_LT(world.now(), 6s + 300ms);
    });
    world.run();
}

TEST(PageTest, TheFirstAcquireOnFreshNodesWaitsForTheQuarantine) {
    StagedWorld world{{.quarantine = 6s, .trusted = false}};
    auto& alice = world.client("alice");
    alice.does([&] {
        CheckedLock lock{alice, resource, {.ttl = 5s}};
        EXPECT_THAT(lock.acquire_for(1min), Succeeds());
        EXPECT_GE(world.now(), 6s);
    });
    world.run();
}

// S31
TEST(PageTest, AHolderThatExtendsKeepsTheOthersOut) {
    StagedWorld world;
    auto& alice = world.client("alice");
    auto& bob = world.client("bob");
    alice.does([&] {
        CheckedLock lock{alice, resource, once(5s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        for (int i = 0; i < 10; ++i) {
            alice.sleep(3s);
            EXPECT_THAT(lock.extend(), Succeeds());
        }
        EXPECT_THAT(lock.release(), Succeeds());
    });
    bob.does([&] {
        bob.sleep(1s);
        CheckedLock lock{bob, resource, {.ttl = 5s}};
        EXPECT_THAT(lock.acquire_for(1min), Succeeds());
        EXPECT_GE(world.now(), 30s);
    });
    world.run();
    EXPECT_THAT(world.violations(), IsEmpty());
}

// S32: the nodes extended it, but bob may have held it before alice hears of that.
TEST(PageTest, AConfirmationThatComesAfterTheValidityIsNone) {
    StagedWorld world{{.node_timeout = 500ms}};
    auto& alice = world.client("alice");
    alice.does([&] {
        CheckedLock lock{alice, resource, once(1s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        for (std::size_t node = 0; node < 3; ++node) alice.network().link(node).delay_to_process = 300ms;
        alice.sleep(800ms);
        EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
        EXPECT_FALSE(lock.valid());
        alice.sleep(300ms);
        EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
    });
    world.run();
    EXPECT_THAT(world.violations(), IsEmpty());
}

}  // namespace
}  // namespace redlock::sim
