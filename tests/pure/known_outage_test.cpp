// A lock whose resource another client holds on a minority of the nodes, while the other nodes are down and
// in back-off. The round does not ask the nodes in back-off, because the refusals have decided. Nevertheless
// the result must say that there is no quorum. The last test has nodes that are slow, which the client cannot
// know.
#include "round_driver_world.hpp"
#include "waiting_world.hpp"

#include <redlock/error.hpp>
#include <redlock/lock.hpp>

#include <chrono>

namespace redlock::test::known_outage_test {
namespace {

/// Two of five nodes are held by another client. The other three are down, and this client knows it.
struct MostNodesAreDown : testing::Test, WaitingWorld {
    MostNodesAreDown() : WaitingWorld(5) {
        for (const auto node : {2U, 3U, 4U}) network.server(node).refuses = true;
        for (int i = 0; i < 10; ++i) {
            EXPECT_EQ(mine.try_acquire().error(), Errc::no_quorum);
            network.pass(1s);
        }
        EXPECT_EQ(mine.try_acquire().error(), Errc::no_quorum) << "the back-off begins";
        for (const auto node : {0U, 1U}) hold(node, "other");
    }

    MemoryNodes& nodes = client();
    Lock mine{nodes, "r", {}, network.clock(), entropy};
};

// A7, A12. A node in back-off does not count as one that works, although the round did not ask it.
TEST_F(MostNodesAreDown, IsNoQuorumAndNotARefusal) {
    const auto result = mine.try_acquire();
    EXPECT_EQ(result.error(), Errc::no_quorum);
    for (const auto node : {2U, 3U, 4U}) {
        EXPECT_EQ(result.nodes()[node].cause, Errc::backing_off);
        EXPECT_TRUE(result.nodes()[node].left_alone);
        EXPECT_FALSE(result.nodes()[node].sent);
    }
    EXPECT_THAT(result.message(), HasSubstr("n2 backing off (after: connection failed"));
}

TEST_F(MostNodesAreDown, EndsAnEndlessWait) {
    EXPECT_LE(time_taken(network, [this] { EXPECT_THROW(mine.lock(), Error); }), 1s) << "three attempts";
}

// D7. Waiting does not help, and the report says why.
TEST_F(MostNodesAreDown, ReportsAPermanentCause) {
    for (const auto node : {2U, 3U, 4U}) {
        network.server(node).refuses = false;
        network.server(node).instead = "-NOAUTH Authentication required.\r\n";
    }
    for (const auto node : {0U, 1U}) ask(node, {"DEL", "r"});
    EXPECT_EQ(mine.try_acquire().error(), Errc::no_quorum);
    for (const auto node : {0U, 1U}) hold(node, "other");
    const auto result = mine.acquire_for(10s);
    EXPECT_EQ(result.error(), Errc::no_quorum);
    EXPECT_EQ(result.attempts(), 1);
    EXPECT_EQ(result.nodes()[2].cause, Errc::authentication_failed);
    EXPECT_TRUE(result.nodes()[2].left_alone);
}

/// A majority of the nodes has too many clients. The parameter is the number of processors: many, or none, so
/// that all rounds share connections.
struct MostNodesHaveTooManyClients : testing::TestWithParam<std::size_t>, WaitingWorld {
    MostNodesHaveTooManyClients() : WaitingWorld(3, {.node_timeout = 50ms}, GetParam()) {
        for (const auto node : {0U, 1U}) network.server(node).last_words = too_many_clients;
    }

    Lock mine{client(), "r", {}, network.clock(), entropy};
};

INSTANTIATE_TEST_SUITE_P(Processors, MostNodesHaveTooManyClients,
                         testing::Values(many_processors, std::size_t{0}));

// D7
TEST_P(MostNodesHaveTooManyClients, LetsTheCallerWait) {
    after(7s, [this] {
        for (const auto node : {0U, 1U}) network.server(node).last_words = "";
    });
    const auto start = now();
    const auto result = mine.acquire_for(20s);
    EXPECT_TRUE(result) << result.message();
    EXPECT_GE(now() - start, 7s);
}

/// A process that has connections, but no descriptor left for another one.
struct AProcessWithoutDescriptors : testing::Test, WaitingWorld {
    AProcessWithoutDescriptors() : WaitingWorld(3) {
        EXPECT_TRUE(held.acquire());
        network.has_no_descriptor = true;
    }

    NodeLog log;
    MemoryNodes nodes{network, 3, {.observer = &log}};
    Lock held{nodes, "held", {}, network.clock(), entropy};
};

// A round that begins while another one is under way has its own lane. This lane gets no connections here,
// and must not be the one that later rounds use.
TEST_F(AProcessWithoutDescriptors, UsesTheConnectionsThatItHas) {
    Lock other{nodes, "other", {}, network.clock(), entropy};
    bool fails = false;
    after(500us, [&] { fails = !other.try_acquire(); });
    EXPECT_TRUE(held.extend());
    EXPECT_TRUE(fails) << "or this test shows nothing";
    EXPECT_TRUE(held.extend());
    EXPECT_TRUE(other.try_acquire());
    EXPECT_THAT(log.lines, Not(Contains(HasSubstr("backing off")))) << "the servers have not failed";
}

TEST_F(AProcessWithoutDescriptors, BlamesNoServerIfItCannotListen) {
    for (std::size_t node = 0; node < 3; ++node) hold(node, "other");
    Lock waiting = lock(nodes);
    EXPECT_EQ(waiting.acquire_for(1s).error(), Errc::held_by_other);
    EXPECT_THAT(log.lines, Not(Contains(HasSubstr("backing off"))));
}

// A8. A fifth of the caller's time is left for each node here, which is less than an eighth of node_timeout.
// The silence of a node then means nothing, so the caller makes another attempt.
TEST(SlowNodes, AreAskedAgainIfTheyHadTooLittleTime) {
    WaitingWorld world{5, {.node_timeout = 1s}};
    Lock lock{world.client(), "r", {.retry = {.delay = 10ms}}, world.network.clock(), world.entropy};
    ASSERT_TRUE(lock.acquire());
    ASSERT_TRUE(lock.release());
    world.network.pass(5ms);
    world.forget_log();
    const auto set_latency = [&](Clock::duration latency) {
        for (std::size_t node = 0; node < 3; ++node) world.network.server(node).latency = latency;
    };
    set_latency(200ms);
    world.after(350ms, [&] { set_latency(1ms); });
    const auto result = lock.acquire_for(600ms);
    EXPECT_TRUE(result) << result.message();
    EXPECT_EQ(world.all(0, "SET").size(), 2U) << "two attempts";
}

}  // namespace
}  // namespace redlock::test::known_outage_test
