
#include <gmock/gmock.h>

#include <string>

#include "round/cluster_map.hpp"

namespace redlock::detail::cluster_map_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

ServerAddress address_in(std::string_view error) {
    const auto to = parse_redirection(error);
    return to ? to->to : ServerAddress{};
}

TEST(Redirections, NameASlotAndAServer) {
    const auto moved = parse_redirection("MOVED 3999 127.0.0.1:6381");
    ASSERT_TRUE(moved);
    EXPECT_FALSE(moved->asking);
    EXPECT_EQ(moved->hash_slot, 3999);
    EXPECT_EQ(moved->to, (ServerAddress{"127.0.0.1", 6381}));
    const auto ask = parse_redirection("ASK 16383 redis-2.local:7000");
    ASSERT_TRUE(ask);
    EXPECT_TRUE(ask->asking);
    EXPECT_EQ(ask->hash_slot, 16383);
    EXPECT_EQ(ask->to, (ServerAddress{"redis-2.local", 7000}));
}

TEST(Redirections, HaveIpv6AddressesWithAndWithoutBrackets) {
    EXPECT_EQ(address_in("MOVED 1 2001:db8::1:7000"), (ServerAddress{"2001:db8::1", 7000}));
    EXPECT_EQ(address_in("MOVED 1 [::1]:7000"), (ServerAddress{"::1", 7000}));
}

TEST(Redirections, MayLeaveOutTheHost) {
    EXPECT_EQ(address_in("MOVED 15495 :7942"), (ServerAddress{"", 7942}));
    EXPECT_EQ(address_in("MOVED 15495 ?:7942"), (ServerAddress{"", 7942}));
}

TEST(NoRedirections, AreNotFollowed) {
    for (const auto* const error :
         {"", "MOVED", "MOVED 1", "MOVED 1 h", "MOVED 16384 h:1", "MOVED -1 h:1", "MOVED x h:1",
          "MOVED 1 h:0", "MOVED 1 h:65536", "MOVED 1 h:", "MOVED 1 h:7x", "MOVED 1 h:7 more", "moved 1 h:7",
          "ERR MOVED 1 h:7", "TRYAGAIN Multiple keys request during rehashing of slot",
          "MOVED 4294967297 h:7", "MOVED 1 h\x01:7"})
        EXPECT_FALSE(parse_redirection(error)) << error;
}

TEST(Redirections, HaveNoHostThatIsTooLong) {
    EXPECT_TRUE(parse_redirection("MOVED 1 " + std::string(255, 'h') + ":7"));
    EXPECT_FALSE(parse_redirection("MOVED 1 " + std::string(256, 'h') + ":7"));
}

constexpr auto* nodes =
    "07c3 127.0.0.1:30004@31004,hostname4 slave e7d1 0 1426238317239 4 connected\n"
    "67ed 127.0.0.1:30002@31002,hostname2,shard-id=69bc master - 0 1426238316232 2 connected 5461-10922\n"
    "292f 127.0.0.1:30003@31003,,tls-port=0 master - 0 1426238318243 3 connected 10923-16383 [93-<-e7d1]\n"
    "6ec2 127.0.0.1:30005@31005 slave 67ed 0 1426238316232 5 connected\n"
    "e7d1 ::1:30001@31001 myself,master - 0 0 1 connected 0-92 94-5460 93 [95->-292f]\n";

TEST(ClusterNodes, ListTheMastersWithTheirSlots) {
    const auto masters = parse_cluster_nodes(nodes);
    ASSERT_THAT(masters, SizeIs(3));
    EXPECT_EQ(masters[0].address, (ServerAddress{"127.0.0.1", 30002}));
    EXPECT_EQ(masters[0].host_name, "hostname2");
    EXPECT_THAT(masters[0].hash_slots, ElementsAre(Pair(5461, 10922)));
    EXPECT_FALSE(masters[0].moves_hash_slots);
    EXPECT_EQ(masters[1].host_name, "");
    EXPECT_TRUE(masters[1].moves_hash_slots);
    EXPECT_EQ(masters[2].address, (ServerAddress{"::1", 30001}));
    EXPECT_THAT(masters[2].hash_slots, ElementsAre(Pair(0, 92), Pair(94, 5460), Pair(93, 93)));
}

TEST(ClusterNodes, OfAServerThatDoesNotKnowItsAddressHaveNoHost) {
    const auto masters = parse_cluster_nodes("e7d1 :7001@17001 myself,master - 0 0 1 connected 0-16383\n");
    ASSERT_THAT(masters, SizeIs(1));
    EXPECT_EQ(masters[0].address, (ServerAddress{"", 7001}));
}

TEST(ClusterNodes, OfRedis3HaveNoBusPort) {
    const auto masters = parse_cluster_nodes("e7d1 10.0.0.1:7001 master - 0 0 1 connected 5");
    ASSERT_THAT(masters, SizeIs(1));
    EXPECT_EQ(masters[0].address, (ServerAddress{"10.0.0.1", 7001}));
}

TEST(ClusterNodes, WithoutAnAddressOrASlotAreLeftOut) {
    EXPECT_THAT(parse_cluster_nodes("a :0@0 master,noaddr - 0 0 1 disconnected 1-2\n"
                                    "b h:1@2 handshake,master - 0 0 1 connected 1-2\n"
                                    "c h:1@2 master - 0 0 1 connected\n"
                                    "d h:1@2 master - 0 0 1 connected 2-1 x 16384 1-\n"
                                    "e\n\n"),
                IsEmpty());
}

TEST(ClusterNodes, KeepTheSlotsOfAMasterThatHasFailed) {
    EXPECT_THAT(parse_cluster_nodes("a h:1@2 master,fail - 0 0 1 disconnected 7"), SizeIs(1));
}

}  // namespace
}  // namespace redlock::detail::cluster_map_test
