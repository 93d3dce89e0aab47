// Rule D12 for nodes that Sentinels name: TLS to both, each with the certificate of its own name.
#include "tls_world.hpp"

#include <algorithm>

namespace redlock::test::sentinel_tls_live_test {
namespace {

constexpr auto* name = "redis.internal";

/// TLS only, also among the servers.
RedisConfig tls_only() {
    return RedisConfig{}.line("port 0").line("tls-replication yes");
}

struct SentinelsOverTls : TlsWorld {
    TlsServer server{authority.issue({.names = {name}}), authority, Clients::show_a_certificate, tls_only()};
    CertificateFiles ours = authority.issue({});

    /// Creates a Sentinel. Its certificate is valid for the address only, and wrong for the server.
    TlsServer sentinel(const CertificateFiles& files, const RedisConfig& config = tls_only()) const {
        return {files, authority, Clients::show_a_certificate,
                RedisConfig{config}.sentinel_of(server.port())};
    }

    /// A permanent cause ends the attempts at once.
    Result acquire(const std::string& sentinels, const std::string& fields = {}) const {
        RedisNodes nodes{{"rediss+sentinel://" + sentinels + "/mymaster?ca_file=" +
                          authority.certificate().string() + "&certificate=" + ours.certificate.string() +
                          "&key=" + ours.key.string() + "&server_name=" + name + fields},
                         patient()};
        return Lock{nodes, the_resource, {.ttl = 1min}}.acquire_for(30s);
    }

    static std::string address(const TlsServer& it) { return "127.0.0.1:" + std::to_string(it.port()); }
};

TEST_F(SentinelsOverTls, MayNameAServerThatUsesTls) {
    std::array sentinels{sentinel(good), sentinel(good), sentinel(good)};
    const auto agree = [](TlsServer& it) {
        return it->command({"SENTINEL", "CKQUORUM", "mymaster"}).starts_with("OK 3 usable");
    };
    EXPECT_TRUE(wait_until([&] { return std::ranges::all_of(sentinels, agree); }));
    EXPECT_THAT(acquire(support::comma_list(sentinels, address)), Succeeds());
}

TEST_F(SentinelsOverTls, MayBeAskedWithoutTls) {
    auto plain = sentinel(good, RedisConfig{}.line("tls-replication yes"));
    EXPECT_THAT(acquire(plain->name(), "&sentinel_tls=no"), Succeeds());
}

TEST_F(SentinelsOverTls, AreRejectedIfTheAuthorityIsUnknown) {
    const auto unknown = sentinel(stranger.issue({.names = {"127.0.0.1"}}));
    EXPECT_THAT(acquire(address(unknown)), IsRejectedFor("certificate verify failed"));
}

// The name of the server is not a name of the Sentinels.
TEST_F(SentinelsOverTls, AreVerifiedAgainstTheirOwnNames) {
    const auto other = sentinel(authority.issue({.names = {name}}));
    EXPECT_THAT(acquire(address(other)), IsRejectedFor("IP address mismatch"));
}

TEST_F(SentinelsOverTls, MayNameAServerWhoseCertificateIsRejected) {
    const TlsServer elsewhere{good, authority, Clients::show_a_certificate, tls_only()};
    const TlsServer sentinel{good, authority, Clients::show_a_certificate,
                             tls_only().sentinel_of(elsewhere.port())};
    EXPECT_THAT(acquire(address(sentinel)), IsRejectedFor("mismatch"));
}

}  // namespace
}  // namespace redlock::test::sentinel_tls_live_test
