// Servers that speak TLS, and an authority that signs certificates for each test.
//
//     TlsServer server{authority.issue({.names = {"127.0.0.1"}}), authority};
//     RedisNodes nodes{{server.endpoint(authority)}, {...}};
#pragma once

#include "live/live_world.hpp"
#include "support/certificates.hpp"
#include "support/loopback_name.hpp"
#include "support/reserved_port.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <vector>

namespace redlock::test {

using support::Authority;
using support::CertificateFiles;
using support::ReservedPort;
using support::Subject;
using support::TemporaryDirectory;

/// Whether clients must have a certificate.
enum class Clients : bool { are_anybody, show_a_certificate };

/// A redis-server with a TLS port in addition to the plain one.
class TlsServer {
public:
    TlsServer(const CertificateFiles& files, const Authority& authority,
              Clients clients = Clients::are_anybody, RedisConfig config = {})
        : server_(
              config.line("tls-port " + std::to_string(port_.number()))
                  .line("tls-cert-file " + files.certificate.string())
                  .line("tls-key-file " + files.key.string())
                  .line("tls-ca-cert-file " + authority.certificate().string())
                  .line(clients == Clients::are_anybody ? "tls-auth-clients no" : "tls-auth-clients yes")) {}

    RedisServer& operator*() noexcept { return server_; }
    RedisServer* operator->() noexcept { return &server_; }
    std::uint16_t port() const noexcept { return port_.number(); }

    /// Returns an endpoint at 127.0.0.1 that trusts this authority.
    Endpoint endpoint(const Authority& authority) const {
        Endpoint result{.host = "127.0.0.1", .port = port()};
        result.tls = {.enabled = true, .ca_file = authority.certificate()};
        return result;
    }
    Endpoint endpoint(const Authority& authority, const CertificateFiles& ours) const {
        auto result = endpoint(authority);
        result.tls.certificate = ours.certificate;
        result.tls.key = ours.key;
        return result;
    }

private:
    ReservedPort port_{};
    RedisServer server_;
};

/// An authority that the clients trust, and another one.
struct TlsWorld : testing::Test {
    TemporaryDirectory directory{};
    Authority authority{directory / "authority"};
    Authority stranger{directory / "stranger"};
    CertificateFiles good = authority.issue({.names = {support::loopback_name, "127.0.0.1"}});
};

/// Three servers that speak TLS only.
struct TlsServers : TlsWorld {
    static RedisConfig tls_only() { return RedisConfig{}.line("port 0"); }

    std::vector<Endpoint> endpoints(const Authority& trusted) const {
        std::vector<Endpoint> result;
        for (const auto& server : servers) result.push_back(server.endpoint(trusted));
        return result;
    }
    bool clean() {
        return std::ranges::all_of(servers, [](auto& server) { return server->command({"DBSIZE"}) == "0"; });
    }

    std::array<TlsServer, 3> servers{TlsServer{good, authority, Clients::are_anybody, tls_only()},
                                     TlsServer{good, authority, Clients::are_anybody, tls_only()},
                                     TlsServer{good, authority, Clients::are_anybody, tls_only()}};
};

/// The same servers, each behind a proxy.
struct TlsServersBehindLinks : TlsServers {
    TlsServersBehindLinks() {
        for (auto& endpoint : link_endpoints) endpoint.port = links.emplace_back(endpoint.port).port();
    }

    std::deque<TcpProxy> links{};
    std::vector<Endpoint> link_endpoints = endpoints(authority);
};

inline NodesOptions patient(Round round = Round::sequential) {
    return {.node_timeout = 5s, .round = round};
}

/// Makes one attempt on one node.
inline Result acquire_from(const Endpoint& endpoint, NodesOptions options = patient()) {
    RedisNodes nodes{std::vector{endpoint}, options};
    return Lock{nodes, the_resource, no_retry()}.acquire();
}

/// Matches if the node or the client was rejected because of a certificate. The report has the reason.
MATCHER_P(IsRejectedFor, reason, std::string{"is rejected for "} + reason) {
    const NodeReport& report = arg.nodes()[0];
    *result_listener << report.cause.message() << " (" << report.detail << ")";
    return report.vote == Vote::unknown && report.cause == Errc::authentication_failed &&
           report.detail.find(reason) != std::string::npos;
}

}  // namespace redlock::test
