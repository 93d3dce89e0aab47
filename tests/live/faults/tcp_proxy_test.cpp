// The proxy alone, with a client that is independent of the library. Only the faults are here whose absence
// the users of the proxy would not notice.
#include "fault_world.hpp"
#include "support/resp_connection.hpp"

namespace redlock::test::tcp_proxy_test {
namespace {

using support::RespConnection;

class TheLink : public testing::Test {
protected:
    RespConnection connect(std::chrono::nanoseconds timeout = 10s) {
        return RespConnection{link.port(), timeout};
    }

    /// Returns true if nothing can be read within the timeout, or the connection is closed.
    static bool is_newly_silent(RespConnection& client) {
        try {
            (void)client.read();
            return false;
        } catch (const std::runtime_error&) {
            return true;
        }
    }

    RedisServer server{};
    TcpProxy link{server.port()};
    RespConnection client = connect();
};

TEST_F(TheLink, ForwardsAndCountsAllBytes) {
    const std::string large(3'000'000, 'x');
    EXPECT_EQ(client.ask({"SET", "a", large}), "OK");
    EXPECT_EQ(client.ask({"GET", "a"}), large);
    const auto traffic = link.traffic();
    EXPECT_EQ(traffic.connections, 1U);
    EXPECT_EQ(traffic.open, 1U);
    EXPECT_EQ(traffic.commands, 2U);
    EXPECT_GT(traffic.request_bytes, large.size());
    EXPECT_GT(traffic.reply_bytes, large.size());
    EXPECT_EQ(traffic.waiting_bytes, 0U);
}

TEST_F(TheLink, RecordsTheCommandsOfEachConnection) {
    link.record();
    auto other = connect();
    (void)client.ask({"PING"});
    (void)other.ask({"SET", "key", std::string(100, 'v')});
    const auto seen = link.commands();
    ASSERT_THAT(seen, SizeIs(2));
    EXPECT_NE(seen[0].connection, seen[1].connection);
    EXPECT_THAT(seen[0].words, ElementsAre("PING"));
    EXPECT_THAT(seen[1].words, ElementsAre("SET", "key", std::string(64, 'v')));
}

TEST_F(TheLink, DelaysBothDirections) {
    link.delay(50ms);
    EXPECT_THAT(time_taken([&] { EXPECT_EQ(client.ask({"PING"}), "PONG"); }), LastsAtLeast(100ms));
}

TEST_F(TheLink, TricklesByteByByte) {
    (void)client.ask({"PING"});
    link.trickle(10ms);
    EXPECT_THAT(time_taken([&] { EXPECT_EQ(client.ask({"PING"}), "PONG"); }), LastsAtLeast(6 * 10ms));
    link.trickle();
    EXPECT_EQ(client.ask({"ECHO", std::string(5'000, 'y')}), std::string(5'000, 'y'));
}

TEST_F(TheLink, HoldsRepliesUntilTheyAreReleased) {
    link.hold();
    client.send({"INCR", "n"});
    client.send({"INCR", "n"});
    ASSERT_TRUE(wait_until([&] { return link.traffic().waiting_bytes == 8; }));
    EXPECT_EQ(server.command({"GET", "n"}), "2");
    link.release();
    EXPECT_EQ(client.read(), "1");
    EXPECT_EQ(client.read(), "2");
}

TEST_F(TheLink, ForwardsNothingFromABlackHoleUntilItIsHealed) {
    (void)client.ask({"PING"});
    link.black_hole();
    client.send({"INCR", "n"});
    auto impatient = connect(50ms);
    impatient.send({"INCR", "n"});
    EXPECT_TRUE(is_newly_silent(impatient));
    EXPECT_EQ(server.command({"EXISTS", "n"}), "0");
    link.heal();
    EXPECT_EQ(client.read().size(), 1U);
    EXPECT_TRUE(wait_until([&] { return server.command({"GET", "n"}) == "2"; }));
}

TEST_F(TheLink, CanStopInTheMiddleOfAReply) {
    link.cut_after(10);
    EXPECT_EQ(client.ask({"PING"}), "PONG");
    client.send({"PING"});
    EXPECT_TRUE(is_newly_silent(client));
    EXPECT_EQ(link.traffic().reply_bytes, 10U);
    EXPECT_EQ(link.traffic().open, 0U);
}

TEST_F(TheLink, ForgetsItsConnectionsAndServesNewOnes) {
    auto forgotten = connect(50ms);
    (void)forgotten.ask({"PING"});
    link.forget();
    EXPECT_EQ(connect().ask({"PING"}), "PONG");
    link.heal();
    forgotten.send({"PING"});
    EXPECT_TRUE(is_newly_silent(forgotten));
}

}  // namespace
}  // namespace redlock::test::tcp_proxy_test
