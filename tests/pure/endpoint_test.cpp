// Endpoint::parse(): what it accepts and rejects. No message shows a password (D11).
#include "world.hpp"

#include <redlock/endpoint.hpp>

#include <stdexcept>

namespace redlock::test::endpoint_test {
namespace {

using namespace std::string_literals;

// ---- Valid addresses.

struct Good {
    const char* name;
    std::string uri;
    Endpoint expected;
};

void expect_equal(const Endpoint& endpoint, const Endpoint& expected) {
    EXPECT_EQ(endpoint.host, expected.host);
    EXPECT_EQ(endpoint.port, expected.port);
    EXPECT_EQ(endpoint.unix_socket, expected.unix_socket);
    EXPECT_EQ(endpoint.username, expected.username);
    EXPECT_EQ(endpoint.password, expected.password);
    EXPECT_EQ(endpoint.database, expected.database);
    EXPECT_EQ(endpoint.tls.enabled, expected.tls.enabled);
    EXPECT_EQ(endpoint.tls.ca_file, expected.tls.ca_file);
    EXPECT_EQ(endpoint.tls.certificate, expected.tls.certificate);
    EXPECT_EQ(endpoint.tls.key, expected.tls.key);
    EXPECT_EQ(endpoint.tls.server_name, expected.tls.server_name);
    EXPECT_EQ(endpoint.master, expected.master);
    ASSERT_EQ(endpoint.sentinels.size(), expected.sentinels.size());
    for (std::size_t i = 0; i < expected.sentinels.size(); ++i)
        expect_equal(endpoint.sentinels[i], expected.sentinels[i]);
    ASSERT_EQ(endpoint.seeds.size(), expected.seeds.size());
    for (std::size_t i = 0; i < expected.seeds.size(); ++i)
        expect_equal(endpoint.seeds[i], expected.seeds[i]);
}

const Good good[] = {
    {"Host", "example.org", {.host = "example.org"}},
    {"HostAndPort", "example.org:7000", {.host = "example.org", .port = 7000}},
    {"Ipv4", "10.0.0.1:6379", {.host = "10.0.0.1"}},
    {"Ipv6", "[::1]:7000", {.host = "::1", .port = 7000}},
    {"Ipv6WithoutPort", "[2001:db8::1]", {.host = "2001:db8::1"}},
    {"HostWithDash", "redis-1.local", {.host = "redis-1.local"}},
    {"LeastPort", "h:1", {.host = "h", .port = 1}},
    {"MostPort", "h:65535", {.host = "h", .port = 65535}},
    {"Uri", "redis://example.org", {.host = "example.org"}},
    {"UriWithSlash", "redis://example.org/", {.host = "example.org"}},
    {"UriWithPort", "redis://example.org:7000", {.host = "example.org", .port = 7000}},
    {"UriWithDatabase", "redis://example.org/3", {.host = "example.org", .database = 3}},
    {"UriWithAll",
     "redis://alice:secret@10.0.0.1:7000/15",
     {.host = "10.0.0.1", .port = 7000, .username = "alice", .password = "secret", .database = 15}},
    {"UriWithIpv6",
     "redis://:pw@[::1]:7000/1",
     {.host = "::1", .port = 7000, .password = "pw", .database = 1}},
    {"ZoneOfIpv6", "[fe80::1%25]:7000", {.host = "fe80::1%25", .port = 7000}},
    {"UriWithZoneOfIpv6", "redis://[fe80::1%eth0]", {.host = "fe80::1%eth0"}},
    {"UriWithEncodedZoneOfIpv6", "redis://[fe80::1%25eth0]", {.host = "fe80::1%eth0"}},
    {"ZoneIsDecodedOnce", "redis://[fe80::1%2525eth0]", {.host = "fe80::1%25eth0"}},
    {"ZoneWithoutAUri", "[fe80::1%25eth0]", {.host = "fe80::1%25eth0"}},
    {"PasswordOnly", "redis://:secret@h", {.host = "h", .password = "secret"}},
    {"UserOnly", "redis://alice@h", {.host = "h", .username = "alice"}},
    {"PercentEncoded",
     "redis://al%69ce:p%40s%3As%2Fw%25@h",
     {.host = "h", .username = "alice", .password = "p@s:s/w%"}},
    {"PercentEncodedEitherCase", "redis://:%2f%2F@h", {.host = "h", .password = "//"}},
    {"PercentEncodedUtf8", "redis://:%C3%BC@h", {.host = "h", .password = "\xC3\xBC"}},
    {"PercentEncodedOnce", "redis://:%2541@h", {.host = "h", .password = "%41"}},
    {"PlusIsAPlus", "redis://:a+b@h", {.host = "h", .password = "a+b"}},
    {"PasswordWithColon", "redis://alice:a:b@h", {.host = "h", .username = "alice", .password = "a:b"}},
    {"PasswordWithAt", "redis://alice:p@ss@h", {.host = "h", .username = "alice", .password = "p@ss"}},
    {"PasswordEndsWithAt", "redis://:pw@@h", {.host = "h", .password = "pw@"}},
    {"PasswordWithComma", "redis://alice:a,b@h", {.host = "h", .username = "alice", .password = "a,b"}},
    {"UnixPasswordWithAt", "unix://:p@ss@/r.sock", {.unix_socket = "/r.sock", .password = "p@ss"}},
    {"SentinelsPasswordWithAtAndComma",
     "redis+sentinel://alice:p@s,s@s1,s2/main",
     {.port = 0,
      .username = "alice",
      .password = "p@s,s",
      .sentinels = {{.host = "s1", .port = 26379}, {.host = "s2", .port = 26379}},
      .master = "main"}},
    {"OneSentinel",
     "redis+sentinel://s1/main",
     {.port = 0, .sentinels = {{.host = "s1", .port = 26379}}, .master = "main"}},
    {"SentinelsWithAll",
     "redis+sentinel://al:pw@s1:7000,[::1],10.0.0.3/my%2Fmain/2?sentinel_user=bob&sentinel_password=s%2C3",
     {.port = 0,
      .username = "al",
      .password = "pw",
      .database = 2,
      .sentinels = {{.host = "s1", .port = 7000, .username = "bob", .password = "s,3"},
                    {.host = "::1", .port = 26379, .username = "bob", .password = "s,3"},
                    {.host = "10.0.0.3", .port = 26379, .username = "bob", .password = "s,3"}},
      .master = "my/main"}},
    {"SentinelsWithTls",
     "rediss+sentinel://s1/main?ca_file=/ca&server_name=db",
     {.port = 0,
      .tls = {.enabled = true, .ca_file = "/ca", .server_name = "db"},
      .sentinels = {{.host = "s1", .port = 26379, .tls = {.enabled = true, .ca_file = "/ca"}}},
      .master = "main"}},
    {"SentinelsWithoutTls",
     "rediss+sentinel://s1/main?server_name=db&sentinel_tls=no",
     {.port = 0,
      .tls = {.enabled = true, .server_name = "db"},
      .sentinels = {{.host = "s1", .port = 26379}},
      .master = "main"}},
    {"ClusterWithOneSeed", "redis+cluster://c1", {.port = 0, .seeds = {{.host = "c1"}}}},
    {"ClusterWithAll",
     "redis+cluster://al:p,w@c1:7000,[::1],10.0.0.3/0",
     {.port = 0,
      .username = "al",
      .password = "p,w",
      .seeds = {{.host = "c1", .port = 7000}, {.host = "::1"}, {.host = "10.0.0.3"}}}},
    {"ClusterWithTls",
     "rediss+cluster://c1,c2?ca_file=/ca&server_name=db",
     {.port = 0,
      .tls = {.enabled = true, .ca_file = "/ca", .server_name = "db"},
      .seeds = {{.host = "c1"}, {.host = "c2"}}}},
    {"Unix", "unix:///run/redis.sock", {.unix_socket = "/run/redis.sock"}},
    {"UnixWithDatabase", "unix:///run/redis.sock?db=2", {.unix_socket = "/run/redis.sock", .database = 2}},
    {"UnixWithUser",
     "unix://alice:secret@/run/redis.sock",
     {.unix_socket = "/run/redis.sock", .username = "alice", .password = "secret"}},
    {"UnixEncoded", "unix:///run/a%20b.sock", {.unix_socket = "/run/a b.sock"}},
    {"LongestHost", std::string(255, 'h'), {.host = std::string(255, 'h')}},
    {"Tls", "rediss://example.org:7000", {.host = "example.org", .port = 7000, .tls = {.enabled = true}}},
    {"TlsWithFiles",
     "rediss://:pw@h/1?ca_file=/etc/ca.pem&certificate=%2Fc.pem&key=/k.pem&server_name=redis.example",
     {.host = "h",
      .password = "pw",
      .database = 1,
      .tls = {.enabled = true,
              .ca_file = "/etc/ca.pem",
              .certificate = "/c.pem",
              .key = "/k.pem",
              .server_name = "redis.example"}}},
};

TEST(ValidAddresses, AreParsed) {
    for (const auto& [name, uri, expected] : good) {
        SCOPED_TRACE(name);
        expect_equal(Endpoint::parse(uri), expected);
    }
}

// ---- Invalid addresses.

/// If a `uri` has a password, it is "hunter2".
struct Bad {
    const char* name;
    std::string uri;
    const char* part;
};

const Bad bad[] = {
    {"Empty", "", "empty"},
    {"Blank", " ", "space"},
    {"LeadingBlank", " h:6379", "space"},
    {"TrailingNewline", "redis://h\n", "space"},
    {"BlankInHost", "redis://a b", "space"},
    {"NulInHost", "redis://h\0x"s, "control"},
    {"NulInPassword", "redis://:hunter2\0@h"s, "control"},
    {"SchemeUnknown", "http://h", "scheme"},
    {"SchemeUnknownWithPassword", "mysql://alice:hunter2@h", "scheme"},
    {"SchemeEmpty", "://h", "scheme"},
    {"SchemeMissing", "alice:hunter2@h:6379", "scheme"},
    {"SchemeAlone", "redis://", "host"},
    {"HostMissing", "redis://:6379", "host"},
    {"HostMissingAfterUser", "redis://alice:hunter2@", "host"},
    {"HostMissingBare", ":6379", "host"},
    {"HostIpv6WithoutBrackets", "::1", "host"},
    {"HostIpv6Unclosed", "[::1", "host"},
    {"HostIpv4InBrackets", "[10.0.0.1]", "host"},
    {"ZoneEmpty", "[fe80::1%]", "zone"},
    {"ZoneEmptyInAUri", "redis://[fe80::1%]", "zone"},
    {"ZoneWithASign", "[fe80::1%eth0%25]", "zone"},
    {"ZoneWithASignInAUri", "redis://[fe80::1%25%eth0]", "zone"},
    {"PortEmpty", "h:", "port"},
    {"PortZero", "redis://h:0", "port"},
    {"PortTooLarge", "redis://h:65536", "port"},
    {"PortHuge", "h:99999999999999999999", "port"},
    {"PortNegative", "h:-1", "port"},
    {"PortPlus", "h:+6379", "port"},
    {"PortText", "redis://alice:hunter2@h:redis", "port"},
    {"PortWithTail", "h:6379x", "port"},
    {"PortAfterBracket", "[::1]6379", "port"},
    {"PasswordWithSlash", "redis://alice:hunter2/x@h", "%2F"},
    {"PasswordWithSlashAndNoUser", "redis://:hunter2/x@h", "%2F"},
    {"PasswordWithDigitsAndSlash", "redis://alice:12/hunter2@h", "%2F"},
    {"PasswordWithQuestionMark", "redis://alice:hunter2?x@h", "%3F"},
    {"PasswordWithSlashForSentinels", "redis+sentinel://:hunter2/x@s1/main", "%2F"},
    {"PasswordWithSlashForAUnixSocket", "unix://:hunter2/x@/run/redis.sock", "%2F"},
    {"QuotationMarks", "\"redis://alice:hunter2@h\"", "quotation mark"},
    {"Apostrophes", "'redis://h'", "quotation mark"},
    {"PasswordWithHash", "redis://alice:hunter2#x@h", "#"},
    {"PasswordAsPort", "redis://h:hunter2", "port"},
    {"PasswordAsDatabase", "redis://h/hunter2", "database"},
    {"DatabaseNegative", "redis://h/-1", "database"},
    {"DatabaseText", "redis://alice:hunter2@h/first", "database"},
    {"DatabaseHuge", "redis://h/99999999999", "database"},
    {"DatabaseWithTail", "redis://h/1/2", "database"},
    {"PercentAtTheEnd", "redis://:hunter2%@h", "password"},
    {"PercentWithoutHex", "redis://:hunter2%zz@h", "password"},
    {"PercentHalf", "redis://:hunter2%4@h", "password"},
    {"PercentInUser", "redis://al%ice:hunter2@h", "user"},
    {"QueryUnknown", "redis://h?db=1", "query"},
    {"QueryUnknownWithPassword", "redis://alice:hunter2@h?pass=hunter2", "query"},
    {"QueryUnknownInAPassword", "redis+sentinel://s/m?sentinel_password=x&hunter2", "query"},
    {"QueryUnknownTls", "rediss://h?insecure=1", "query"},
    {"QueryTlsWithoutTls", "redis://h?ca_file=/ca.pem", "query"},
    {"QueryWithoutValue", "rediss://h?ca_file", "query"},
    {"HostTooLong", std::string(256, 'h'), "host"},
    {"ServerNameTooLong", "rediss://h?server_name=" + std::string(256, 's'), "server_name"},
    {"ServerNameWithNul", "rediss://h?server_name=a%00b", "server_name"},
    {"CaFileWithNul", "rediss://h?ca_file=/ca.pem%00.bak", "ca_file"},
    {"CertificateWithNul", "rediss://h?key=/k&certificate=/c%00", "certificate"},
    {"KeyWithANewLine", "rediss://h?certificate=/c&key=/k%0A", "key"},
    {"UnixWithoutPath", "unix://", "path"},
    {"UnixRelative", "unix://redis.sock", "path"},
    {"UnixWithHost", "unix://h/redis.sock", "host"},
    {"SentinelsWithoutMaster", "redis+sentinel://s1,s2", "master"},
    {"SentinelsWithEmptyMaster", "redis+sentinel://s1,s2/", "master"},
    {"SentinelsWithADatabaseAlone", "redis+sentinel://s1//2", "master"},
    {"SentinelsMasterWithANewLine", "redis+sentinel://s1/a%0Ab", "master"},
    {"SentinelsWithoutHost", "redis+sentinel:///main", "host"},
    {"SentinelsWithAnEmptyHost", "redis+sentinel://s1,,s3/main", "host"},
    {"SentinelsWithAnEmptyLastHost", "redis+sentinel://s1,/main", "host"},
    {"SentinelsWithABadPort", "redis+sentinel://s1,s2:x/main", "port"},
    {"SentinelsWithABadDatabase", "redis+sentinel://s1/main/x", "database"},
    {"SentinelsQueryUnknown", "redis+sentinel://s1/main?sentinel_tls=no", "query"},
    {"SentinelsTlsUnclear", "rediss+sentinel://s1/main?sentinel_tls=x", "sentinel_tls"},
    {"ClusterWithoutHost", "redis+cluster://", "host"},
    {"ClusterWithAnEmptyHost", "redis+cluster://c1,,c3", "host"},
    {"ClusterWithAnEmptyLastHost", "redis+cluster://c1,", "host"},
    {"ClusterWithABadPort", "redis+cluster://c1,c2:x", "port"},
    {"ClusterWithADatabase", "redis+cluster://c1/1", "database"},
    {"ClusterWithAPath", "redis+cluster://c1/0/1", "database"},
    {"ClusterQueryUnknown", "redis+cluster://c1?ca_file=/ca", "query"},
    {"ClusterPasswordWithSlash", "redis+cluster://:hunter2/x@c1", "%2F"},
    {"AListOfClusters", "redis+cluster://a,b,rediss+cluster://c", "list"},
    {"UnixDatabaseText", "unix:///r.sock?db=x", "database"},
    {"UnixDatabaseNegative", "unix:///r.sock?db=-1", "database"},
    {"UnixQueryUnknown", "unix:///r.sock?port=1", "query"},
    {"UnixPathTooLong", "unix:///" + std::string(200, 'x'), "path"},
    {"UnixPathWithNul", "unix:///r%00.sock", "path"},
    {"UnixPathWithANewLine", "unix:///r%0A.sock", "path"},
    // A whole list in one text, for example from getenv().
    {"AListOfUris", "redis://a,redis://b", "list"},
    {"AListOfUrisWithPorts", "redis://a:7000,redis://b:7001/1,unix:///r.sock", "list"},
    {"AListOfUrisWithPasswords", "redis://:hunter2@a,rediss://:hunter2@b?ca_file=/ca", "list"},
    {"AListOfMasters", "redis+sentinel://s1,s2/main,redis+sentinel://s1,s2/other", "list"},
    {"AListOfUrisWithBlanks", "redis://a redis://b", "list"},
    {"AListOfHosts", "a:7000,b:7001", "list"},
    {"AListOfHostsWithoutPorts", "a,b", "list"},
    {"AListOfHostsBehindAScheme", "redis://:hunter2@a:7000,b:7001", "list"},
};

// D11. The error names the invalid part, and shows nothing of the password.
TEST(InvalidAddresses, AreRejectedWithTheInvalidPartButNoPassword) {
    for (const auto& [name, uri, part] : bad) {
        SCOPED_TRACE(name);
        const auto message = refusal([&, &text = uri] { (void)Endpoint::parse(text); });
        EXPECT_THAT(message, HasSubstr(part));
        EXPECT_THAT(message, Not(HasSubstr("hunter")));
        EXPECT_THAT(message, Not(HasSubstr("unter2")));
    }
}

// ---- Names.

// D11. The name is for reports and logs. It has the address, and no secrets.
TEST(TheNameOfAnEndpoint, IsItsAddress) {
    EXPECT_EQ(Endpoint::parse("h").name(), "h:6379");
    EXPECT_EQ(Endpoint::parse("redis://alice:hunter2@10.0.0.1:7000/3").name(), "10.0.0.1:7000");
    EXPECT_EQ(Endpoint::parse("[::1]:7000").name(), "[::1]:7000");
    EXPECT_EQ(Endpoint::parse("unix://:hunter2@/run/redis.sock?db=1").name(), "/run/redis.sock");
}

// An Endpoint can be created without a URI.
TEST(AnEndpoint, HasTheDefaultsOfRedis) {
    const Endpoint endpoint{.host = "h"};
    EXPECT_EQ(endpoint.port, 6379);
    EXPECT_EQ(endpoint.database, 0);
    EXPECT_EQ(endpoint.password, "");
    EXPECT_FALSE(endpoint.tls.enabled);
}

}  // namespace
}  // namespace redlock::test::endpoint_test
