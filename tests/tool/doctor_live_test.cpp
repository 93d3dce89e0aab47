// `redlock doctor` against servers that are well, and against each kind of unhealthy one.
#include "invocation.hpp"
#include "live/fake_redis_server.hpp"
#include "live_world.hpp"
#include "support/loopback_name.hpp"
#include "support/sentinel_group.hpp"
#include "support/temporary_directory.hpp"

#include <fstream>
#include <thread>

namespace redlock::test::doctor_live_test {
namespace {

const RedisConfig well = RedisConfig{}.keeps_data();

Invocation doctor(const std::string& nodes, const std::vector<std::string>& more = {}) {
    return Invocation{nodes, joined({"doctor"}, more)};
}

/// A cluster of three in which the last is another kind of server.
struct UnhealthyWorld {
    explicit UnhealthyWorld(const RedisConfig& unhealthy)
        : server{unhealthy}, list{others.uri_list() + "," + server.uri()} {}

    /// Its findings, by subject.
    std::vector<std::string> findings() {
        report = doctor(list, {"--json"}).json();
        return subjects(report.at("nodes").at(2).at("findings"));
    }
    int status() { return doctor(list).status(); }
    const nlohmann::json& finding(std::size_t number = 0) {
        return report["nodes"][2]["findings"].at(number);
    }

