// Rule D14: the documented permissions of an ACL suffice, and a missing one is reported by name.
#include "guarantees/guarantee_world.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace redlock::test::permissions_live_test {
namespace {

const std::vector<std::string> needed{"set", "get", "del", "pttl", "pexpire", "eval"};

/// A server with a user who has the needed permissions and `more`, except `missing`.
struct Server {
    explicit Server(const std::string& missing = {}, const std::string& more = {},
                    milliseconds quarantine = {}) {
        std::string rules = "worker on >s3cret resetkeys ~orders:* -@all" + more;
        for (const auto& command : needed)
            if (command != missing) rules += " +" + command;
        if (missing != "evalsha") rules += " +evalsha";
        server.emplace(RedisConfig{}.no_default_user().user(rules).user("admin on >s3cret ~* +@all"));
        if (quarantine > 0ms) whole_since(*server, 1min);
        nodes.emplace({server->uri("worker", "s3cret")},
                      NodesOptions{.node_timeout = 2s, .quarantine = quarantine});
    }
    Lock lock(std::string resource = the_resource, LockOptions options = {}) {
        return Lock{*nodes, std::move(resource), options};
    }

    std::optional<RedisServer> server;
    std::optional<RedisNodes> nodes;
};

// D14. Not even PING is needed. docs/operations.md lists what fencing and a quarantine need in addition.
TEST(Permissions, TheDocumentedMinimumIsEnough) {
    Server plain, counting{{}, " ~{orders:*}:fence +info +exists +time"},
        in_quarantine{{}, " ~redlock:since +info +exists +time", quarantine};
    for (auto* const server : {&plain, &counting, &in_quarantine}) {
        auto lock = server->lock(the_resource, {.fencing = server == &counting});
        for (int i = 0; i < 3; ++i) {  // by EVAL, then by EVALSHA
            EXPECT_THAT(lock.acquire(), Succeeds());
            EXPECT_THAT(lock.extend(20s), Succeeds());
            EXPECT_THAT(expiry(*server->server), LastsAtLeast(11s));
            EXPECT_THAT(lock.release(), Succeeds());
            EXPECT_EQ(holder(*server->server), "(nil)");
        }
    }
}

// A password that is replaced while the nodes are used, for example a token that expires.
TEST(CredentialsOfNodes, CanChangeForNewConnections) {
    const RedisServer server{RedisConfig{}.user("worker on >first ~* +@all").no_default_user()};
    std::string password = "first";
    std::string node;
    RedisNodes nodes{{"redis://" + server.name()},
                     {.node_timeout = 2s, .credentials = [&](std::string_view name) {
                          node = name;
                          return Credentials{"worker", password};
                      }}};
    Lock lock{nodes, the_resource};
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(node, server.name());
    server.command({"ACL", "SETUSER", "worker", "<first", ">second"});
    EXPECT_THAT(lock.extend(), Succeeds()) << "a connection that exists goes on";
    server.command({"CLIENT", "KILL", "USER", "worker"});
    password = "second";
    EXPECT_TRUE(wait_until([&] { return bool{lock.extend()}; }));
    EXPECT_THAT(lock.release(), Succeeds());
}

TEST(CredentialsOfNodes, FailTheConnectionIfThereAreNone) {
    const RedisServer server;
    bool fails = true;
    RedisNodes nodes{{server.name()}, {.node_timeout = 2s, .credentials = [&](auto) -> Credentials {
                                           if (fails) throw std::runtime_error{"no token"};
                                           return {};
                                       }}};
    Lock lock{nodes, the_resource, no_retry()};
    const auto result = lock.acquire();
    EXPECT_THAT(result, Reports(0, Errc::connection_failed));
    EXPECT_EQ(result.nodes()[0].detail, "no credentials: no token");
    fails = false;
    EXPECT_TRUE(wait_until([&] { return bool{lock.acquire()}; }));
}

/// Extends and releases two locks by turns, so that scripts are known to the connection.
void expect_to_extend_and_release(RedisNodes& nodes) {
    Lock lock{nodes, the_resource, {.ttl = 20s}};
    for (int i = 0; i < 3; ++i) {
        ASSERT_THAT(lock.acquire(), Succeeds());
        for (int k = 0; k < 4; ++k) EXPECT_THAT(lock.extend(30s), Succeeds());
        EXPECT_THAT(lock.release(), Succeeds());
    }
}

// D6. Without EVALSHA, each script is sent in full.
TEST(Permissions, ForEvalshaAreNotNeeded) {
    Server server{"evalsha"};
    expect_to_extend_and_release(*server.nodes);
}

TEST(Permissions, EvalshaMayBeRenamed) {
    const RedisServer server{RedisConfig{}.line("rename-command EVALSHA \"\"")};
    RedisNodes nodes{{server.uri()}, {.node_timeout = 2s}};
    expect_to_extend_and_release(nodes);
}

// A query omits what it may not read beside the lock. A description that may not be written is omitted.
TEST(Permissions, ForTheAuxiliaryKeysAreNotNeeded) {
    Server least{{}, " +type"};
    auto lock = least.lock(the_resource, {.holder = "host=web1"});
    ASSERT_THAT(lock.acquire(), Succeeds());
    for (int i = 0; i < 2; ++i) {
        const auto status = query(*least.nodes, the_resource);
        EXPECT_EQ(status.owner, lock.owner()) << status.nodes[0].detail;
        EXPECT_EQ(status.holder, "");
    }
    EXPECT_THAT(lock.release(), Succeeds());
}

constexpr auto by_itself = [](const auto& info) { return info.param; };
class EachPermission : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Permissions, EachPermission, testing::ValuesIn(needed), by_itself);

