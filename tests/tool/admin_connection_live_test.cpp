// Plain words to one node, on the library's own connection.
#include "live_world.hpp"
#include "redis/inquiry.hpp"

namespace redlock::test {
namespace {

using Kind = detail::Reply::Kind;

Endpoint endpoint_of(const RedisServer& server) {
    return Endpoint::parse(server.uri());
}

TEST(Inquiry, GivesBackEachKindOfReply) {
    RedisServer server;
    Inquiry inquiry{endpoint_of(server), 2s};
    EXPECT_EQ(inquiry.ask({"SET", "a", "text"}).reply.kind, Kind::status);
    EXPECT_EQ(inquiry.ask({"GET", "a"}).reply.text, "text");
    EXPECT_EQ(inquiry.ask({"GET", "b"}).reply.kind, Kind::nil);
    EXPECT_EQ(inquiry.ask({"DBSIZE"}).reply.integer, 1);
    const auto list = inquiry.ask({"CONFIG", "GET", "appendfsync"});
    EXPECT_EQ(list.reply.kind, Kind::list);
    EXPECT_EQ(list.reply.text, "appendfsync\neverysec");
    EXPECT_EQ(inquiry.ask({"CONFIG", "GET", "nonsense"}).reply.text, "");
    EXPECT_THAT(inquiry.ask({"INFO"}).reply.text, HasSubstr("run_id:"));
    EXPECT_EQ(inquiry.ask({"EVAL", "return {1,false,'x'}", "0"}).reply.text, "1\n\nx");
}

// A list is for those who asked for one that is short and flat.
TEST(Inquiry, RefusesListsThatAreLongOrDeep) {
    RedisServer server;
    for (const auto* script : {"return {{1}}", "local t={} for i=1,17 do t[i]=i end return t"}) {
        Inquiry inquiry{endpoint_of(server), 2s};
        EXPECT_EQ(inquiry.ask({"EVAL", script, "0"}).cause, Errc::unexpected_reply) << script;
    }
}

TEST(Inquiry, GoesOnAfterAnErrorReply) {
    RedisServer server;
    Inquiry inquiry{endpoint_of(server), 2s};
    EXPECT_TRUE(inquiry.ask({"LPUSH", "list", "1"}));
    const auto wrong = inquiry.ask({"GET", "list"});
    EXPECT_EQ(wrong.cause, Errc::wrong_type);
    EXPECT_THAT(wrong.detail, testing::StartsWith("WRONGTYPE"));
    EXPECT_EQ(inquiry.ask({"TYPE", "list"}).reply.text, "list");
}

TEST(Inquiry, TellsWhyANodeCannotBeAsked) {
    RedisServer server{RedisConfig{}.password("s3cret")};
    auto wrong = endpoint_of(server);
    wrong.password = "wrong";
    EXPECT_EQ(Inquiry(wrong, 2s).connect().cause, Errc::authentication_failed);
    wrong.password = "";
    EXPECT_EQ(Inquiry(wrong, 2s).connect().cause, Errc::authentication_failed);
    EXPECT_TRUE(Inquiry(endpoint_of(server), 2s).connect());
    server.kill();
    EXPECT_EQ(Inquiry(endpoint_of(server), 2s).connect().cause, Errc::connection_failed);
}

TEST(Inquiry, KeepsItsBudget) {
    RedisServer server;
    Inquiry ready{endpoint_of(server), 200ms};
    ASSERT_TRUE(ready.ask({"PING"}));
    server.freeze();
    const auto late = ready.ask({"PING"});
    EXPECT_EQ(late.cause, Errc::timed_out);
    EXPECT_THAT(late.took, LastsAtLeast(200ms));
    EXPECT_THAT(late.took, LastsAtMost(2s));
    EXPECT_THAT(time_taken([&] { EXPECT_EQ(ready.ask({"PING"}).cause, Errc::timed_out); }),
                LastsAtMost(150ms));
    Inquiry fresh{endpoint_of(server), 200ms};
    const auto answer = fresh.connect();
    EXPECT_EQ(answer.cause, Errc::timed_out);
    EXPECT_EQ(answer.detail, "while connecting");
}

TEST(Inquiry, ComesInByAUnixSocketAndSelectsADatabase) {
    RedisServer server{RedisConfig{}.on_unix_socket()};
    Inquiry inquiry{Endpoint::parse(server.uri() + "?db=3"), 2s};
    ASSERT_TRUE(inquiry.ask({"SET", "a", "text"}));
    EXPECT_THAT(server.command({"INFO", "keyspace"}), HasSubstr("db3:keys=1"));
}

}  // namespace
}  // namespace redlock::test
