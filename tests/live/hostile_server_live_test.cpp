// Rules A3, A7, D1, D2 and E against servers whose replies are invalid, too long, too slow or missing. No
// other node is affected, and the cause is reported.
#include "fake_redis_server.hpp"
#include "live_world.hpp"
#include "scheduling_delay.hpp"
#include "support/process_state.hpp"

#include <optional>

namespace redlock::test::hostile_server_live_test {
namespace {

struct HostileBehavior {
    std::string name;
    Errc cause;                     ///< as acquire() reports it
    FakeRedisServer::Behavior act;  ///< on a connection, from the start or after the handshake
};
void PrintTo(const HostileBehavior& hostile, std::ostream* out) {
    *out << hostile.name;
}

/// Sends the same bytes for every command.
FakeRedisServer::Behavior answering(std::string reply) {
    return [reply = std::move(reply)](Session& session) {
        for (;;) {
            (void)session.receive_command();
            session.send(reply);
        }
    };
}

/// Sends these bytes for the first command, and nothing for later ones.
FakeRedisServer::Behavior answering_once(std::string reply) {
    return [reply = std::move(reply)](Session& session) {
        (void)session.receive_command();
        session.send(reply);
        session.ignore_all();
    };
}

FakeRedisServer::Behavior streaming(std::string start, char byte) {
    return [start = std::move(start), block = std::string(65'536, byte)](Session& session) {
        (void)session.receive_command();
        session.send(start);
        for (;;) session.send(block);
    };
}

const std::vector<HostileBehavior> hostile_behaviors{
    {"Http", Errc::unexpected_reply, answering("HTTP/1.1 400 Bad Request\r\n\r\n")},
    {"Garbage", Errc::unexpected_reply, answering(std::string("\0\xFF\x7F\r\n\r\n\0", 8))},
    {"AnEmptyLine", Errc::unexpected_reply, answering("\r\n")},
    {"AnotherStatus", Errc::unexpected_reply, answering("+QUEUED\r\n")},
    {"AnInteger", Errc::unexpected_reply, answering(":1\r\n")},
    {"AString", Errc::unexpected_reply, answering("$2\r\nOK\r\n")},
    {"AnArray", Errc::unexpected_reply, answering("*1\r\n+OK\r\n")},
    {"ANestedArray", Errc::unexpected_reply,
     answering("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n")},
    {"AHugeArray", Errc::unexpected_reply, answering_once("*1000000000\r\n")},
    {"AHugerArray", Errc::unexpected_reply, answering_once("*9223372036854775807\r\n")},
    {"ANegativeArray", Errc::unexpected_reply, answering_once("*-2\r\n")},
    {"AHugeString", Errc::timed_out, answering_once("$9999999999\r\n")},
    {"ANegativeString", Errc::unexpected_reply, answering_once("$-2\r\n")},
    {"AStringOfNoLength", Errc::unexpected_reply, answering_once("$x\r\n")},
    {"AnError", Errc::unknown_error, answering("-ERR no\r\n")},
    {"AnEmptyError", Errc::unknown_error, answering("-\r\n")},
    {"ALongError", Errc::unknown_error, answering("-ERR " + std::string(20'000, 'x') + "\r\n")},
    {"HalfAReply", Errc::timed_out, answering_once("+O")},
    {"Nothing", Errc::timed_out, [](Session& session) { session.ignore_all(); }},
    {"AnEndlessString", Errc::unexpected_reply, streaming("$9999999999\r\n", 'x')},
    {"AnEndlessLine", Errc::unexpected_reply, streaming("+", 'x')},
    {"AnEndlessError", Errc::unexpected_reply, streaming("-", '-')},
    {"EndlessNewlines", Errc::unexpected_reply, streaming("", '\n')},
    {"ATrickle", Errc::timed_out,
     [](Session& session) { session.trickle("$1000\r\n" + std::string(1'000, 'x'), 5ms); }},
    {"AClosedConnection", Errc::connection_failed, [](Session&) {}},
    {"AnEndAfterAByte", Errc::connection_failed, [](Session& session) { session.receive_byte(); }},
    {"AByteAndAnEnd", Errc::connection_failed,
     [](Session& session) {
         (void)session.receive_command();
         session.send("+");
     }},
    {"TwoReplies", Errc::unexpected_reply, answering("+OK\r\n+OK\r\n")},
    {"AReset", Errc::connection_failed,
     [](Session& session) {
         session.receive_byte();
         session.reset();
     }},
};

/// When the hostile behavior begins: with the first byte, or after the handshake.
enum class Beginning : bool { at_once, after_the_handshake };

void PrintTo(Beginning beginning, std::ostream* out) {
    *out << (beginning == Beginning::at_once ? "at once" : "after the handshake");
}

FakeRedisServer::Behavior behavior(const HostileBehavior& hostile, Beginning beginning) {
    if (beginning == Beginning::at_once) return hostile.act;
    return [act = hostile.act](Session& session) {
        (void)session.receive_command();
        session.send("+PONG\r\n");
        act(session);
    };
}

struct WithOneHostileNode : testing::TestWithParam<std::tuple<HostileBehavior, Beginning, Round>> {
    const HostileBehavior& hostile = std::get<0>(GetParam());
    const Beginning beginning = std::get<1>(GetParam());
    const Round round = std::get<2>(GetParam());
};
constexpr auto by_all_three = [](const auto& info) {
    const auto& [hostile, beginning, round] = info.param;
    return hostile.name + (beginning == Beginning::at_once ? "First" : "Then") +
           (round == Round::sequential ? "InTurn" : "AtOnce");
};
INSTANTIATE_TEST_SUITE_P(Hostile, WithOneHostileNode,
                         testing::Combine(testing::ValuesIn(hostile_behaviors),
                                          testing::Values(Beginning::at_once, Beginning::after_the_handshake),
                                          each_round()),
                         by_all_three);

// A3, A12, E. One of three nodes is hostile. It is reported with its cause within its node_timeout, and the
// others are not affected. After 200 rounds no descriptor has leaked.
TEST_P(WithOneHostileNode, TheLockStillWorks) {
    constexpr auto node_timeout = 500ms;
    const FakeRedisServer fake{behavior(hostile, beginning)};
    Cluster servers{2};
    std::optional<RedisNodes> nodes;
    const auto two_rounds = [&] {
        Lock lock{*nodes, the_resource};
        auto result = lock.acquire_for(10s);
        (void)lock.release();
        return result;
    };
    const auto expect_success = [](const Result& result) {
        EXPECT_THAT(result, Succeeds());
        EXPECT_EQ(count(result, Vote::granted), 2U);
    };
    Result first{Errc::lost};
    Clock::duration took{};
    repeat_where_delayed(servers, node_timeout / 2, [&] {
        nodes.emplace(std::vector{fake.uri(), servers[0].uri(), servers[1].uri()},
                      NodesOptions{.node_timeout = node_timeout, .round = round});
        took = own_time([&] { first = two_rounds(); });
        const bool is_as_expected = round != Round::sequential || first.nodes()[0].cause == hostile.cause;
        return is_as_expected && took <= 3 * node_timeout && first.attempts() == 1;
    });
    expect_success(first);
    EXPECT_THAT(took, LastsAtMost(3 * node_timeout)) << "acquire and release";
    const auto& report = first.nodes()[0];
    EXPECT_EQ(report.vote, Vote::unknown);
    if (round == Round::sequential) {
        // The reply to PING may be any status. The reply to a SET must be OK.
        EXPECT_THAT(first, Reports(0, hostile.cause));
    }
    EXPECT_LE(report.detail.size(), 200U);

    for (int i = 0; i < 20; ++i) expect_success(two_rounds());
    const auto open = support::descriptors().size();
    for (int i = 0; i < 100; ++i) expect_success(two_rounds());
    // A connection that may still get a reply is kept for a while (B5). There are at most 64, and both ends
    // are in this process.
    const auto kept = hostile.cause == Errc::timed_out ? 2U * 64U : 0U;
    EXPECT_TRUE(wait_until([&] { return support::descriptors().size() <= open + kept + 5; }))
        << "descriptors leak";
    for (auto& server : servers) EXPECT_TRUE(wait_until([&] { return server.command({"DBSIZE"}) == "0"; }));
}

}  // namespace
}  // namespace redlock::test::hostile_server_live_test
