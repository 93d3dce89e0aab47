// What looks at nodes one by one comes in by TLS as the locks do.
#include "invocation.hpp"
#include "live/forked_child.hpp"
#include "tls/tls_world.hpp"

namespace redlock::test {
namespace {

struct InspectTls : TlsWorld {
    std::string uri(const Authority& trusted) const {
        return "rediss://127.0.0.1:" + std::to_string(server.port()) +
               "?ca_file=" + trusted.certificate().string();
    }
    TlsServer server{good, authority, Clients::are_anybody, RedisConfig{}.keeps_data()};
};

TEST_F(InspectTls, DoctorAndStatusWorkOverTls) {
    Invocation doctor{uri(authority), {"doctor"}};
    EXPECT_EQ(doctor.status(), 0) << doctor.output();
    Invocation status{uri(authority), {"status", the_resource}};
    EXPECT_EQ(status.status(), 1) << status.output();
    EXPECT_THAT(status.output(), testing::EndsWith("\nfree\n"));
}

TEST_F(InspectTls, AnUntrustedCertificateIsReported) {
    Invocation doctor{uri(stranger), {"doctor"}};
    EXPECT_EQ(doctor.status(), 2);
    EXPECT_THAT(doctor.output(), HasSubstr("authentication failed: TLS: certificate verify failed"));
    EXPECT_THAT(doctor.output(), HasSubstr("certificates that both sides trust"));
}

// The keeper leaves the directory in which this file is found.
TEST_F(InspectTls, AKeeperWorksWithARelativePathOfACertificate) {
    ForkedChild script{[](auto) { ::pause(); }};
    const auto certificate = authority.certificate();
    const auto nodes =
        "rediss://127.0.0.1:" + std::to_string(server.port()) + "?ca_file=" + certificate.filename().string();
    support::ChildProcess acquire{
        {{"sh", "-c",
          "cd \"$AT\" && exec " REDLOCK_TOOL " acquire --node-timeout 2s --ttl 6s --while-pid $SCRIPT job"},
         {"REDLOCK_NODES=" + nodes, "SCRIPT=" + std::to_string(script.pid()),
          "AT=" + certificate.parent_path().string()}}};
    ASSERT_EQ(acquire.wait(), 0);
    // All connections are closed, so the keeper makes a new one.
    const auto extensions = calls(*server, "pexpire");
    server->command({"CLIENT", "KILL", "TYPE", "normal"});
    EXPECT_TRUE(wait_until([&] { return calls(*server, "pexpire") > extensions; }, 20s));
    EXPECT_EQ(server->command({"EXISTS", "job"}), "1");
    script.kill();
    EXPECT_TRUE(wait_until([&] { return server->command({"EXISTS", "job"}) == "0"; }));
}

}  // namespace
}  // namespace redlock::test
