// `redlock doctor` on nodes whose locks have a quarantine.
#include "guarantees/guarantee_world.hpp"
#include "invocation.hpp"

namespace redlock::test::doctor_quarantine_live_test {
namespace {

Invocation doctor(const Cluster& cluster, const std::vector<std::string>& more = {}) {
    return Invocation{cluster.uri_list(), joined({"doctor", "--ttl", "2s", "--quarantine", "3s"}, more),
                      "1s"};
}

std::vector<std::string> keys_of(const RedisServer& server) {
    std::vector<std::string> keys;
    std::istringstream list{server.command({"KEYS", "*"})};
    for (std::string key; std::getline(list, key);) keys.push_back(key);
    return keys;
}

TEST(DoctorQuarantine, IsNotStartedWithoutMark) {
    Cluster cluster{3};
    auto it = doctor(cluster);
    EXPECT_EQ(it.status(), 1);
    EXPECT_THAT(it.output(), HasSubstr("redlock doctor --mark --quarantine 3s"));
    for (auto& server : cluster) EXPECT_TRUE(wait_until([&] { return server.command({"DBSIZE"}) == "0"; }));
}

TEST(DoctorQuarantine, IsStartedByMark) {
    Cluster cluster{3};
    auto it = doctor(cluster, {"--mark"});
    EXPECT_EQ(it.status(), 1);
    EXPECT_THAT(it.output(), HasSubstr(cluster[2].name() + ": in quarantine until 20"));
    for (auto& server : cluster)
        EXPECT_TRUE(wait_until([&] { return keys_of(server) == std::vector{marker}; }));
    RedisNodes nodes{cluster.uris(), {.node_timeout = 1s, .quarantine = 3s}};
    Lock lock{nodes, the_resource, no_retry(2s)};
    EXPECT_TRUE(wait_until([&] { return static_cast<bool>(lock.acquire()); }));
}

TEST(DoctorQuarantine, IsNoFindingAfterItsEnd) {
    Cluster cluster{3};
    for (auto& server : cluster) whole_since(server, 1min);
    for (const std::vector<std::string>& how : {std::vector<std::string>{}, {"--mark"}}) {
        auto it = doctor(cluster, how);
        EXPECT_EQ(it.status(), 0) << it.output();
        EXPECT_THAT(it.output(), HasSubstr("has its quarantine behind it"));
        for (auto& server : cluster)
            EXPECT_TRUE(wait_until([&] { return keys_of(server) == std::vector{marker}; },
                                   5s))  // less than the probe lasts
                << "the probe is released";
    }
}

TEST(DoctorQuarantine, OfOneNodeIsReportedWithItsEnd) {
    Cluster cluster{3};
    whole_since(cluster[0], 1min);
    whole_since(cluster[1], 1min);
    whole_since(cluster[2], 1s);
    const auto json = doctor(cluster, {"--json"}).json();
    EXPECT_EQ(json.at("verdict"), "warning");
    EXPECT_EQ(json.at("votes"), 2);
    EXPECT_EQ(json["nodes"][0].at("quarantine_left_ms"), 0);
    EXPECT_THAT(subjects(json["nodes"][2].at("findings")), ElementsAre("quarantine"));
    EXPECT_GT(json["nodes"][2].at("quarantine_left_ms"), 0);
    EXPECT_LE(json["nodes"][2].at("quarantine_left_ms"), 2000);
}

}  // namespace
}  // namespace redlock::test::doctor_quarantine_live_test
