// What it costs those that wait when the node that keeps the queue, the home, or another node fails. Each
// delay is a row of the table in docs/waiting.md.
#include "waiting_world.hpp"

namespace redlock::test::fair_home_faults_live_test {
namespace {

struct HomeFaults : Held {
    /// Until one that sleeps has asked a home that does not answer, and has gone to the next.
    const Clock::duration to_the_next = 2 * poll_interval + 2 * timeouts().node_timeout;
};

// They find out when they ask next; those that come with the claim's round know already.
TEST_F(HomeFaults, TheHomeIsFrozen) {
    expect_delays(
        "home frozen", [&] { world[0].freeze(); }, to_the_next, 2 * to_the_next);
}

// Awake again, it wakes those whose places others have had meanwhile, and two homes are in use.
TEST_F(HomeFaults, TheHomeIsThawed) {
    Waiters waiters{world[0], world.uris(), 3, 50ms};
    world[0].freeze();
    (void)release();
    (void)waiters.first_held_at();
    world[0].thaw();
    const auto thawed = now();
    auto newcomer = world.lock(fair());
    EXPECT_THAT(newcomer.acquire_for(50s), Succeeds());
    expect_delay("home thawed: a newcomer behind 3", now() - thawed,
                 3 * 50ms + reservation_ttl() + 4 * poll_interval);
    waiters.expect_one_at_a_time();
}

// The connections break: the next node is the home at once.
TEST_F(HomeFaults, TheHomeIsKilled) {
    Waiters waiters{world[0], world.uris(), 3};
    world[0].kill();
    const auto killed = now();
    ASSERT_TRUE(queued(world[1], 3));
    expect_delay("home killed: all wait at the next", now() - killed, 0ms);
    const auto released = release();
    expect_delay("home killed, then a release", waiters.first_held_at() - released, timeouts().node_timeout);
    waiters.expect_one_at_a_time();
}

TEST_F(HomeFaults, TheHomeIsKilledWithTheRelease) {
    expect_delays(
        "home killed with the release", [&] { world[0].kill(); }, to_the_next);
}

// Their age is theirs: the order stays.
TEST_F(HomeFaults, TheHomeIsRestartedEmpty) {
    Waiters waiters{world[0], world.uris(), 3, 1ms};
    world[0].kill();
    ASSERT_TRUE(queued(world[1], 3));
    world[0].restart_empty();
    const auto released = release();
    expect_delay("home restarted empty", waiters.first_held_at() - released, poll_interval);
    waiters.expect_order();
}

// Otherwise newcomers would queue at the first node, and the earlier waiters at the next for as long as they
// wait.
TEST_F(HomeFaults, WaitersComeBackToTheHome) {
    Waiters waiters{world[0], world.uris(), 3, 1ms};
    world[0].kill();
    ASSERT_TRUE(queued(world[1], 3));
    world[0].restart_empty();
    const auto restarted = now();
    // The restarted home has no key of the holder, and reserves the resource for one waiter after the other.
    // So they are not all in its queue at the same time.
    ASSERT_TRUE(wait_until([&] { return listeners(world[0]) == 3; }));
    EXPECT_EQ(listeners(world[1]), 0);
    expect_delay("home restarted: all are back", now() - restarted, 5s + 6 * poll_interval);
    (void)release();
    waiters.expect_one_at_a_time();
}

// The same without a word to the waiters: they ask after a poll interval, and come back.
TEST_F(HomeFaults, TheQueueIsLost) {
    Waiters waiters{world[0], world.uris(), 3, 1ms};
    ASSERT_EQ(world[0].command({"DEL", the_queue}), "1");
    const auto lost = now();
    ASSERT_TRUE(queued(world[0], 3));
    expect_delay("queue lost: all are back", now() - lost, 4 * poll_interval);
    const auto released = release();
    expect_delay("queue lost, then a release", waiters.first_held_at() - released, 0ms);
    waiters.expect_order();
}

TEST_F(HomeFaults, TheQueueIsLostWithTheRelease) {
    const auto lose = [&] { ASSERT_EQ(world[0].command({"DEL", the_queue}), "1"); };
    expect_delays("queue lost with the release", lose, 2 * poll_interval);
}

TEST_F(HomeFaults, AnotherNodeIsFrozen) {
    const auto node_timeout = timeouts().node_timeout;
    expect_delays(
        "another node frozen", [&] { world[3].freeze(); }, 2 * node_timeout, 6 * node_timeout);
}

TEST_F(HomeFaults, AnotherNodeIsKilled) {
    expect_delays(
        "another node killed", [&] { world[3].kill(); }, 0ms, 0ms);
}

/// A key on the home that is no holder's.
struct StrayKey : testing::Test {
    LiveWorld world{5, timeouts()};
    Lock holder = world.lock(fair());