// D7, D14. Each permission is needed. The report names the missing one.
TEST_P(EachPermission, IsReportedByNameIfItIsMissing) {
    Server server{GetParam()};
    auto lock = server.lock();
    std::vector<Result> failures;
    for (int i = 0; i < 2; ++i) {  // the second pass uses EVALSHA
        for (auto& result : {lock.acquire(), lock.extend(1min), lock.extend(2min), lock.release()})
            if (!result.nodes().empty() && !result) failures.push_back(result);
        (void)server.server->command({"FLUSHALL"});
    }
    ASSERT_FALSE(failures.empty()) << "it is not needed?";
    for (const auto& failure : failures) {
        ASSERT_THAT(failure, FailsWith(Errc::no_quorum));
        ASSERT_THAT(failure, Reports(0, Errc::permission_denied));
        // Redis 7 does not name the command that a script may not call.
        ASSERT_THAT(failure.message(), testing::AnyOf(HasSubstr(GetParam()), HasSubstr("script can't run")));
        EXPECT_EQ(failure.attempts(), 1) << "retrying is pointless";
    }
}

/// The permissions of an operation that counts its holder, without the one that is missing.
constexpr auto* to_count = " ~{orders:*}:fence +info +exists +time";

// D7, D14. The counter of the holders cannot be read, or has no expiry.
TEST_P(EachPermission, IsReportedByNameIfItIsMissingForFencing) {
    Server server{GetParam(), to_count};
    auto lock = server.lock(the_resource, {.fencing = true});
    const auto acquired = lock.acquire();
    const auto released = lock.release();
    for (const auto& result : {acquired, released})
        if (!result.nodes().empty() && !result) {
            EXPECT_THAT(result, FailsWith(Errc::no_quorum));
            EXPECT_THAT(result, Reports(0, Errc::permission_denied));
        }
    for (const auto* const key : {the_resource, "{orders:42}:fence"})
        EXPECT_NE(server.server->command({"PTTL", key}), "-1") << key;
}

const std::vector<std::string> needed_to_share{
    "set", "get", "del", "time", "zadd", "zrange", "zrem", "zremrangebyscore", "zscore", "pexpireat"};

class EachPermissionToShare : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Permissions, EachPermissionToShare, testing::ValuesIn(needed_to_share), by_itself);

// D7, D14. A node whose user may not do all is no node that another client holds.
TEST_P(EachPermissionToShare, IsReportedByNameIfItIsMissing) {
    std::string more = " ~{orders:*}:readers";
    for (const auto& command : needed_to_share)
        if (command != GetParam()) more += " +" + command;
    for (const bool others_read : {false, true}) {
        Server server{GetParam(), more};
        RedisNodes nodes{{server.server->uri("admin", "s3cret")}, {.node_timeout = 2s}};
        Lock other{nodes, the_resource, {.ttl = 1min, .shared = true}};
        if (others_read) {
            ASSERT_THAT(other.acquire(), Succeeds());
        }
        auto lock = server.lock(the_resource, {.shared = true});
        std::vector<Result> failures;
        for (auto& result : {lock.acquire(), lock.extend(20s), lock.release()})
            if (!result.nodes().empty() && !result) failures.push_back(result);
        ASSERT_TRUE(!failures.empty() || (others_read && GetParam() == "del")) << "it is not needed?";
        for (const auto& failure : failures) {
            EXPECT_THAT(failure, FailsWith(Errc::no_quorum));
            EXPECT_THAT(failure, Reports(0, Errc::permission_denied));
        }
        for (const auto* const key : {the_resource, "{orders:42}:readers"})
            EXPECT_NE(server.server->command({"PTTL", key}), "-1") << key << " has an expiry";
        if (others_read) {
            EXPECT_THAT(expiry(*server.server), LastsAtLeast(30s)) << "of the other reader";
        }
    }
}

// D14. A quarantine needs INFO. A missing permission for it is reported by name.
TEST(Permissions, ForInfoAreReportedByName) {
    Server server{{}, " ~redlock:since +exists +time", quarantine};
    const auto result = server.lock().acquire();
    EXPECT_THAT(result, FailsWith(Errc::no_quorum));
    EXPECT_THAT(result, Reports(0, Errc::permission_denied));
    EXPECT_THAT(result.message(), HasSubstr("info"));
}

}  // namespace
}  // namespace redlock::test::permissions_live_test
