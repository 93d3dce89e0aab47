// Plain words to one node, on the library's own connection.
#include "fake_redis_server.hpp"
#include "live_world.hpp"
#include "tool/doctor/admin_connection.hpp"

namespace redlock::test::admin_connection_live_test {
namespace {

using tool::AdminConnection;
using Kind = detail::Reply::Kind;

Endpoint endpoint_of(const RedisServer& server) {
    return Endpoint::parse(server.uri());
}

TEST(AdminConnection, ReturnsEachKindOfReply) {
    RedisServer server;
    AdminConnection admin{endpoint_of(server), 2s};
    EXPECT_EQ(admin.ask({"SET", "a", "text"}).reply.kind, Kind::status);
    EXPECT_EQ(admin.ask({"GET", "a"}).reply.text, "text");
    EXPECT_EQ(admin.ask({"GET", "b"}).reply.kind, Kind::nil);
    EXPECT_EQ(admin.ask({"DBSIZE"}).reply.integer, 1);
    const auto list = admin.ask({"CONFIG", "GET", "appendfsync"});
    EXPECT_EQ(list.reply.kind, Kind::list);
    EXPECT_EQ(list.reply.text, "appendfsync\neverysec");
    EXPECT_EQ(admin.ask({"CONFIG", "GET", "nonsense"}).reply.text, "");
    EXPECT_THAT(admin.ask({"INFO"}).reply.text, HasSubstr("run_id:"));
    EXPECT_EQ(admin.ask({"EVAL", "return {1,false,'x'}", "0"}).reply.text, "1\n\nx");
}

// A list is for those who asked for one that is short and flat.
TEST(AdminConnection, RejectsLongAndNestedLists) {
    RedisServer server;
    for (const auto* script : {"return {{1}}", "local t={} for i=1,17 do t[i]=i end return t"}) {
        AdminConnection admin{endpoint_of(server), 2s};
        EXPECT_EQ(admin.ask({"EVAL", script, "0"}).cause, Errc::unexpected_reply) << script;
    }
}

TEST(AdminConnection, ContinuesAfterAnErrorReply) {
    RedisServer server;
    AdminConnection admin{endpoint_of(server), 2s};
    EXPECT_TRUE(admin.ask({"LPUSH", "list", "1"}));
    const auto wrong = admin.ask({"GET", "list"});
    EXPECT_EQ(wrong.cause, Errc::wrong_type);
    EXPECT_THAT(wrong.detail, testing::StartsWith("WRONGTYPE"));
    EXPECT_EQ(admin.ask({"TYPE", "list"}).reply.text, "list");
}

TEST(AdminConnection, ReportsWhyANodeCannotBeAsked) {
    RedisServer server{RedisConfig{}.password("s3cret")};
    auto wrong = endpoint_of(server);
    wrong.password = "wrong";
    EXPECT_EQ(AdminConnection(wrong, 2s).connect().cause, Errc::authentication_failed);
    wrong.password = "";
    EXPECT_EQ(AdminConnection(wrong, 2s).connect().cause, Errc::authentication_failed);
    EXPECT_TRUE(AdminConnection(endpoint_of(server), 2s).connect());
    server.kill();
    EXPECT_EQ(AdminConnection(endpoint_of(server), 2s).connect().cause, Errc::connection_failed);
}

TEST(AdminConnection, EndsAtItsTimeout) {
    RedisServer server;
    AdminConnection ready{endpoint_of(server), 200ms};
    ASSERT_TRUE(ready.ask({"PING"}));
    server.freeze();
    const auto late = ready.ask({"PING"});
    EXPECT_EQ(late.cause, Errc::timed_out);
    EXPECT_THAT(late.took, LastsAtLeast(200ms));
    EXPECT_THAT(late.took, LastsAtMost(2s));
    EXPECT_THAT(time_taken([&] { EXPECT_EQ(ready.ask({"PING"}).cause, Errc::timed_out); }),
                LastsAtMost(150ms));
    AdminConnection fresh{endpoint_of(server), 200ms};
    const auto answer = fresh.connect();
    EXPECT_EQ(answer.cause, Errc::timed_out);
    EXPECT_EQ(answer.detail, "while connecting");
}

// Connecting and asking are paid for together.
TEST(AdminConnection, IncludesConnectingInItsTimeout) {
    FakeRedisServer server{[](Session& session) {
        session.receive_command();
        session.trickle("+PONG\r\n", 300ms);
        session.ignore_all();
    }};
    AdminConnection admin{Endpoint::parse(server.uri()), 2s};
    EXPECT_THAT(time_taken([&] { EXPECT_EQ(admin.ask({"PING"}).cause, Errc::timed_out); }),
                LastsAtMost(3500ms));
}

TEST(AdminConnection, ConnectsOverAUnixSocketAndSelectsADatabase) {
    RedisServer server{RedisConfig{}.on_unix_socket()};
    AdminConnection admin{Endpoint::parse(server.uri() + "?db=3"), 2s};
    ASSERT_TRUE(admin.ask({"SET", "a", "text"}));
    EXPECT_THAT(server.command({"INFO", "keyspace"}), HasSubstr("db3:keys=1"));
}

}  // namespace
}  // namespace redlock::test::admin_connection_live_test
