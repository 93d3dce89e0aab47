// The stories of Martin Kleppmann's "How to do distributed locking" and of antirez' answer to it (S35): what
// a lock can do about them, what it cannot, and what a token does where it cannot.
#include "fenced_store.hpp"
#include "staged_world.hpp"

namespace redlock::sim {
namespace {

/// The pause comes between the look at the lock and the write; meanwhile bob acquires and writes.
void pause_before_the_write(StagedWorld& world, FencedStore& store, bool shows_token) {
    auto& alice = world.client("alice");
    auto& bob = world.client("bob");
    alice.does([&store, &alice, shows_token] {
        CheckedLock lock{alice, resource, once_with_token(5s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        const auto token = lock.fencing_token();
        EXPECT_TRUE(lock.valid());
        alice.process().pause_for(10s);
        alice.sleep(1us);
        store.write(shows_token ? token : 0, "alice");
        EXPECT_FALSE(lock.valid()) << "too late: the write is done";
    });
    bob.does([&store, &bob, shows_token] {
        bob.sleep(6s);
        CheckedLock lock{bob, resource, once_with_token(5s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        EXPECT_TRUE(store.write(shows_token ? lock.fencing_token() : 0, "bob"));
    });
    world.run();
}

TEST(KleppmannTest, APauseBeforeTheWriteCorruptsAStoreThatDoesNotCheck) {
    FencedStore store;
    StagedWorld world{{.nodes = 5}};
    pause_before_the_write(world, store, false);
    EXPECT_THAT(store.writers(), ElementsAre("bob", "alice"));
    EXPECT_THAT(world.violations(), IsEmpty()) << "the lock itself did what it promises";
}

TEST(KleppmannTest, APauseBeforeTheWriteIsNoticedByAStoreThatChecksTokens) {
    FencedStore store;
    StagedWorld world{{.nodes = 5}};
    pause_before_the_write(world, store, true);
    EXPECT_THAT(store.writers(), ElementsAre("bob"));
    EXPECT_THAT(world.violations(), IsEmpty());
}

TEST(KleppmannTest, AWriteThatIsDelayedOnItsWayIsNoticedByAStoreThatChecksTokens) {
    FencedStore store;
    StagedWorld world;
    auto& alice = world.client("alice");
    auto& bob = world.client("bob");
    alice.does([&] {
        CheckedLock lock{alice, resource, once_with_token(5s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        world.timeline().after(
            10s, [&store, token = lock.fencing_token()] { EXPECT_FALSE(store.write(token, "alice")); });
    });
    bob.does([&] {
        bob.sleep(6s);
        CheckedLock lock{bob, resource, once_with_token(5s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        EXPECT_TRUE(store.write(lock.fencing_token(), "bob"));
    });
    world.run();
    EXPECT_THAT(store.writers(), ElementsAre("bob"));
}

// The first of his two attacks on the timing: the clock of node C jumps forward.
TEST(KleppmannTest, AClockThatJumpsOnANodeLetsASecondHolderInWithALargerToken) {
    FencedStore store;
    StagedWorld world{{.nodes = 5}};
    auto& one = world.client("client 1");
    auto& two = world.client("client 2");
    one.does([&] {
        for (const std::size_t unreachable : {3U, 4U}) one.cut_off(unreachable, 1min);
        CheckedLock lock{one, resource, once_with_token(10s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        one.sleep(5s);
        EXPECT_TRUE(lock.valid());
        EXPECT_FALSE(store.write(lock.fencing_token(), "client 1"));
    });
    world.at(2s, [&] { world.node(2).step_clock(11s); });
    two.does([&] {
        two.sleep(3s);
        for (const std::size_t unreachable : {0U, 1U}) two.cut_off(unreachable, 1min);
        CheckedLock lock{two, resource, once_with_token(10s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        EXPECT_TRUE(store.write(lock.fencing_token(), "client 2"));
        two.sleep(5s);
    });
    world.run();
    EXPECT_THAT(world.violations(), ElementsAre(Breaks(Rule::one_holder)));
    EXPECT_THAT(store.writers(), ElementsAre("client 2"));
}

// The second: client 1 is paused while the replies to its SETs lie in its sockets.
TEST(KleppmannTest, AClientPausedBeforeItReadsTheRepliesKnowsThatItIsTooLate) {
    StagedWorld world{{.nodes = 5, .node_timeout = 200ms, .round = Round::all_at_once}};
    auto& one = world.client("client 1");
    auto& two = world.client("client 2");
    one.does([&] {
        EXPECT_THAT((CheckedLock{one, "another", once()}.acquire()), Succeeds()) << "to be connected";
        one.sleep_until(one.process().now() + 1s);
        one.after(1500ns, [&] { one.process().pause_for(8s); });  // the SETs are executed
        CheckedLock lock{one, resource, once(5s)};
        EXPECT_THAT(lock.acquire(), FailsWith(Errc::validity_exhausted));
    });
    two.does([&] {
        two.sleep(7s);
        CheckedLock lock{two, resource, once(5s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        two.sleep(4s);
        EXPECT_TRUE(lock.valid());
    });
    world.run();
    EXPECT_THAT(world.violations(), IsEmpty());
}

// "The network delayed the packets": antirez' answer is the time taken before and after.
TEST(KleppmannTest, RepliesThatTakeLongerThanTheTtlGiveNoLock) {
    StagedWorld world{{.nodes = 5, .node_timeout = 800ms, .round = Round::all_at_once}};
    auto& one = world.client("client 1");
    one.does([&] {
        EXPECT_THAT((CheckedLock{one, "another", once()}.acquire()), Succeeds()) << "to be connected";
        for (std::size_t node = 0; node < 5; ++node) one.network().link(node).delay_to_process = 2s;
        CheckedLock lock{one, resource, once(1s)};
        EXPECT_FALSE(lock.acquire());
        one.sleep(5s);
        EXPECT_EQ(world.nodes_with_key(), 0U);
    });
    world.run();
    EXPECT_THAT(world.violations(), IsEmpty());
}

// A pause at any point of an acquire is either harmless or noticed: here at each of many.
TEST(KleppmannTest, APauseAtAnyInstantOfAnAcquireIsHarmless) {
    for (auto at = 0ns; at < 40us; at += 500ns) {
        StagedWorld world;
        auto& one = world.client("client 1");
        auto& two = world.client("client 2");
        one.does([&] {
            CheckedLock lock{one, resource, once_with_token(1s)};
            if (lock.acquire()) one.sleep(300ms);
        });
        world.at(at, [&] { one.process().pause_for(1200ms); });
        two.does([&] {
            CheckedLock lock{two, resource, {.ttl = 1s, .fencing = true}};
            two.sleep(500ms);
            EXPECT_THAT(lock.acquire_for(2s), Succeeds());
            two.sleep(900ms);
        });
        world.run();
        EXPECT_THAT(world.violations(), IsEmpty()) << "paused at " << text(at);
    }
}

// "Clocks with bad rates" beyond what the drift factor allows for.
TEST(KleppmannTest, AClockThatRunsFasterThanTheDriftFactorAllowsLetsASecondHolderIn) {
    for (const double rate : {1.02, 1.5}) {
        StagedWorld world;
        auto& slow = world.client("slow", DriftingClock{1min, 1 / rate});
        auto& bob = world.client("bob", DriftingClock{1min, 1});
        LockOptions options = once(10s);
        options.drift_factor = 0.1;
        slow.does([&] {
            CheckedLock lock{slow, resource, options};
            EXPECT_THAT(lock.acquire(), Succeeds());
            slow.sleep(lock.remaining());
        });
        bob.does([&] {
            bob.sleep(1s);
            CheckedLock lock{bob, resource, options};
            EXPECT_THAT(lock.acquire_for(1min), Succeeds());
            bob.sleep(1s);
        });
        world.run();
        EXPECT_EQ(world.checker().saw(Rule::one_holder), rate > 1.1) << rate;
    }
}

}  // namespace
}  // namespace redlock::sim
