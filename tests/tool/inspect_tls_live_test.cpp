// What looks at nodes one by one comes in by TLS as the locks do.
#include "invocation.hpp"
#include "live/forked_child.hpp"
#include "tls/tls_world.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace redlock::test::inspect_tls_live_test {
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
    EXPECT_THAT(doctor.output(),
                HasSubstr("change: if it is a certificate of your own, name its authority in ca_file"));
}

// The advice of doctor is the remedy, and not that the server may hang.
TEST_F(InspectTls, AMistakeInTheAddressIsNamedAsTheRemedy) {
    struct Case {
        std::string address;
        const char* remedy;
    };
    const std::string host = "127.0.0.1:";
    const auto port = host + std::to_string(server.port());
    const auto trusted = "?ca_file=" + authority.certificate().string();
    for (const auto& [address, remedy] :
         {Case{"redis://" + port, "if this port expects TLS, write rediss://"},
          Case{"rediss://" + host + std::to_string(server->port()) + trusted,
               "if this port has no TLS, write redis://"},
          Case{"rediss://" + port, "name its authority in ca_file"},
          Case{"rediss://" + port + trusted + "&server_name=elsewhere", "as server_name"}}) {
        Invocation doctor{address, {"doctor", "--json"}, "500ms"};
        const auto report = doctor.json();
        const auto& finding = report.at("nodes").at(0).at("findings").at(0);
        EXPECT_EQ(finding.at("subject"), "reach");
        EXPECT_THAT(finding.at("what"), HasSubstr(remedy)) << address;
        EXPECT_THAT(finding.at("remedy"), HasSubstr(remedy)) << address;
    }
}

// A configuration of OpenSSL that names a provider which does not exist leaves it without any provider.
TEST_F(InspectTls, AConfigurationThatMakesTlsImpossibleIsAMistakeOfTheUser) {
    const auto configuration = directory / "openssl.cnf";
    std::ofstream{configuration} << "openssl_conf = all\n[all]\nproviders = list\n[list]\n"
                                    "absent = of_absent\n[of_absent]\nactivate = 1\n";
    for (const auto* const command : {"acquire", "status"}) {
        const auto outcome =
            Tool{{command, the_resource},
                 {"REDLOCK_NODES=" + uri(authority), "OPENSSL_CONF=" + configuration.string()}}
                .wait();
        EXPECT_EQ(outcome.status, 64) << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr("library has no ciphers"));
        EXPECT_THAT(outcome.err, HasSubstr("OPENSSL_CONF"));
    }
}

// An empty file is found in place of the library. Without TLS, nobody needs it.
TEST_F(InspectTls, AMissingLibraryIsReported) {
    for (const auto* const name : {"libssl.so.3", "libssl.so.1.1"}) std::ofstream{directory / name};
    const auto hide =
        "export LD_LIBRARY_PATH=" + directory.path().string() + "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}";
    const auto status_on = [&](const std::string& nodes) {
        return Tool{{"status", the_resource}, {"REDLOCK_NODES=" + nodes, "BEFORE=" + hide}}.wait();
    };
    const auto outcome = status_on(uri(authority));
    EXPECT_EQ(outcome.status, 70);
    EXPECT_THAT(outcome.err, HasSubstr("TLS (rediss://) needs OpenSSL: "));
    EXPECT_EQ(status_on(server->uri()).status, 1);
}

/// A keeper, which leaves the directory in which it was started.
struct KeeperOverTls : InspectTls {
    /// Starts a keeper in this directory, with these nodes and this variable of the environment.
    void acquire(const std::filesystem::path& at, const std::string& nodes, const std::string& variable) {
        support::ChildProcess acquire{{{"sh", "-c",
                                        "cd \"$AT\" && exec " REDLOCK_TOOL
                                        " acquire --node-timeout 2s --ttl 6s --while-pid $SCRIPT job"},
                                       {"REDLOCK_NODES=" + nodes, "SCRIPT=" + std::to_string(script.pid()),
                                        "AT=" + at.string(), variable}}};
        ASSERT_EQ(acquire.wait(), 0);
    }

    /// Closes all connections, so that the keeper must make a new one.
    void expect_new_connection() {
        const auto extensions = calls(*server, "pexpire");
        server->command({"CLIENT", "KILL", "TYPE", "normal"});
        EXPECT_TRUE(wait_until([&] { return calls(*server, "pexpire") > extensions; }, 20s));
        EXPECT_EQ(server->command({"EXISTS", "job"}), "1");
        script.kill();
        EXPECT_TRUE(wait_until([&] { return server->command({"EXISTS", "job"}) == "0"; }));
    }

    const std::string address = "rediss://127.0.0.1:" + std::to_string(server.port());
    ForkedChild script{[](auto) { ::pause(); }};
};

TEST_F(KeeperOverTls, WorksWithARelativePathOfACertificate) {
    const auto certificate = authority.certificate();
    acquire(certificate.parent_path(), address + "?ca_file=" + certificate.filename().string(), "UNUSED=");
    expect_new_connection();
}

// OpenSSL looks for an authority when it verifies the first certificate of this authority.
TEST_F(KeeperOverTls, WorksWithRelativePathsOfTheAuthoritiesOfTheSystem) {
    acquire(directory.path(), address, "SSL_CERT_DIR=authority:stranger");
    const auto fresh = stranger.issue({.names = {"127.0.0.1"}});
    constexpr auto replace = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(fresh.certificate, good.certificate, replace);
    std::filesystem::copy_file(fresh.key, good.key, replace);
    ASSERT_EQ(server->command({"CONFIG", "SET", "tls-cert-file", good.certificate}), "OK");
    expect_new_connection();
}

}  // namespace
}  // namespace redlock::test::inspect_tls_live_test
