// What a process knows about the servers of a Redis Cluster.
#include "redis/redis_cluster.hpp"
#include "round/hash_slot.hpp"

#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace redlock::redis_cluster_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
constexpr bool moved = false;  // Redirection::asking
constexpr bool ask = true;

constexpr Clock::time_point start{1h};
constexpr auto* two_servers =
    "a 10.0.0.1:7001@1,one.example myself,master - 0 0 1 connected 0-8191\n"
    "b 10.0.0.2:7002@1,two.example master - 0 0 2 connected 8192-16383\n";

NodeConfig config_of(const std::string& uri = "redis+cluster://:pw@seed:7000") {
    return NodeConfig::of(Endpoint::parse(uri), 50ms);
}

std::string name_of(const ClusterServer& server) {
    return server ? server->endpoint.name() : "none";
}

class Servers : public testing::Test {
protected:
    std::string serving(std::uint16_t slot) const { return name_of(cluster.server_of(slot)); }

    /// Returns the releases that this server has to get.
    static std::vector<std::string> debts_of(const NodeConfig& server) {
        std::vector<std::string> result;
        server.server->kept().send_again(true, start, [&](const detail::PendingReply& it) {
            result.push_back((it.asking ? "ASKING " : "") + it.resources.front());
        });
        return result;
    }

    static detail::PendingReply release_of(const std::string& resource) {
        detail::PendingReply release;
        release.effect = detail::KeyEffect::releases;
        release.owner = "me";
        release.resources = {resource};
        return release;
    }

    RedisCluster cluster{config_of()};
};

struct NamedServers : Servers {
    NamedServers() { cluster.learn(two_servers, "seed"); }
};

TEST_F(Servers, AreTheSeedsUntilTheyAreNamed) {
    EXPECT_EQ(serving(0), "none");
    ASSERT_EQ(cluster.servers().size(), 1U);
    EXPECT_EQ(name_of(cluster.servers()[0]), "seed:7000");
    EXPECT_EQ(cluster.servers()[0]->endpoint.password, "pw");
}

TEST_F(NamedServers, AreNamedByOneOfThem) {
    EXPECT_EQ(serving(0), "10.0.0.1:7001");
    EXPECT_EQ(serving(8191), "10.0.0.1:7001");
    EXPECT_EQ(serving(8192), "10.0.0.2:7002");
    EXPECT_EQ(serving(16383), "10.0.0.2:7002");
}

TEST_F(NamedServers, OfATextThatNamesNoneStay) {
    cluster.learn("nonsense", "seed");
    EXPECT_EQ(serving(0), "10.0.0.1:7001");
}

TEST_F(NamedServers, HaveTwoNames) {
    EXPECT_EQ(cluster.server_at({"two.example", 7002}, "seed"), cluster.server_of(16383));
    EXPECT_EQ(name_of(cluster.server_at({"three.example", 7002}, "seed")), "three.example:7002");
}

TEST_F(NamedServers, MoveOneSlot) {
    cluster.redirected({moved, 5, {"10.0.0.2", 7002}}, "10.0.0.1");
    EXPECT_EQ(serving(5), "10.0.0.2:7002");
    EXPECT_EQ(serving(6), "10.0.0.1:7001");
}

TEST_F(Servers, WithoutAHostHaveTheOneThatWasAsked) {
    cluster.redirected({moved, 5, {"", 7942}}, "10.0.0.9");
    EXPECT_EQ(serving(5), "10.0.0.9:7942");
    cluster.learn(two_servers, "10.0.0.9");
    EXPECT_EQ(serving(6), "10.0.0.9:7001") << "clients cannot reach the addresses in the list";
}

TEST_F(Servers, AreNotUnlimited) {
    for (int i = 0; i < 5000; ++i)
        cluster.redirected({moved, 5, {"h", static_cast<std::uint16_t>(i + 1)}}, "seed");
    EXPECT_EQ(cluster.servers().size(), RedisCluster::most_servers);
    cluster.keep(release_of("foo"), {moved, 12182, {"another", 7001}}, "seed");
    EXPECT_THAT(cluster.debtors(), IsEmpty()) << "there is no server for it";
    cluster.learn(two_servers, "seed");
    EXPECT_EQ(serving(0), "10.0.0.1:7001") << "those that nobody uses are forgotten";
}

TEST_F(Servers, AreAskedForTheListOnceInASecondIfItIsOutdated) {
    EXPECT_TRUE(cluster.begin_refresh(start));
    EXPECT_TRUE(cluster.begin_refresh(start)) << "without the list, each new connection asks";
    cluster.learn(two_servers, "seed");
    EXPECT_FALSE(cluster.begin_refresh(start + 1h));
    cluster.outdated();
    EXPECT_FALSE(cluster.begin_refresh(start + 999ms));
    EXPECT_TRUE(cluster.begin_refresh(start + 1s));
    EXPECT_FALSE(cluster.begin_refresh(start + 1s));
    EXPECT_TRUE(cluster.begin_refresh(start + 2s)) << "the first one was not answered";
}

