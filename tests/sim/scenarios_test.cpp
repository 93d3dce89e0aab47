// Scenarios that random schedules do not reach, or that depend on the exact time of an event. Scenarios that
// the pure tests show with scripted nodes are not repeated here.
#include "scenario.hpp"

#include <string>
#include <vector>

namespace redlock::sim::scenarios_test {
namespace {

using testing::IsEmpty;

// ---- The Redlock specification

// S20: three clients ask all nodes at once, and each has the shortest way to a different node. Without random
// pauses they would split the votes for ever.
TEST(Acquire, EndsWithOneHolderAfterSplitVotes) {
    int holders = 0;
    Scenario world{{.round = Round::all_at_once}};
    for (std::size_t number = 0; number < 3; ++number) {
        auto& client = world.client("client " + std::to_string(number));
        for (std::size_t node = 0; node < 3; ++node)
            if (node != number) client.network().link(node).delay_to_node = 2ms;
        client.does([&] {
            CheckedLock lock{client, the_resource, {.ttl = 10s, .retry = {.attempts = 20, .delay = 50ms}}};
            holders += lock.acquire() ? 1 : 0;
            client.sleep(5s);
        });
    }
    world.run(4s);
    EXPECT_EQ(holders, 1);
    EXPECT_THAT(world.violations(), IsEmpty());
}

// ---- "How to do distributed locking" by Kleppmann, and the answer of antirez to it (S35)

// The first of its two attacks on the timing: the clock of a node jumps forward.
TEST(NodeClock, JumpAllowsASecondHolderWithALargerToken) {
    std::vector<std::uint64_t> tokens;
    Scenario world{{.nodes = 5}};
    const auto acquire = [&](Client& client, std::initializer_list<std::size_t> unreachable) {
        for (const auto node : unreachable) client.cut_off(node, 1min);
        CheckedLock lock{client, the_resource, {.ttl = 10s, .fencing = true}};
        EXPECT_THAT(lock.try_acquire(), Succeeds());
        tokens.push_back(lock.fencing_token());
        client.sleep(5s);
    };
    auto& one = world.client("client 1");
    auto& two = world.client("client 2");
    one.does([&] { acquire(one, {3, 4}); });
    world.at(2s, [&] { world.node(2).step_clock(11s); });
    two.does([&] {
        two.sleep(3s);
        acquire(two, {0, 1});
    });
    world.run();
    ASSERT_EQ(world.violations().size(), 1U);
    EXPECT_EQ(world.violations().front().rule, Rule::one_holder);
    EXPECT_LT(tokens.front(), tokens.back());
}

// The second attack: client 1 is paused while the replies to its SETs wait in its sockets.
TEST(Pause, IsNoticedIfItIsBeforeTheRepliesAreRead) {
    Scenario world{{.nodes = 5, .node_timeout = 200ms, .round = Round::all_at_once}};
    auto& one = world.client("client 1");
    auto& two = world.client("client 2");
    one.does([&] {
        EXPECT_THAT((CheckedLock{one, "another", no_retry()}.acquire()), Succeeds()) << "to be connected";
        one.sleep_until(one.process().now() + 1s);
        one.after(1500ns, [&] { one.process().pause_for(8s); });  // the SETs are executed
        CheckedLock lock{one, the_resource, no_retry(5s)};
        EXPECT_THAT(lock.acquire(), FailsWith(Errc::validity_exhausted));
    });
    two.does([&] {
        two.sleep(7s);
        CheckedLock lock{two, the_resource, no_retry(5s)};
        EXPECT_THAT(lock.acquire(), Succeeds());
        two.sleep(4s);
        EXPECT_TRUE(lock.valid());
    });
    world.run();
    EXPECT_THAT(world.violations(), IsEmpty());
}

TEST(Pause, IsHarmlessAtAnyInstantOfAnAcquire) {
    for (auto at = 0ns; at < 40us; at += 500ns) {
        Scenario world;
        auto& one = world.client("client 1");
        auto& two = world.client("client 2");
        one.does([&] {
            CheckedLock lock{one, the_resource, {.ttl = 1s, .fencing = true}};
            if (lock.try_acquire()) one.sleep(300ms);
        });
        world.at(at, [&] { one.process().pause_for(1200ms); });
        two.does([&] {
            CheckedLock lock{two, the_resource, {.ttl = 1s, .fencing = true}};
            two.sleep(500ms);
            EXPECT_THAT(lock.acquire_for(2s), Succeeds());
            two.sleep(900ms);
        });
        world.run();
        EXPECT_THAT(world.violations(), IsEmpty()) << "paused at " << text(at);
    }
}

// ---- Releases

// Alice has two connections to node 2. One has a pending SET of another lock, so that no other command may
// follow on it. The other one is still being made. The release of the lock can use neither, does not wait,
// and leaves a key on node 2 until its ttl has passed.
TEST(Release, DoesNotWaitForANewConnectionToAnUntrustedNode) {
    Scenario world;
    auto& alice = world.client("alice");
    alice.set_settling_time(1s);
    alice.does([&] {
        CheckedLock lock{alice, the_resource, no_retry()};
        CheckedLock other{alice, "another", no_retry()};
        EXPECT_THAT(lock.acquire(), Succeeds());
        alice.network().link(2).delay_to_process = 300ms;
        EXPECT_THAT(other.acquire(), Succeeds()) << "although node 2 is late";
        alice.sleep(15ms);
        EXPECT_THAT(lock.extend(), Succeeds()) << "which probes node 2";
        const auto before = world.now();
        EXPECT_THAT(lock.release(), Succeeds());
        EXPECT_LT(world.now() - before, 1ms);
        EXPECT_EQ(world.nodes_with_key(), 1U) << "or else this scenario does not show what it is for";
        alice.sleep(2s);
    });
    world.run();
    EXPECT_THAT(world.violations(), IsEmpty());
}

}  // namespace
}  // namespace redlock::sim::scenarios_test
