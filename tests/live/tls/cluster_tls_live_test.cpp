// A Redis Cluster over TLS: the certificate of a server must have the name that this server announces. The
// Cluster has one master with all slots. The seed is its address, and it announces a host name.
#include "tls_world.hpp"

namespace redlock::test::cluster_tls_live_test {
namespace {

class ClusterOverTls : public TlsWorld {
protected:
    Result acquire_with_certificate_for(std::vector<std::string> names, std::string server_name = {}) {
        const ReservedPort bus;
        TlsServer server{authority.issue({.names = std::move(names)}), authority, Clients::are_anybody,
                         RedisConfig{}
                             .line("cluster-enabled yes")
                             .line("cluster-port " + std::to_string(bus.number()))
                             .line("tls-cluster yes")
                             .line(std::string{"cluster-announce-hostname "} + support::loopback_name)};
        EXPECT_EQ(server->command({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"}), "OK");
        EXPECT_TRUE(wait_until([&] {
            return server->command({"CLUSTER", "INFO"}).find("cluster_state:ok") != std::string::npos;
        }));
        Endpoint endpoint{.seeds = {{.host = "127.0.0.1", .port = server.port()}}};
        endpoint.tls = {
            .enabled = true, .ca_file = authority.certificate(), .server_name = std::move(server_name)};
        return acquire_from(endpoint);
    }
};

TEST_F(ClusterOverTls, VerifiesTheNameThatAServerAnnounces) {
    EXPECT_THAT(acquire_with_certificate_for({"127.0.0.1", support::loopback_name}), Succeeds());
}

TEST_F(ClusterOverTls, RejectsAServerWithoutTheNameThatItAnnounces) {
    EXPECT_THAT(acquire_with_certificate_for({"127.0.0.1"}), IsRejectedFor("mismatch"));
}

TEST_F(ClusterOverTls, VerifiesTheNameInTheAddressIfThereIsOne) {
    EXPECT_THAT(acquire_with_certificate_for({"redis.example"}, "redis.example"), Succeeds());
}

}  // namespace
}  // namespace redlock::test::cluster_tls_live_test
