// What a TLS session offers and accepts, with a server in memory. The configuration of OpenSSL in this
// program permits old versions, so that the library rejects them and not the distribution.
#include "support/certificates.hpp"
#include "support/temporary_directory.hpp"

#include "redis/tls.hpp"

#include <gtest/gtest.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

namespace redlock::test {
namespace {

using support::TemporaryDirectory;

/// OpenSSL reads its configuration when it is used for the first time.
const std::unique_ptr<TemporaryDirectory> configuration = [] {
    auto directory = std::make_unique<TemporaryDirectory>();
    const auto file = *directory / "openssl.cnf";
    std::ofstream{file} << "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = lax\n"
                           "[lax]\nMinProtocol = TLSv1\nCipherString = DEFAULT:@SECLEVEL=0\n";
    ::setenv("OPENSSL_CONF", file.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): there is one thread
    return directory;
}();

struct Free {
    void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
    void operator()(SSL* session) const noexcept { SSL_free(session); }
};
using Context = std::unique_ptr<SSL_CTX, Free>;
using Session = std::unique_ptr<SSL, Free>;

/// Returns the bytes that the session has written.
std::string written_by(SSL* session) {
    std::string bytes;
    std::array<char, 4096> part;
    for (int length = 0;
         (length = BIO_read(SSL_get_wbio(session), part.data(), static_cast<int>(part.size()))) > 0;)
        bytes.append(part.data(), static_cast<std::size_t>(length));
    return bytes;
}

Session session_of(SSL_CTX* context) {
    Session session{SSL_new(context)};
    SSL_set_bio(session.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    return session;
}

struct Handshake : testing::Test {
    TemporaryDirectory directory{};
    support::Authority authority{directory / "authority"};

    /// Returns a server that supports no version after `newest`.
    Session server(int newest) {
        const auto files = authority.issue({.names = {"db.internal", "127.0.0.1", "::1"}});
        server_context_.reset(SSL_CTX_new(TLS_server_method()));
        SSL_CTX_set_max_proto_version(server_context_.get(), newest);
        EXPECT_EQ(SSL_CTX_use_certificate_chain_file(server_context_.get(), files.certificate.c_str()), 1);
        EXPECT_EQ(SSL_CTX_use_PrivateKey_file(server_context_.get(), files.key.c_str(), SSL_FILETYPE_PEM), 1);
        auto session = session_of(server_context_.get());
        SSL_set_accept_state(session.get());
        return session;
    }

    Endpoint endpoint(std::string host, std::string server_name = {}) const {
        Endpoint result{.host = std::move(host)};
        result.tls = {
            .enabled = true, .ca_file = authority.certificate(), .server_name = std::move(server_name)};
        return result;
    }

    /// Moves the bytes to the server.
    static void deliver(std::string& bytes, SSL* server) {
        BIO_write(SSL_get_rbio(server), bytes.data(), static_cast<int>(bytes.size()));
        bytes.clear();
    }

    /// Returns the error of the client, or an empty text if the session is established. The server has
    /// received all bytes of the client afterwards, but may not have processed the last ones.
    static std::string shake_hands(TlsSession& client, SSL* server) {
        std::string to_server, plain;
        bool fine = client.start(to_server);
        while (fine && !(client.established() && SSL_is_init_finished(server) == 1)) {
            deliver(to_server, server);
            (void)SSL_do_handshake(server);
            const auto to_client = written_by(server);
            if (to_client.empty()) break;
            fine = client.receive(to_client, plain, to_server);
        }
        deliver(to_server, server);
        return client.established() ? "" : fine ? "no error" : client.error();
    }

    std::string outcome(const Endpoint& to, int newest) {
        const TlsContext context{to};
        TlsSession client{context};
        const auto session = server(newest);
        return shake_hands(client, session.get());
    }

private:
    Context server_context_{};
};

/// Returns true if this OpenSSL supports TLS 1.1 at all, with a client that permits it.
bool speaks_tls_1_1(SSL* server) {
    const Context context{SSL_CTX_new(TLS_client_method())};
    const auto client = session_of(context.get());
    SSL_set_connect_state(client.get());
    for (int flight = 0; flight < 8; ++flight) {
        (void)SSL_do_handshake(client.get());
        const auto to_server = written_by(client.get());
        BIO_write(SSL_get_rbio(server), to_server.data(), static_cast<int>(to_server.size()));
        (void)SSL_do_handshake(server);
        const auto to_client = written_by(server);
        BIO_write(SSL_get_rbio(client.get()), to_client.data(), static_cast<int>(to_client.size()));
    }
    return SSL_is_init_finished(client.get()) == 1;
}

// D12
TEST_F(Handshake, IsRejectedBelowTls12) {
    if (!speaks_tls_1_1(server(TLS1_1_VERSION).get())) GTEST_SKIP() << "OpenSSL was built without TLS 1.1";
    EXPECT_NE(outcome(endpoint("db.internal"), TLS1_1_VERSION), "");
    EXPECT_EQ(outcome(endpoint("db.internal"), TLS1_2_VERSION), "");
    EXPECT_EQ(outcome(endpoint("db.internal"), TLS1_3_VERSION), "");
}

// D12. Servers that share an address choose their certificate by this name.
TEST_F(Handshake, SendsTheNameOfTheServer) {
    const auto told = [&](const Endpoint& to) {
        const TlsContext context{to};
        TlsSession client{context};
        const auto session = server(TLS1_3_VERSION);
        EXPECT_EQ(shake_hands(client, session.get()), "");
        const auto* const name = SSL_get_servername(session.get(), TLSEXT_NAMETYPE_host_name);
        return std::string{name != nullptr ? name : "(none)"};
    };
    EXPECT_EQ(told(endpoint("db.internal")), "db.internal");
    EXPECT_EQ(told(endpoint("127.0.0.1", "db.internal")), "db.internal");
    for (const auto* const address : {"127.0.0.1", "::1"})
        EXPECT_EQ(told(endpoint(address)), "(none)") << "the extension cannot contain an address";
}

// D12
TEST_F(Handshake, IsRejectedForAnotherName) {
    EXPECT_NE(outcome(endpoint("other.internal"), TLS1_3_VERSION), "");
    EXPECT_NE(outcome(endpoint("127.0.0.2"), TLS1_3_VERSION), "");
    EXPECT_NE(outcome(endpoint("::2"), TLS1_3_VERSION), "");
    EXPECT_NE(outcome(endpoint("127.0.0.1", "other.internal"), TLS1_3_VERSION), "");
}

// D12. The log of the server then shows why a client has rejected it.
TEST_F(Handshake, ReportsARejectedCertificateToTheServer) {
    const auto reason_at_the_server = [&](const Endpoint& to) {
        const TlsContext context{to};
        TlsSession client{context};
        const auto session = server(TLS1_3_VERSION);
        EXPECT_NE(shake_hands(client, session.get()), "");
        ERR_clear_error();
        EXPECT_LE(SSL_do_handshake(session.get()), 0);
        const auto reason = ERR_GET_REASON(ERR_peek_error());
        ERR_clear_error();
        return reason;
    };
    const support::Authority stranger{directory / "stranger"};
    auto trusts_another = endpoint("db.internal");
    trusts_another.tls.ca_file = stranger.certificate();
    EXPECT_EQ(reason_at_the_server(trusts_another), SSL_R_TLSV1_ALERT_UNKNOWN_CA);
    EXPECT_EQ(reason_at_the_server(endpoint("other.internal")), SSL_R_SSLV3_ALERT_BAD_CERTIFICATE);
}

// D12. A server that knows supported_versions, an extension of TLS 1.3, rejects the client itself. An older
// server chooses its own version, and the client must report that it does not accept this version.
TEST_F(Handshake, ReportsARejectedVersionToTheServer) {
    const std::string server_hello =
        std::string{"\x02\0\0\x26\x03\x02", 6} + std::string(32, 'r') + std::string{"\0\0\x2f\0", 4};
    const std::string record =
        std::string{"\x16\x03\x02\0", 4} + static_cast<char>(server_hello.size()) + server_hello;
    const TlsContext context{endpoint("db.internal")};
    TlsSession client{context};
    std::string to_server, plain;
    ASSERT_TRUE(client.start(to_server));
    to_server.clear();
    EXPECT_FALSE(client.receive(record, plain, to_server));
    ASSERT_EQ(to_server.size(), 7U) << "one alert: " << client.error();
    EXPECT_EQ(to_server.front(), '\x15') << "the type of a record with an alert";
    EXPECT_EQ(to_server.substr(5), "\x02\x46") << "fatal, protocol_version";
}

}  // namespace
}  // namespace redlock::test
