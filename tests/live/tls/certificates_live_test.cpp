// Rule D12 against redis-server --tls-port: which certificates are accepted, and what is reported if one is
// rejected.
#include "support/process_files.hpp"
#include "tls_world.hpp"

#include <string>

namespace redlock::test::certificates_live_test {
namespace {

struct Certificates : TlsWorld {};

TEST_F(Certificates, AreAcceptedIfTheAuthorityAndTheNameAreRight) {
    TlsServer server{good, authority};
    auto by_address = server.endpoint(authority);
    auto by_name = by_address;
    by_name.host = support::loopback_name;
    for (const auto& endpoint : {by_address, by_name}) {
        RedisNodes nodes{std::vector{endpoint}, patient()};
        Lock lock{nodes, the_resource, no_retry()};
        EXPECT_THAT(lock.acquire(), Succeeds());
        EXPECT_EQ(holder(*server), lock.owner());
        EXPECT_THAT(lock.extend(), Succeeds());
        EXPECT_THAT(lock.release(), Succeeds());
        EXPECT_EQ(holder(*server), "(nil)");
    }
}

TEST_F(Certificates, AreRejectedIfTheNameOrTheTimeIsWrong) {
    struct Case {
        Subject subject;
        std::string host = "127.0.0.1", server_name{}, reason = "mismatch";
    };
    const std::vector<Case> cases{
        {{}},
        {{.names = {"elsewhere.example", "10.1.2.3"}}, "127.0.0.1", "", "IP address mismatch"},
        {{.names = {"elsewhere.example"}}, support::loopback_name, "", "ostname mismatch"},
        // A name that is only the beginning or the end of the right one must not match.
        {{.names = {"redis"}}, "127.0.0.1", "redis.internal"},
        {{.names = {"redis.internal.example"}}, "127.0.0.1", "redis.internal"},
        {{.names = {"xredis.internal"}}, "127.0.0.1", "redis.internal"},
        {{.names = {"*.redis.internal"}}, "127.0.0.1", "redis.internal"},
        {{.names = {"127.0.0.1"}, .valid_from = -48h, .valid_until = -24h},
         "127.0.0.1",
         "",
         "certificate has expired"},
        {{.names = {"127.0.0.1"}, .valid_from = 24h, .valid_until = 48h},
         "127.0.0.1",
         "",
         "certificate is not yet valid"},
    };
    for (const auto& [subject, host, server_name, reason] : cases) {
        TlsServer server{authority.issue(subject), authority};
        auto endpoint = server.endpoint(authority);
        endpoint.host = host;
        endpoint.tls.server_name = server_name;
        EXPECT_THAT(acquire_from(endpoint), IsRejectedFor(reason)) << testing::PrintToString(subject.names);
        EXPECT_EQ(holder(*server), "(nil)");
    }
}

TEST_F(Certificates, AreComparedWithTheServerNameIfOneIsGiven) {
    TlsServer server{authority.issue({.names = {"redis.internal"}}), authority};
    auto endpoint = server.endpoint(authority);
    EXPECT_THAT(acquire_from(endpoint), IsRejectedFor("mismatch"));
    endpoint.tls.server_name = "redis.internal";
    EXPECT_THAT(acquire_from(endpoint), Succeeds());
    TlsServer other{good, authority};
    endpoint.port = other.port();
    EXPECT_THAT(acquire_from(endpoint), IsRejectedFor("mismatch"));  // even if the host itself would match
}

TEST_F(Certificates, AreRejectedIfTheAuthorityIsUnknown) {
    const auto log = directory / "server.log";
    TlsServer server{good, authority, Clients::are_anybody,
                     RedisConfig{}.line("loglevel verbose").line("logfile " + log.string())};
    EXPECT_THAT(acquire_from(server.endpoint(stranger)), IsRejectedFor("certificate verify failed"));
    const auto reports_the_reason = [&] {
        return support::content(log).find("alert unknown ca") != std::string::npos;
    };
    EXPECT_TRUE(wait_until(reports_the_reason)) << "the client tells the server why it disconnects";
}

/// The report of a node that is not reached because of a mistake in its address must name the remedy.
struct MistakesInTheAddress : TlsWorld {
    static std::string detail_of(const Endpoint& endpoint) {
        const auto result = acquire_from(endpoint, {.node_timeout = 500ms});
        EXPECT_FALSE(result);
        return result.nodes()[0].detail;
    }
    TlsServer server{good, authority};
    Endpoint with_tls = server.endpoint(authority);
};

TEST_F(MistakesInTheAddress, NameTlsIfTheServerExpectsIt) {
    with_tls.tls = {};
    EXPECT_THAT(detail_of(with_tls), HasSubstr("write rediss://"));
}

TEST_F(MistakesInTheAddress, NameTlsIfTheServerHasNone) {
    with_tls.port = server->port();
    EXPECT_THAT(detail_of(with_tls), HasSubstr("write redis://"));
}

TEST_F(MistakesInTheAddress, NameTlsIfTheSentinelsHaveNone) {
    const RedisServer sentinel{RedisConfig{}.sentinel_of(server->port())};
    const auto sentinels =
        Endpoint::parse("rediss+sentinel://" + sentinel.name() +
                        "/mymaster?server_name=127.0.0.1&ca_file=" + authority.certificate().string());
    EXPECT_THAT(detail_of(sentinels), HasSubstr("sentinel_tls=no"));
}

TEST_F(MistakesInTheAddress, NameTheFileOfTheAuthority) {
    with_tls.tls.ca_file.clear();
    EXPECT_THAT(detail_of(with_tls), HasSubstr("ca_file"));
    with_tls.tls.ca_file = stranger.certificate();
    EXPECT_THAT(detail_of(with_tls), HasSubstr("ca_file"));
}

TEST_F(MistakesInTheAddress, NameTheNameInTheCertificate) {
    const TlsServer other{authority.issue({.names = {"redis.internal"}}), authority};
    with_tls.port = other.port();
    EXPECT_THAT(detail_of(with_tls), HasSubstr("server_name"));
}

TEST_F(MistakesInTheAddress, NameTheCertificateThatTheServerAsksFor) {
    const TlsServer strict{good, authority, Clients::show_a_certificate,
                           RedisConfig{}.line("tls-protocols TLSv1.3")};
    with_tls.port = strict.port();
    EXPECT_THAT(detail_of(with_tls), HasSubstr("give the certificate and the key"));
}

/// The version of TLS matters, because the client learns of a rejection at different times.
struct ClientCertificates : TlsWorld, testing::WithParamInterface<const char*> {
    TlsServer server{good, authority, Clients::show_a_certificate,
                     RedisConfig{}.line(std::string{"tls-protocols "} + GetParam())};
};
INSTANTIATE_TEST_SUITE_P(EachTlsVersion, ClientCertificates, testing::Values("TLSv1.2", "TLSv1.3"),
                         [](const auto& info) {
                             return std::string{info.param}.substr(3, 2) + info.param[6];
                         });

TEST_P(ClientCertificates, ArePresentedIfTheServerAsks) {
    EXPECT_THAT(acquire_from(server.endpoint(authority, authority.issue({}))), Succeeds());
}

TEST_P(ClientCertificates, AreReportedIfTheyAreMissing) {
    EXPECT_THAT(acquire_from(server.endpoint(authority)), IsRejectedFor("TLS: "));
}

TEST_P(ClientCertificates, AreReportedIfTheirAuthorityIsUnknown) {
    const auto theirs = stranger.issue({});
    EXPECT_THAT(acquire_from(server.endpoint(authority, theirs)), IsRejectedFor("TLS: "));
}

// D7, A3. The certificate will be the same the next time. So there is one attempt, and no round waits for
// that node.
TEST_F(Certificates, AreNotRetriedAfterARejection) {
    TlsServer server{good, authority};
    RedisNodes nodes{std::vector{server.endpoint(stranger)}, patient()};
    Lock lock{nodes, the_resource, {.retry = {.attempts = 5, .delay = 1ms}}};
    const auto result = lock.acquire();
    EXPECT_THAT(result, FailsWith(Errc::no_quorum));
    EXPECT_EQ(result.attempts(), 1);
}

// A3. One invalid certificate of three costs only the vote of its node.
TEST_F(Certificates, DoNotMatterIfTheyAreBadOnAMinority) {
    TlsServer one{good, authority};
    TlsServer two{good, authority};
    TlsServer bad{authority.issue({.names = {"elsewhere.example"}}), authority};
    for (const auto round : {Round::sequential, Round::all_at_once}) {
        RedisNodes nodes{
            std::vector{bad.endpoint(authority), one.endpoint(authority), two.endpoint(authority)},
            patient(round)};
        Lock lock{nodes, the_resource, no_retry()};
        for (int i = 0; i < 3; ++i) {
            EXPECT_THAT(lock.acquire(), Succeeds());
            EXPECT_THAT(lock.extend(), Succeeds());
            EXPECT_THAT(lock.release(), Succeeds());
        }
    }
}

}  // namespace
}  // namespace redlock::test::certificates_live_test
