// What looks at nodes one by one comes in by TLS as the locks do.
#include "invocation.hpp"
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

}  // namespace
}  // namespace redlock::test
