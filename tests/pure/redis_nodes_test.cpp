// What the constructor of RedisNodes rejects (A4, A10, D8). None of it does I/O.
#include <redlock/redis_nodes.hpp>

#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace redlock::redis_nodes_test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct Refusal {
    const char* name;
    const char* says;
    std::function<void()> construct;
};

void with(NodesOptions options) {
    const RedisNodes nodes{{"a"}, options};
}

void with(Endpoint endpoint) {
    const RedisNodes nodes{std::vector{std::move(endpoint)}};
}

Tls enabled_tls() {
    Tls tls;
    tls.enabled = true;
    return tls;
}

Endpoint with_sentinels(std::size_t count) {
    return {.sentinels = std::vector<Endpoint>(count, {.host = "s"}), .master = "m"};
}

const std::vector<Refusal>& refusals() {
    static const std::vector<Refusal> all{
        {"AMalformedUri", "host is empty", [] { const RedisNodes nodes{"redis://"}; }},
        {"ANodeTwice", "a:6379 is in the list twice",
         [] {
             const RedisNodes nodes{"a", "b", "redis://a:6379"};
         }},
        {"ANodeTwiceInOtherLetters", "is in the list twice",
         [] {
             const RedisNodes nodes{"Host", "hOST"};
         }},
        {"AMasterTwiceInOtherLettersOfTheHost", "is in the list twice",
         [] {
             const RedisNodes nodes{"redis+sentinel://Host/Main", "redis+sentinel://hOST/Main"};
         }},
        {"ASocketTwice", "/s is in the list twice",
         [] {
             const RedisNodes nodes{"unix:///s", "unix:///s"};
         }},
        {"AClusterTwice", "b:6379 is in the list twice",
         [] {
             const RedisNodes nodes{"redis+cluster://a,b", "redis+cluster://b,c"};
         }},
        {"ASeedTwice", "a:6379 is in the list twice", [] { const RedisNodes nodes{"redis+cluster://a,A"}; }},
        {"AServerThatIsAlsoASeed", "a:6379 is in the list twice",
         [] {
             const RedisNodes nodes{"redis+cluster://a", "a"};
         }},
        {"AClusterWithADatabase", "database must be 0",
         [] { with(Endpoint{.database = 1, .seeds = {{.host = "a"}}}); }},
        {"AClusterWithSentinels", "neither Sentinels",
         [] { with(Endpoint{.sentinels = {{.host = "s"}}, .master = "m", .seeds = {{.host = "a"}}}); }},
        {"ASeedThatIsASocket", "must be a host and port",
         [] { with(Endpoint{.seeds = {{.unix_socket = "/s"}}}); }},
        {"ASeedWithoutHost", "host is empty", [] { with(Endpoint{.seeds = {Endpoint{}}}); }},
        {"AClusterWithAQuarantine", "NodesOptions::quarantine",
         [] {
             const RedisNodes nodes{{"redis+cluster://a"}, {.quarantine = 1min}};
         }},
        {"NoHost", "host is empty", [] { with(Endpoint{}); }},
        {"PortZero", "port is 0", [] { with(Endpoint{.host = "a", .port = 0}); }},
        {"ANegativeDatabase", "database is negative", [] { with(Endpoint{.host = "a", .database = -1}); }},
        {"ALongSocketPath", "longer than 107 bytes",
         [] { with(Endpoint{.unix_socket = "/" + std::string(107, 'x')}); }},
        {"TlsOverAUnixSocket", "TLS is for host and port",
         [] { with(Endpoint{.unix_socket = "/s", .tls = enabled_tls()}); }},
        {"TlsWithSentinelsWithoutAName", "m@s:6379: TLS with Sentinels requires tls.server_name",
         [] {
             auto endpoint = with_sentinels(1);
             endpoint.tls = enabled_tls();
             // The host is not used, and no certificate of a master can be compared with it.
             endpoint.host = "h";
             with(endpoint);
         }},
        {"TlsWithSentinelsWithoutANameInAUri", "requires tls.server_name",
         [] { const RedisNodes nodes{"rediss+sentinel://s/m"}; }},
        {"AUriThatIsWrongAmongSeveral", "redlock: node address 2 of 3: port must be a number",
         [] {
             const RedisNodes nodes{"a", "b:x", "c"};
         }},
        {"AStringThatIsWrongAmongSeveral", "redlock: node address 3 of 3: host is empty",
         [] {
             const RedisNodes nodes{std::vector<std::string>{"a", "b", "redis://"}};
         }},
        {"AListInOneString", "redlock: node address: address is a list",
         [] { const RedisNodes nodes{std::vector<std::string>{"redis://a:7000,redis://b:7000"}}; }},
        {"MoreSentinelsThanArePolled", "17 Sentinels; there must be at most 16",
         [] { with(with_sentinels(17)); }},
        {"NodeTimeoutZero", "NodesOptions::node_timeout is 0 ms", [] { with({.node_timeout = 0ms}); }},
        {"NodeTimeoutAboveAnHour", "NodesOptions::node_timeout", [] { with({.node_timeout = 1h + 1ms}); }},
        {"KeepaliveNegative", "NodesOptions::tcp_keepalive is -1 s", [] { with({.tcp_keepalive = -1s}); }},
        {"KeepaliveAboveTwoHours", "NodesOptions::tcp_keepalive", [] { with({.tcp_keepalive = 2h + 1s}); }},
        {"MaxIdleZero", "NodesOptions::max_idle is 0", [] { with({.max_idle = 0}); }},
        {"MaxIdleAbove10000", "NodesOptions::max_idle is 10001", [] { with({.max_idle = 10'001}); }},
        {"ANegativeQuarantine", "NodesOptions::quarantine is -1 ms", [] { with({.quarantine = -1ms}); }},
        {"AQuarantineAbove100Years", "NodesOptions::quarantine",
         [] { with({.quarantine = std::chrono::hours{24 * 36'526}}); }},
    };
    return all;
}

TEST(RedisNodesConstructor, RejectsInvalidArguments) {
    for (const auto& [name, says, construct] : refusals()) {
        SCOPED_TRACE(name);
        EXPECT_THAT(construct, ThrowsMessage<std::invalid_argument>(HasSubstr(says)));
    }
}

// Two pointers in braces must not be taken for a range of characters.
TEST(RedisNodesConstructor, AcceptsTwoLiteralsInBracesAsTwoNodes) {
    const RedisNodes nodes{{"a", "b"}};
    ASSERT_EQ(nodes.size(), 2U);
    EXPECT_EQ(nodes.name(0), "a:6379");
    EXPECT_EQ(nodes.name(1), "b:6379");
}

// A program has split a list at a comma inside of a password.
TEST(RedisNodesConstructor, QuotesNothingIfAPasswordMayBeInOneOfTheAddresses) {
    const auto error_of = [](const std::vector<std::string>& addresses) -> std::string {
        try {
            const RedisNodes nodes{addresses};
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "no error";
    };
    EXPECT_THAT(error_of({"redis://app:12?s3cret", "rest@h"}), HasSubstr("query has an unknown field"));
    EXPECT_THAT(error_of({"s3cret://h", "redis://h/?password=a"}), HasSubstr("scheme must be"));
    EXPECT_THAT(error_of({"reddis://h", "redis://i"}), HasSubstr("scheme \"reddis\" must be"));
}

// Sentinel distinguishes upper and lower case in the names of masters.
TEST(RedisNodesConstructor, AcceptsMastersWhoseNamesDifferInCase) {
    const RedisNodes nodes{"redis+sentinel://host/Main", "redis+sentinel://host/main"};
    EXPECT_EQ(nodes.size(), 2U);
}

TEST(RedisNodesConstructor, AcceptsTheLimits) {
    with({.node_timeout = 1ms, .max_idle = 1, .tcp_keepalive = 0s});
    with({.tcp_keepalive = 2h});
    with({.node_timeout = 1h, .max_idle = 10'000, .quarantine = std::chrono::hours{24 * 36'525}});
    with(Endpoint{.unix_socket = "/" + std::string(106, 'x')});
    with(with_sentinels(16));
}

}  // namespace
}  // namespace redlock::redis_nodes_test