    Cluster others{2, well};
    RedisServer server;
    std::string list;
    nlohmann::json report{};
};

TEST(Doctor, FindsNothingWrongWithHealthyServers) {
    Cluster cluster{3, well};
    auto text = doctor(cluster.uri_list());
    EXPECT_EQ(text.status(), 0) << text.output();
    EXPECT_THAT(text.output(), HasSubstr("ok: 3 of 3 nodes have a vote, the quorum is 2: 1 may fail"));
    const auto json = doctor(cluster.uri_list(), {"--json"}).json();
    EXPECT_EQ(json.at("verdict"), "ok");
    EXPECT_EQ(json.at("may_fail"), 1);
    for (const auto& node : json.at("nodes")) {
        EXPECT_EQ(node.at("verdict"), "ok");
        EXPECT_THAT(node.at("server"), testing::AnyOf("redis", "valkey"));
        EXPECT_EQ(node.at("role"), "master");
        EXPECT_EQ(node.at("appendfsync"), "always");
        EXPECT_GT(node.at("round_trip_ms"), 0.0);
        EXPECT_EQ(node.at("run_id").get<std::string>().size(), 40U);
        EXPECT_THAT(node.at("findings"), IsEmpty());
    }
}

TEST(Doctor, DoesNotTouchAHeldLock) {
    LiveWorld world{3, {.node_timeout = 2s}, well};
    auto lock = world.lock(LockOptions{.ttl = 1min});
    ASSERT_THAT(lock.acquire(), Succeeds());
    auto it = doctor(world.uri_list(), {"--probe", the_resource});
    EXPECT_EQ(it.status(), 0) << it.output();
    EXPECT_THAT(it.output(), HasSubstr("held by another"));
    EXPECT_EQ(world.keys_of(lock.owner()), 3U);
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_EQ(doctor(world.uri_list(), {"--probe", ""}).status(), 64);
}

TEST(Doctor, WarnsOfRecentlyStartedServersWithoutPersistence) {
    Cluster cluster{3};
    const auto json = doctor(cluster.uri_list(), {"--ttl", "10m", "--json"}).json();
    EXPECT_EQ(json.at("verdict"), "warning");
    for (const auto& node : json.at("nodes"))
        EXPECT_THAT(subjects(node.at("findings")), ElementsAre("persistence", "uptime"));
    EXPECT_EQ(doctor(cluster.uri_list(), {"--ttl", "10m"}).status(), 1);
    auto text = doctor(cluster.uri_list());
    EXPECT_EQ(text.status(), 1);
    EXPECT_THAT(text.output(),
                HasSubstr("warning: all nodes: a crash can take its last writes: appendonly no"));
}

TEST(Doctor, DoesNotAcceptAReplica) {
    Cluster cluster{2, well};
    RedisServer replica{RedisConfig{}.keeps_data().replica_of(cluster[0].port())};
    const auto list = cluster.uri_list() + "," + replica.uri();
    const auto json = doctor(list, {"--json"}).json();
    EXPECT_THAT(subjects(json["nodes"][2].at("findings")), ElementsAre("role"));
    EXPECT_EQ(json["nodes"][2].at("role"), "replica");
    EXPECT_EQ(json.at("votes"), 2);
    EXPECT_EQ(doctor(list).status(), 2);
}

TEST(Doctor, DoesNotAcceptAServerThatEvictsKeys) {
    UnhealthyWorld world{
        RedisConfig{}.keeps_data().max_memory("100mb").line("maxmemory-policy volatile-ttl")};
    EXPECT_THAT(world.findings(), ElementsAre("eviction"));
    EXPECT_EQ(world.finding().at("remedy"), "maxmemory-policy noeviction");
    EXPECT_EQ(world.status(), 2);
}

TEST(Doctor, DoesNotAcceptAServerWithoutFreeMemory) {
    UnhealthyWorld world{RedisConfig{}.keeps_data().max_memory("1")};
    EXPECT_THAT(world.findings(), ElementsAre("memory"));
    EXPECT_EQ(world.report.at("votes"), 2);
    EXPECT_EQ(world.status(), 2);
}

TEST(Doctor, SaysWhatAServerWithoutEvalCannotDo) {
    UnhealthyWorld world{RedisConfig{}.keeps_data().line("rename-command EVAL \"\"")};
    EXPECT_THAT(world.findings(), ElementsAre("check"));
    EXPECT_EQ(
        world.finding().at("why"),
        "it grants locks, and can neither extend nor release them, so each of them stays until its ttl ends");
    EXPECT_EQ(world.finding().at("remedy"), "remove rename-command EVAL from the server's redis.conf");
    EXPECT_EQ(world.status(), 2);
}

TEST(Doctor, AcceptsAServerWithoutEvalsha) {
    UnhealthyWorld world{RedisConfig{}.keeps_data().line("rename-command EVALSHA \"\"")};
    EXPECT_THAT(world.findings(), testing::IsEmpty());
    EXPECT_EQ(world.status(), 0);
}

TEST(Doctor, AdvisesToRemoveAPasswordThatTheServerDoesNotHave) {
    const RedisServer server;
    const auto list = "redis://:s3cret@" + server.name();
    const auto json = doctor(list, {"--json"}).json();
    const auto& finding = json["nodes"][0].at("findings")[0];
    EXPECT_THAT(finding.at("what"),
                HasSubstr("ERR AUTH <password> called without any password configured for the default user"));
    EXPECT_EQ(finding.at("remedy"),
              "remove the password from the node's address, or give the server one with requirepass");
}

TEST(Doctor, FindsTheSameServerBehindTwoNames) {
    Cluster cluster{2, well};
    const auto again = std::string{support::loopback_name} + ":" + std::to_string(cluster[0].port());
    const auto list = cluster.uri_list() + "," + again;
    const auto json = doctor(list, {"--json"}).json();
    ASSERT_THAT(subjects(json["nodes"][2].at("findings")), ElementsAre("same_server"));
    EXPECT_THAT(json["nodes"][2]["findings"][0].at("what"), HasSubstr(cluster[0].name()));
    EXPECT_EQ(doctor(list).status(), 2);
}

TEST(Doctor, FindsAWrongClock) {
    support::TemporaryDirectory directory;
    const auto clock = directory / "clock";
    std::ofstream{clock} << -3600 << '\n';
    UnhealthyWorld world{RedisConfig{}.keeps_data().clock_set_by(clock)};
    EXPECT_THAT(world.findings(), ElementsAre("clock"));
    EXPECT_THAT(world.finding().at("what"), HasSubstr("behind the other nodes'"));
    EXPECT_EQ(world.status(), 2);
}

// Of stopped clocks, a difference within one second does not depend on when they are read.
TEST(Doctor, ComparesFractionsOfASecond) {
    support::TemporaryDirectory directory;
    std::ofstream{directory / "right"} << "@1760000000000000\n";
    std::ofstream{directory / "wrong"} << "@1760000000900000\n";
    const Cluster others{2, RedisConfig{well}.clock_set_by(directory / "right")};
    const RedisServer server{RedisConfig{well}.clock_set_by(directory / "wrong")};
    const auto json = doctor(others.uri_list() + "," + server.uri(), {"--json"}).json();
    EXPECT_THAT(subjects(json["nodes"][2].at("findings")), ElementsAre("clock"));
}

TEST(Doctor, WarnsOfAMinorityThatDoesNotAnswer) {
    UnhealthyWorld world{well};
    world.server.kill();
    EXPECT_THAT(world.findings(), ElementsAre("reach"));
    EXPECT_EQ(world.report["nodes"][2].at("verdict"), "unreachable");
    EXPECT_THAT(world.finding().at("what"), HasSubstr("Connection refused"));
    EXPECT_EQ(world.report.at("may_fail"), 0);
    EXPECT_EQ(world.status(), 1);
    world.others[0].kill();
    EXPECT_EQ(world.status(), 2);
}

// The server answers, but accepts no writes.
TEST(Doctor, FindsAServerThatCannotSaveItsData) {
    UnhealthyWorld world{RedisConfig{well}.line("dbfilename taken")};
    const std::filesystem::path directory{world.server.command({"CONFIG", "GET", "dir"}).substr(4)};
    std::filesystem::create_directory(directory / "taken");
    world.server.command({"CONFIG", "SET", "save", "3600 1"});
    world.server.command({"BGSAVE"});
    ASSERT_TRUE(
        wait_until([&] { return world.server.info("persistence", "rdb_last_bgsave_status") == "err"; }));
    EXPECT_THAT(world.findings(), ElementsAre("check"));
    EXPECT_THAT(world.finding().at("what"), HasSubstr("MISCONF"));
    EXPECT_THAT(world.finding().at("remedy"), HasSubstr("save its data"));
    EXPECT_EQ(world.report["nodes"][2].at("verdict"), "unsafe");
}

TEST(Doctor, NamesTheAddressThatUsesASentinel) {
    UnhealthyWorld world{well};
    const RedisServer sentinel{RedisConfig{}.sentinel_of(world.server.port())};
    const auto report = doctor("redis://" + sentinel.name(), {"--json"}).json();
    const auto& finding = report["nodes"][0]["findings"].at(0);
    EXPECT_THAT(subjects(report["nodes"][0]["findings"]), ElementsAre("mode"));
    EXPECT_THAT(finding.at("remedy"), HasSubstr("redis+sentinel://" + sentinel.name() + "/MASTER"));
}

TEST(Doctor, DistinguishesAWrongPasswordFromADeadServer) {
    Cluster cluster{3, RedisConfig{}.keeps_data().password("s3cret")};
    const auto list = cluster[0].uri() + "," + cluster[1].uri() + ",redis://:wr0ng@" + cluster[2].name();
    auto text = doctor(list);
    EXPECT_EQ(text.status(), 1);
    EXPECT_THAT(text.output(), HasSubstr("unreachable: " + cluster[2].name() + ": authentication failed"));
    EXPECT_THAT(text.output(), Not(HasSubstr("wr0ng")));
    EXPECT_THAT(text.output(), Not(HasSubstr("s3cret")));
}

TEST(Doctor, IsNotDelayedByAFrozenNode) {
    Cluster cluster{3, well};
    cluster[1].freeze();
    Invocation it{cluster.uri_list(), {"doctor"}, "500ms"};
    EXPECT_THAT(time_taken([&] { EXPECT_EQ(it.status(), 1); }), LastsAtMost(10s));
    EXPECT_THAT(it.output(), HasSubstr("unreachable: " + cluster[1].name() + ": timed out"));
    cluster[1].thaw();
}

// One slow reply makes no node slow.
TEST(Doctor, MeasuresTheMedianOfSeveralRoundTrips) {
    const FakeRedisServer server{[](Session& session) {
        for (int pings = 0;;) {
            const bool ping = session.receive_command().front() == "PING";
            if (ping && ++pings == 3) std::this_thread::sleep_for(500ms);
            session.send(ping ? "+PONG\r\n" : "-ERR\r\n");
        }
    }};
    EXPECT_LT(doctor(server.uri(), {"--json"}).json()["nodes"][0].at("round_trip_ms"), 500);
}

TEST(DoctorWithSentinels, ChecksTheSafetyOfAFailover) {
    const support::SentinelGroup group;
    const auto& master = group.servers[0];
    auto uri = group.uri();
    const auto about_failover = [&] {
        std::vector<std::string> found;
        const auto report = doctor(uri, {"--json", "--quarantine", "1h"}).json();
        for (const auto& it : report.at("nodes").at(0).at("findings"))
            if (it.at("subject") == "failover") found.push_back(it.at("what"));
        return found;
    };
    EXPECT_THAT(about_failover(), ElementsAre("repl-backlog-ttl is 3600.0 s"));
    master.command({"CONFIG", "SET", "repl-backlog-ttl", "0"});
    EXPECT_THAT(about_failover(), IsEmpty());
    support::SentinelGroup::allow_writes_alone(master, true);
    EXPECT_THAT(about_failover(), ElementsAre("it takes writes without a replica"));
    master.command({"ACL", "SETUSER", "default", "-config"});
    EXPECT_THAT(about_failover(), ElementsAre(HasSubstr("CONFIG GET is not answered: permission denied")));
    master.command({"ACL", "SETUSER", "default", "+config"});
    support::SentinelGroup::allow_writes_alone(master, false);
    uri = uri.substr(0, uri.find(',')) + uri.substr(uri.rfind('/'));
    EXPECT_THAT(about_failover(), ElementsAre("its address lists 1 of 3 Sentinels"));
}

}  // namespace
}  // namespace redlock::test::doctor_live_test
