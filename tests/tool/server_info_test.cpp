// INFO as servers of several makes write it.
#include "tool/doctor/server_info.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace redlock::tool::server_info_test {
namespace {

using namespace std::chrono_literals;

constexpr auto* of_redis =
    "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:0123abcd\r\n"
    "uptime_in_seconds:3600\r\n\r\n# Memory\r\nused_memory:1048576\r\nused_memory_human:1.00M\r\n"
    "maxmemory:2097152\r\nmaxmemory_policy:volatile-ttl\r\n\r\n# Persistence\r\naof_enabled:1\r\n\r\n"
    "# Replication\r\nrole:master\r\nconnected_slaves:2\r\n";

TEST(ServerInfo, ParsesTheReplyToInfo) {
    const auto info = ServerInfo::parse(of_redis);
    EXPECT_EQ(info.make, "redis");
    EXPECT_EQ(info.version, "7.0.15");
    EXPECT_EQ(info.run_id, "0123abcd");
    EXPECT_EQ(info.mode, "standalone");
    EXPECT_EQ(info.role, "master");
    EXPECT_EQ(info.replicas, 2U);
    EXPECT_EQ(info.uptime, 1h);
    EXPECT_EQ(info.appendonly, true);
    EXPECT_EQ(info.used_memory, 1048576U);
    EXPECT_EQ(info.max_memory, 2097152U);
    EXPECT_EQ(info.eviction, "volatile-ttl");
}

// Users know it by this word, which REPLICAOF has as well.
TEST(ServerInfo, CallsASlaveAReplica) {
    EXPECT_EQ(ServerInfo::parse("role:slave\r\n").role, "replica");
}

TEST(AnAge, IsShownInTheUnitThatFits) {
    const std::vector<std::pair<std::chrono::seconds, std::string>> table{
        {0s, "0 s"}, {119s, "119 s"}, {2min, "2 min"},    {2h - 1s, "119 min"},
        {2h, "2 h"}, {25h, "25 h"},   {48h - 1s, "47 h"}, {48h, "2 d"},
    };
    for (const auto& [age, text] : table) EXPECT_EQ(text_of_age(age), text);
}

// The name of one master may be the beginning of the name of another one.
TEST(ServerInfo, CountsTheSentinelsOfTheMaster) {
    const std::string info =
        "# Sentinel\r\nsentinel_masters:3\r\nmaster2:name=half,status=ok\r\n"
        "master0:name=orders-2,status=ok,slaves=1,sentinels=5\r\n"
        "master1:name=orders,status=ok,slaves=1,sentinels=3\r\n";
    EXPECT_EQ(sentinels_in(info, "orders"), 3U);
    EXPECT_EQ(sentinels_in(info, "orders-2"), 5U);
    for (const auto* const unknown : {"order", "orders-", "half"}) EXPECT_FALSE(sentinels_in(info, unknown));
}

TEST(ServerInfo, OmitsMissingFields) {
    for (const auto* text : {"", "role", "# Server\r\n", "uptime_in_seconds:soon\r\nmaxmemory:-1\r\n"}) {
        const auto info = ServerInfo::parse(text);
        EXPECT_EQ(info.make, "");
        EXPECT_EQ(info.role, "");
        EXPECT_FALSE(info.uptime);
        EXPECT_FALSE(info.max_memory);
        EXPECT_FALSE(info.appendonly);
    }
}

TEST(ServerInfo, OmitsAnImpossibleUptime) {
    EXPECT_EQ(ServerInfo::parse("uptime_in_seconds:3153600000\r\n").uptime, 100 * 365 * 24h);
    EXPECT_FALSE(ServerInfo::parse("uptime_in_seconds:18446744073709551615\r\n").uptime);
    EXPECT_FALSE(ServerInfo::parse("uptime_in_seconds:9223372036854775807\r\n").uptime);
}

TEST(ServerInfo, RecognizesTheMakeOfAServer) {
    const auto make = [](const char* text) {
        const auto info = ServerInfo::parse(text);
        return info.make + " " + info.version;
    };
    EXPECT_EQ(make("redis_version:7.2.4\nserver_name:valkey\nvalkey_version:8.1.1\n"), "valkey 8.1.1");
    EXPECT_EQ(make("redis_version:7.2.0\ndragonfly_version:df-v1.20.1\n"), "dragonfly df-v1.20.1");
    EXPECT_EQ(make("redis_version:6.3.4\nexecutable:/usr/bin/keydb-server\n"), "keydb 6.3.4");
    EXPECT_EQ(make("redis_version:2.4.0\n"), "redis 2.4.0");
}

TEST(Version, IsComparedByNumbers) {
    EXPECT_LT(parse_version("2.6.9"), parse_version("2.6.12"));
    EXPECT_LT(parse_version("2.6.12"), parse_version("2.8"));
    EXPECT_LT(parse_version("9.0.0"), parse_version("10.0.0"));
    EXPECT_FALSE(parse_version("255.255.255") < parse_version("255.255.255"));
    EXPECT_EQ(parse_version("nonsense"), (Version{0, 0, 0}));
    EXPECT_EQ(parse_version("7.2-rc1"), (Version{7, 2, 0}));
}

}  // namespace
}  // namespace redlock::tool::server_info_test