TEST_F(Servers, ThatRefuseTheListAreAskedAgainInASecondAtMost) {
    EXPECT_TRUE(cluster.begin_refresh(start));
    cluster.cannot_learn();
    EXPECT_FALSE(cluster.begin_refresh(start + 1h));
    cluster.outdated();
    EXPECT_FALSE(cluster.begin_refresh(start));
    EXPECT_TRUE(cluster.begin_refresh(start + 1s));
}

TEST_F(NamedServers, GetTheReleasesThatAreRedirectedToThem) {
    cluster.keep(release_of("foo"), {moved, 12182, {"10.0.0.1", 7001}}, "10.0.0.2");
    cluster.keep(release_of("bar"), {ask, 5061, {"10.0.0.2", 7002}}, "10.0.0.1");
    EXPECT_EQ(cluster.debtors().size(), 2U);
    EXPECT_THAT(debts_of(*cluster.server_of(0)), ElementsAre("foo"));
    EXPECT_THAT(debts_of(*cluster.server_of(16383)), ElementsAre("ASKING bar"));
}

TEST_F(NamedServers, GetTheReleasesOfOneThatServesNoSlotAnyMore) {
    const auto former = cluster.server_of(16383);
    cluster.keep(release_of("foo"), {moved, 12182, {"10.0.0.2", 7002}}, "10.0.0.1");
    cluster.learn(
        "a 10.0.0.1:7001@1 master - 0 0 1 connected 0-8191\n"
        "b 10.0.0.3:7003@1 master - 0 0 3 connected 8192-16383\n",
        "10.0.0.1");
    EXPECT_THAT(debts_of(*former), IsEmpty());
    EXPECT_THAT(debts_of(*cluster.server_of(16383)), ElementsAre("foo"));
}

TEST_F(Servers, ShareTheSettingsOfTheNode) {
    auto config = config_of();
    config.credentials = [](std::string_view node) { return Credentials{.password = std::string{node}}; };
    RedisCluster other{config};
    other.learn(two_servers, "seed");
    EXPECT_EQ(other.server_of(0)->credentials("ignored").password, "cluster@seed:7000");
    EXPECT_EQ(other.server_of(0)->node_timeout, 50ms);
    EXPECT_NE(other.server_of(0)->server, other.server_of(16383)->server) << "each has its own health";
}

TEST(RequestsByServer, MakesAPartForEachServer) {
    const auto cluster = std::make_shared<RedisCluster>(config_of());
    cluster->learn(two_servers, "seed");
    const std::array<std::vector<std::string>, 3> resources{{{"foo"}, {"bar"}, {"{foo}:2"}}};
    std::vector<Request> requests;
    for (const auto& it : resources)
        requests.push_back({.command = {.verb = Verb::compare_and_expire, .resources = it}});
    const auto names = std::make_shared<const std::vector<std::string>>(1, "a");
    std::vector<Tally> tallies(3, Tally{names});
    std::vector<std::size_t> sizes;
    std::uint64_t count = 0;
    const RedisClusters clusters{cluster};
    for (RequestsByServer parts{clusters, requests, tallies}; parts.next();) {
        sizes.push_back(parts.requests().size());
        for (auto& tally : parts.tallies()) tally.grant(0, ++count);
    }
    EXPECT_THAT(sizes, ElementsAre(2U, 1U));
    EXPECT_EQ(tallies[0][0].count, 1U);
    EXPECT_EQ(tallies[1][0].count, 3U);
    EXPECT_EQ(tallies[2][0].count, 2U);
}

TEST(RequestsByServer, MakesAPartForEachRequestWhoseSlotIsBeingMoved) {
    const auto cluster = std::make_shared<RedisCluster>(config_of());
    cluster->learn(two_servers, "seed");
    cluster->redirected({ask, detail::hash_slot_of("foo"), {"10.0.0.2", 7002}}, "10.0.0.1");
    const std::array<std::vector<std::string>, 4> resources{{{"foo"}, {"bar"}, {"{foo}:2"}, {"{bar}:2"}}};
    std::vector<Request> requests;
    for (const auto& it : resources)
        requests.push_back({.command = {.verb = Verb::compare_and_expire, .resources = it}});
    const auto names = std::make_shared<const std::vector<std::string>>(1, "a");
    std::vector<Tally> tallies(4, Tally{names});
    const RedisClusters clusters{cluster};
    const auto sizes = [&] {
        std::vector<std::size_t> result;
        for (RequestsByServer parts{clusters, requests, tallies}; parts.next();)
            result.push_back(parts.requests().size());
        return result;
    };
    EXPECT_THAT(sizes(), ElementsAre(1U, 2U, 1U));
    cluster->redirected({moved, detail::hash_slot_of("foo"), {"10.0.0.2", 7002}}, "10.0.0.1");
    EXPECT_THAT(sizes(), ElementsAre(2U, 2U));
}

}  // namespace
}  // namespace redlock::redis_cluster_test
