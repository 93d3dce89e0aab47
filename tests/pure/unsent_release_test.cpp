// A release for which no connection is ready in time. It is queued behind the handshake of a new connection,
// and sent when that is ready, by any later round or by the background task.
#include "round_driver_world.hpp"
#include "waiting_world.hpp"

#include <redlock/lock.hpp>
#include <redlock/query.hpp>

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test::unsent_release_test {
namespace {

struct UnsentRelease : testing::Test {
    static constexpr auto node_timeout = 48ms;
    static constexpr auto connect_time = node_timeout / 8;  // how long unlock() waits

    explicit UnsentRelease(std::size_t count = 3)
        : servers{count},
          network{count},
          nodes{
              std::in_place, network, count,
              NodesOptions{.node_timeout = node_timeout, .round = Round::all_at_once, .observer = &faults}} {}

    Lock lock(std::string resource = "r", LockOptions options = {.ttl = 10min}) {
        return {*nodes, std::move(resource), options, clock, entropy};
    }
    /// Returns a lock whose key is on all nodes.
    Lock held(std::string resource = "r", LockOptions options = {.ttl = 10min}) {
        auto it = lock(std::move(resource), std::move(options));
        EXPECT_TRUE(it.acquire());
        network.pass(2ms);
        return it;
    }
    void for_each_server(auto action) {
        for (std::size_t node = 0; node < servers; ++node) action(network.server(node));
    }
    /// Breaks all connections, and prevents new ones until reach_again().
    void become_unreachable() {
        for_each_server([&](auto& server) {
            server.close_connections(clock.now());
            server.unreachable = true;
            server.forget_log();
        });
        network.pass(20ms);  // so long that even a release checks an idle connection first
        faults.lines.clear();
    }
    /// Returns a lock whose release could not be sent.
    Lock unlocked_while_unreachable() {
        auto it = held();
        become_unreachable();
        it.unlock();
        return it;
    }
    void reach_again() {
        for_each_server([](auto& server) { server.unreachable = false; });
    }
    /// Returns a lock that was unlocked while the servers accept connections, and answer no handshake. Makes
    /// ten attempts afterwards, each after this time.
    Lock unlocked_behind_a_handshake(Clock::duration pause) {
        auto it = held();
        become_unreachable();
        reach_again();
        for_each_server([](auto& server) { server.cut_off = true; });
        it.unlock();
        for (int i = 0; i < 10; ++i) {
            network.pass(pause);
            (void)lock("another").try_acquire();
        }
        return it;
    }
    /// Asks until the nodes are left alone for a while.
    void make_rounds_until_back_off() {
        for (int i = 0; i < 3; ++i) {
            network.pass(10ms);
            (void)lock("another").try_acquire();
        }
        ASSERT_THAT(faults.lines, Contains(HasSubstr("backing off")));
    }
    void reach_again_after(Clock::duration span) {
        network.clock().after(span, [&] { reach_again(); });
    }
    std::size_t keys() { return network.keys(); }
    /// Waits until the background task has ended.
    void wait_for_the_end_of_the_sender() { network.pass(2 * node_timeout); }

    const std::size_t servers;
    NodeLog faults;
    MemoryNetwork network;
    std::optional<MemoryNodes> nodes;
    Clock& clock = network.clock();
    SeededEntropy entropy{1};
};

// B1. The sender

TEST_F(UnsentRelease, IsSentInTheBackground) {
    for (const bool unlocks : {true, false}) {
        std::optional<Lock> it{held()};
        become_unreachable();
        reach_again_after(20ms);
        if (unlocks) it->unlock();
        it.reset();
        EXPECT_EQ(keys(), 3U) << "or this shows nothing";
        network.pass(node_timeout);
        EXPECT_EQ(keys(), 0U);
    }
}

// The descriptions are keys, too.
TEST_F(UnsentRelease, IsFollowedByTheDeletionOfTheHolderDescription) {
    auto it = held("r", {.ttl = 10min, .holder = "web1"});
    EXPECT_EQ(keys(), 6U);
    become_unreachable();
    reach_again_after(20ms);
    it.unlock();
    network.pass(node_timeout);
    EXPECT_EQ(keys(), 0U);
}

TEST_F(UnsentRelease, IsSentInTheBackgroundAlthoughAnotherNodeStaysUnreachable) {
    for (std::size_t hangs = 0; hangs < servers; ++hangs) {
        auto it = held();
        become_unreachable();
        network.clock().after(20ms, [&] {
            for (std::size_t node = 0; node < servers; ++node)
                network.server(node).unreachable = node == hangs;
        });
        it.unlock();
        network.pass(node_timeout);
        EXPECT_EQ(keys(), 1U) << "that of node " << hangs;
        reach_again();
        nodes.reset();
        for_each_server([](auto& server) { server.redis->restart(server.redis->run_id(), {}); });
        nodes.emplace(network, servers,
                      NodesOptions{.node_timeout = node_timeout, .round = Round::all_at_once});
    }
}

TEST_F(UnsentRelease, IsSentInTheBackgroundForOneNodeTimeoutOnly) {
    auto it = unlocked_while_unreachable();
    network.pass(node_timeout + node_timeout / 4);
    reach_again();
    network.pass(1h);
    EXPECT_EQ(keys(), 3U);
}

TEST_F(UnsentRelease, IsSentByTheNextRoundThatUsesTheNode) {
    auto it = unlocked_while_unreachable();
    wait_for_the_end_of_the_sender();
    reach_again();
    (void)query(*nodes, "another");
    EXPECT_EQ(keys(), 0U);
}

TEST_F(UnsentRelease, IsSentByTheDestructorOfTheNodes) {
    auto it = unlocked_while_unreachable();
    wait_for_the_end_of_the_sender();
    reach_again_after(node_timeout - 10ms);
    nodes.reset();
    EXPECT_EQ(keys(), 0U);
}

TEST_F(UnsentRelease, DelaysTheDestructorOfTheNodesByAtMostOneNodeTimeout) {
    auto it = unlocked_while_unreachable();
    EXPECT_LE(time_taken(network, [&] { nodes.reset(); }), node_timeout + 1ms);
}

// A release() is also sent later, because its caller may have no time to repeat it.
TEST_F(UnsentRelease, IsSentLaterEvenIfItsRepliesWereAwaited) {
    auto it = held();
    become_unreachable();
    EXPECT_EQ(it.release().error(), Errc::no_quorum);
    reach_again();
    network.pass(node_timeout);
    EXPECT_EQ(keys(), 0U);
    EXPECT_TRUE(it.release()) << "B4: it can still be repeated";
}

// While the node is in back-off, no round waits for it, and a probe may be under way.
TEST_F(UnsentRelease, GoesBehindAProbeOfANodeThatIsLeftAlone) {
    auto it = held();
    become_unreachable();
    make_rounds_until_back_off();
    it.unlock();
    reach_again();
    network.pass(node_timeout);
    EXPECT_EQ(keys(), 0U);
}

// Two other nodes have lost the key, so that no majority can confirm the release.
TEST_F(UnsentRelease, GoesBehindAProbeEvenIfNoMajorityCanConfirmIt) {
    auto it = held();
    for (const std::size_t node : {0U, 1U}) network.server(node).redis->keys().clear();
    network.server(2).close_connections(clock.now());
    network.server(2).unreachable = true;
    network.pass(20ms);
    make_rounds_until_back_off();
    EXPECT_EQ(it.release().error(), Errc::lost);
    reach_again();
    network.pass(node_timeout);
    EXPECT_EQ(keys(), 0U);
}

// ---- The order

// Over another connection the SET could overtake the release, and our own key would make it fail.
TEST_F(UnsentRelease, PrecedesTheNextSetOfItsResource) {
    auto it = unlocked_while_unreachable();
    reach_again_after(3ms);
    EXPECT_TRUE(it.try_acquire());
    network.pass(2ms);
    for_each_server(
        [](auto& server) { EXPECT_THAT(server.log(), ElementsAre("2 PING", "2 EVAL", "2 SET")); });
}

// D1. The replies to the handshake come first, although the handshake was sent last.
TEST_F(UnsentRelease, DoesNotMixUpReplies) {
    auto it = unlocked_while_unreachable();
    reach_again_after(3ms);
    for (int i = 0; i < 3; ++i) {
        const auto result = it.try_acquire();
        EXPECT_TRUE(result) << result.message();
        EXPECT_TRUE(it.release());
    }
    EXPECT_EQ(keys(), 0U);
    for_each_server([](auto& server) { EXPECT_EQ(server.connections(), 2U); });
}

// ---- The cost

TEST_F(UnsentRelease, DelaysUnlockByAtMostAnEighthOfTheNodeTimeout) {
    std::deque<Lock> locks;
    for (int i = 0; i < 5; ++i) locks.push_back(held(std::to_string(i)));
    become_unreachable();
    EXPECT_LE(time_taken(network, [&] { locks.clear(); }), connect_time) << "all of them together";
    reach_again();
    network.pass(node_timeout);
    EXPECT_EQ(keys(), 0U);
    for_each_server([](auto& server) { EXPECT_EQ(server.open_connections(), 1U); });
}

// The connection takes longer than an eighth of node_timeout.
TEST_F(UnsentRelease, IsNotBlamedOnTheNode) {
    auto it = unlocked_while_unreachable();
    reach_again();
    network.pass(node_timeout);
    (void)query(*nodes, "another");
    EXPECT_THAT(faults.lines, Not(Contains(HasSubstr("backing off"))));
}

// ---- Releases that were sent without a reply

// The connection of a queued release is no probe. A probe would be closed if it hangs.
TEST_F(UnsentRelease, IsNotDroppedWithAHangingProbe) {
    const auto it = unlocked_behind_a_handshake(1s);
    for_each_server([](auto& server) { EXPECT_GT(server.connections(), 3U) << "or this shows nothing"; });
    for_each_server([&](auto& server) { server.reach_again(clock.now()); });
    EXPECT_EQ(keys(), 0U);
}

// The servers accept connections, and answer no handshake, for longer than a connection drains.
TEST_F(UnsentRelease, IsSentToAServerThatAnswersTheHandshakeAfterMinutes) {
    const auto it = unlocked_behind_a_handshake(20s);
    for_each_server([&](auto& server) { server.reach_again(clock.now()); });
    for (int i = 0; i < 3; ++i) {
        network.pass(1s);
        (void)lock("another").try_acquire();
    }
    network.pass(5ms);
    EXPECT_EQ(keys(), 0U);
}

// ---- A release that was written, and has no reply

struct ReleaseWithoutAReply : UnsentRelease {
    static constexpr auto node_timeout = 50ms;  // the one of MemoryNetwork::configs()

    ReleaseWithoutAReply() {
        nodes.emplace(network, servers,
                      NodesOptions{.node_timeout = node_timeout, .round = Round::all_at_once});
    }
};

// B1. A NAT forgets the connections while the lock is held, and swallows what comes.
TEST_F(ReleaseWithoutAReply, IsSentOnANewConnectionIfItsOwnIsForgotten) {
    auto it = held();
    network.pass(1min);
    for_each_server([](auto& server) { server.forget_connections(); });
    it.unlock();
    network.pass(node_timeout - 1ms);
    EXPECT_EQ(keys(), 3U) << "a reply may take a node_timeout";
    network.pass(10ms);
    EXPECT_EQ(keys(), 0U);
    for_each_server([](auto& server) { EXPECT_EQ(server.connections(), 2U); });
}

// B1. A program that ends after the unlock() has no other object that sends the release again.
TEST_F(ReleaseWithoutAReply, IsSentOnANewConnectionByTheDestructorOfTheNodes) {
    auto it = held();
    network.pass(1min);
    for_each_server([](auto& server) { server.forget_connections(); });
    it.unlock();
    EXPECT_LE(time_taken(network, [&] { nodes.reset(); }), node_timeout + 1ms);
    EXPECT_EQ(keys(), 0U);
}

// B1. No background task looks at a connection that was in use a moment before the release.
TEST_F(ReleaseWithoutAReply, IsSentByTheDestructorOfTheNodesAfterANodeTimeout) {
    auto it = held();
    for_each_server([](auto& server) { server.forget_connections(); });
    it.unlock();
    network.pass(2 * node_timeout);
    EXPECT_EQ(keys(), 3U);
    nodes.reset();
    EXPECT_EQ(keys(), 0U);
}

// A proxy accepts connections while its server is away, and passes only later ones on to it.
TEST_F(ReleaseWithoutAReply, IsSentByTheDestructorOfTheNodesIfItsConnectionNeverGetsReady) {
    auto it = held();
    become_unreachable();
    reach_again();
    for_each_server([](auto& server) { server.cut_off = true; });
    it.unlock();
    network.pass(2s);
    for_each_server([](auto& server) {
        server.forget_connections();
        server.cut_off = false;
    });
    EXPECT_EQ(keys(), 3U);
    EXPECT_LE(time_taken(network, [&] { nodes.reset(); }), node_timeout + 1ms);
    EXPECT_EQ(keys(), 0U);
}

// Its first connection has broken, so this release was sent again already.
TEST_F(ReleaseWithoutAReply, IsSentByTheDestructorOfTheNodesIfItsSecondConnectionNeverGetsReady) {
    auto it = held();
    for_each_server([](auto& server) { server.paused = true; });
    it.unlock();
    for_each_server([this](auto& server) {
        server.cut_off = true;
        server.close_connections(clock.now());
        server.paused = false;
    });
    (void)lock("another").try_acquire();
    network.pass(2s);
    for_each_server([](auto& server) {
        server.forget_connections();
        server.cut_off = false;
    });
    EXPECT_EQ(keys(), 3U);
    nodes.reset();
    EXPECT_EQ(keys(), 0U);
}

// A connection that has drained, and whose releases were sent again then, is the current one again.
TEST_F(ReleaseWithoutAReply, IsSentOnANewConnectionIfItsOwnWasSilentBefore) {
    auto& server = network.server(2);
    const auto make_rounds = [&](int count, Clock::duration pause) {
        for (int i = 0; i < count; ++i) {
            (void)lock("another").try_acquire();
            network.pass(pause);
        }
    };
    server.refuses = true;
    make_rounds(30, 100ms);  // the next pauses are long
    server.refuses = false;
    server.pauses_after = 1;  // it answers the handshake only
    for (int i = 0; i < 100 && !server.paused; ++i) make_rounds(1, 100ms);
    make_rounds(3, 70ms);
    network.resume(2);
    make_rounds(10, 1s);
    ASSERT_EQ(server.connections(), 1U) << "or this shows nothing";
    auto it = held();
    network.pass(1min);
    server.forget_connections();
    it.unlock();
    make_rounds(5, 100ms);
    EXPECT_EQ(keys(), 0U);
}

TEST_F(ReleaseWithoutAReply, NeedsNoSecondConnectionToASlowServer) {
    auto it = held();
    for_each_server([&](auto& server) { server.latency = node_timeout * 6 / 10; });
    for (int i = 0; i < 5; ++i) {
        network.pass(1s);
        it.unlock();
        network.pass(1s);
        EXPECT_TRUE(it.acquire());
    }
    for_each_server([](auto& server) { EXPECT_EQ(server.connections(), 1U); });
}

TEST_F(ReleaseWithoutAReply, IsSentOnOneNewConnectionOnlyToAFrozenServer) {
    auto it = held();
    network.pass(1s);
    network.server(2).paused = true;
    it.unlock();
    network.pass(1h);
    EXPECT_EQ(network.server(2).connections(), 2U);
    network.resume(2);
    EXPECT_EQ(keys(), 0U);
}

// The SET is pending there. On another connection, the release could overtake it.
TEST_F(ReleaseWithoutAReply, IsSentOnlyOnTheConnectionOfItsSet) {
    (void)held().release();
    network.pass(2s);
    network.server(2).paused = true;
    network.server(2).forget_log();
    auto it = lock();
    ASSERT_TRUE(it.acquire());
    it.unlock();
    network.pass(1ms);
    network.server(2).paused = false;  // for new connections
    network.pass(30s);
    EXPECT_EQ(network.server(2).log().size(), 0U);
}

}  // namespace
}  // namespace redlock::test::unsent_release_test