    void SetUp() override {
        ASSERT_TRUE(world.warm_up());
        ASSERT_EQ(occupy(world[0], 1min), "OK");
        ASSERT_THAT(holder.acquire(), Succeeds());
    }
};

// The release wakes the first all the same: the other nodes are a majority.
TEST_F(StrayKey, OnTheHomeNodeDoesNotDelayWaiters) {
    expect_no_sleep("stray key on the home: all of 3", [&] {
        Waiters waiters{world[0], world.uris(), 3};
        const auto released = now();
        EXPECT_THAT(holder.release(), Succeeds());
        const auto held = waiters.last_held_at();
        waiters.expect_order();
        EXPECT_THAT(holder.acquire_for(50s), Succeeds());
        return held - released;
    });
}

// Where nobody releases, either: the first in the queue makes an attempt every poll interval.
TEST_F(StrayKey, OnTheHomeNodeIsNotTakenForAHolder) {
    Waiters waiters{world[0], world.uris(), 1};
    for (std::size_t node = 1; node < 5; ++node) ASSERT_EQ(world[node].command({"DEL", the_resource}), "1");
    const auto gone = now();
    expect_delay("stray key on the home, no release", waiters.first_held_at() - gone, 4 * poll_interval);
}

/// Clients that name the nodes in the opposite order: against the rules, and the worst there is.
std::vector<std::string> in_reverse(std::vector<std::string> uris) {
    std::ranges::reverse(uris);
    return uris;
}

TEST_F(HomeFaults, TwoHomesAreInUse) {
    Waiters here{world[0], world.uris(), 3, 1ms};
    Waiters there{world[4], in_reverse(world.uris()), 3, 1ms};
    const auto released = release();
    expect_delay("two homes: the first", std::min(here.first_held_at(), there.first_held_at()) - released,
                 reservation_ttl() + 4 * poll_interval);
    expect_delay("two homes: all of 6", std::max(here.last_held_at(), there.last_held_at()) - released,
                 6 * (reservation_ttl() + 2 * poll_interval));
}

// One client cannot reach the node that is the home of the others.
TEST_F(HomeFaults, OneClientBelievesTheHomeDead) {
    Waiters here{world[0], world.uris(), 2, 1ms};
    auto uris = world.uris();
    uris[0] = "127.0.0.1:1";
    Waiters there{world[1], uris, 2, 1ms};
    const auto released = release();
    expect_delay("one client cannot reach the home: the first",
                 std::min(here.first_held_at(), there.first_held_at()) - released,
                 reservation_ttl() + 4 * poll_interval);
    expect_delay("one client cannot reach the home: all of 4",
                 std::max(here.last_held_at(), there.last_held_at()) - released,
                 4 * (reservation_ttl() + 2 * poll_interval));
}

// A queue's key that is none: that node is no home, and the release is not harmed.
TEST_F(HomeFaults, TheKeyOfTheQueueIsOfAnotherType) {
    ASSERT_EQ(world[0].command({"SET", the_queue, "text"}), "OK");
    Waiters waiters{world[1], world.uris(), 3, 1ms};
    const auto released = release();
    expect_delay("queue of another type on the home", waiters.first_held_at() - released, 0ms);
    waiters.expect_order();
    EXPECT_EQ(world[0].command({"GET", the_queue}), "text");
    EXPECT_EQ(world[0].command({"PTTL", the_queue}), "-1");
}

TEST_F(HomeFaults, TheKeyOfTheQueueBecomesOfAnotherType) {
    const auto replace = [&] { ASSERT_EQ(world[0].command({"SET", the_queue, "text"}), "OK"); };
    expect_delays("queue becomes of another type", replace, 2 * poll_interval);
}

}  // namespace
}  // namespace redlock::test::fair_home_faults_live_test
