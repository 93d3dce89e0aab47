// The command on a node that is a Redis Cluster.
#include "support/redis_cluster_servers.hpp"
#include "tool_world.hpp"

#include <string>
#include <vector>

namespace redlock::test::cluster_live_test {
namespace {

using support::RedisClusterServers;

Outcome redlock_on(const RedisClusterServers& servers, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin() + 1, {"--node-timeout", "2s"});
    return Tool{arguments, {"REDLOCK_NODES=" + servers.uri()}}.wait();
}

TEST(TheCommandOnACluster, RunsAndShowsLocks) {
    RedisClusterServers servers;
    const auto run = redlock_on(servers, {"run", "orders:42", "--", "sh", "-c", "exit 7"});
    EXPECT_EQ(run.status, 7) << run.err;
    const auto acquired = redlock_on(servers, {"acquire", "--ttl", "1m", "orders:42"});
    EXPECT_EQ(acquired.status, 0) << acquired.err;
    const auto owner = acquired.out.substr(0, acquired.out.find('\n'));
    EXPECT_THAT(redlock_on(servers, {"status", "orders:42"}).out, HasSubstr("cluster@" + servers[0].name()));
    EXPECT_EQ(redlock_on(servers, {"who", "orders:42"}).status, 0);
    EXPECT_EQ(redlock_on(servers, {"release", "--owner", owner, "orders:42"}).status, 0);
    EXPECT_TRUE(wait_until([&] { return servers.clean(); }));
}

TEST(TheCommandOnACluster, RefusesWhatIsNotPossible) {
    RedisClusterServers servers;
    const auto fair = redlock_on(servers, {"acquire", "--fair", "orders:42"});
    EXPECT_EQ(fair.status, 64);
    EXPECT_THAT(fair.err, HasSubstr("Redis Cluster"));
    const auto braces = redlock_on(servers, {"acquire", "a}b"});
    EXPECT_EQ(braces.status, 64);
    EXPECT_THAT(braces.err, HasSubstr("a}b"));
}

TEST(DoctorOnACluster, ReportsItsSettingsAndServers) {
    RedisClusterServers servers;
    servers[0].command({"CLUSTER", "DELSLOTS", "7"});
    RedisClusterServers::begin_move(8, servers[0], servers[1]);
    for (auto& server : servers) server.command({"CONFIG", "SET", "cluster-allow-reads-when-down", "yes"});
    servers[2].kill();
    const auto doctor = redlock_on(servers, {"doctor"});
    EXPECT_THAT(doctor.out, HasSubstr("1 of its slots have no master")) << doctor.err;
    EXPECT_THAT(doctor.out, HasSubstr(servers[2].name() + " (connection failed"));
    EXPECT_THAT(doctor.out, HasSubstr(servers[0].name() + " is moving slots"));
    EXPECT_THAT(doctor.out, HasSubstr("cluster-require-full-coverage is yes"));
    EXPECT_THAT(doctor.out, HasSubstr("two clients can hold the lock after a failover"));
    EXPECT_THAT(doctor.out, HasSubstr("only its server " + servers[0].name()));
}

}  // namespace
}  // namespace redlock::test::cluster_live_test
