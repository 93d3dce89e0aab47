// What a TLS session offers and accepts, with a server in memory. The configuration of OpenSSL in this
// program permits old versions, so that the library rejects them and not the distribution.
#include "tls_server_in_memory.hpp"

#include <openssl/err.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <string>

namespace redlock::test::tls_handshake_test {
namespace {

/// While this is true, OpenSSL gets no memory.
bool no_memory = false;

/// OpenSSL reads its configuration when it is used for the first time, and takes other functions for its
/// memory only before that.
const std::unique_ptr<TemporaryDirectory> configuration = [] {
    auto directory = std::make_unique<TemporaryDirectory>();
    const auto file = *directory / "openssl.cnf";
    std::ofstream{file} << "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = lax\n"
                           "[lax]\nMinProtocol = TLSv1\nCipherString = DEFAULT:@SECLEVEL=0\n";
    ::setenv("OPENSSL_CONF", file.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): there is one thread
    EXPECT_EQ(CRYPTO_set_mem_functions(
                  [](std::size_t size, const char*, int) { return no_memory ? nullptr : std::malloc(size); },
                  [](void* memory, std::size_t size, const char*, int) {
                      return no_memory ? nullptr : std::realloc(memory, size);
                  },
                  [](void* memory, const char*, int) { std::free(memory); }),
              1);
    return directory;
}();

using Handshake = TlsServerInMemory;

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
        std::string to_server;
        TlsSession client{context, to_server};
        const auto session = server(TLS1_3_VERSION);
        EXPECT_EQ(shake_hands(client, to_server, session.get()), "");
        const auto* const name = SSL_get_servername(session.get(), TLSEXT_NAMETYPE_host_name);
        return std::string{name != nullptr ? name : "(none)"};
    };
    EXPECT_EQ(told(endpoint("db.internal")), "db.internal");
    EXPECT_EQ(told(endpoint("127.0.0.1", "db.internal")), "db.internal");
    EXPECT_EQ(told(endpoint("db.internal.")), "db.internal");
    for (const auto* const address : {"127.0.0.1", "::1", "fe80::1%eth0"})
        EXPECT_EQ(told(endpoint(address)), "(none)") << "the extension cannot contain an address";
}

// D12. The log of the server then shows why a client has rejected it.
TEST_F(Handshake, ReportsARejectedCertificateToTheServer) {
    const auto reason_at_the_server = [&](const Endpoint& to) {
        const TlsContext context{to};
        std::string to_server;
        TlsSession client{context, to_server};
        const auto session = server(TLS1_3_VERSION);
        EXPECT_NE(shake_hands(client, to_server, session.get()), "");
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
    std::string to_server;
    TlsSession client{context, to_server};
    std::string plain;
    ASSERT_FALSE(client.failed()) << client.error();
    to_server.clear();
    EXPECT_FALSE(client.receive(record, plain, to_server));
    ASSERT_EQ(to_server.size(), 7U) << "one alert: " << client.error();
    EXPECT_EQ(to_server.front(), '\x15') << "the type of a record with an alert";
    EXPECT_EQ(to_server.substr(5), "\x02\x46") << "fatal, protocol_version";
}

/// The first byte of a record says what is in it.
constexpr char alert = '\x15';
constexpr char application_data = '\x17';

// A server must not be able to keep a session busy with handshakes, in which nothing can be sent.
TEST_F(Handshake, IsNotRepeatedIfTheServerAsks) {
    const TlsContext context{endpoint("db.internal")};
    std::string to_server;
    TlsSession client{context, to_server};
    const auto session = server(TLS1_2_VERSION);
    ASSERT_EQ(shake_hands(client, to_server, session.get()), "");
    (void)SSL_do_handshake(session.get());
    ASSERT_EQ(SSL_renegotiate(session.get()), 1);
    (void)SSL_do_handshake(session.get());  // asks the client for another handshake
    std::string plain;
    EXPECT_TRUE(client.receive(written_by(session.get()), plain, to_server)) << client.error();
    ASSERT_FALSE(to_server.empty());
    EXPECT_EQ(to_server.front(), alert) << "the client declines";
    to_server.clear();
    EXPECT_TRUE(client.send("PING\r\n", to_server)) << client.error();
    ASSERT_FALSE(to_server.empty()) << "the bytes to send are lost";
    EXPECT_EQ(to_server.front(), application_data);
}

// The first part of a message of the handshake has arrived. OpenSSL sends nothing before it has the rest,
// which a server may never send.
TEST_F(Handshake, FailsTheSessionIfItPreventsSending) {
    const TlsContext context{endpoint("db.internal")};
    std::string to_server;
    TlsSession client{context, to_server};
    const auto session = server(TLS1_3_VERSION);
    const auto enlarge = [](SSL* it, void*) {
        const std::string data(2000, 'd');
        return SSL_SESSION_set1_ticket_appdata(SSL_get_session(it), data.data(), data.size());
    };
    SSL_CTX_set_session_ticket_cb(SSL_get_SSL_CTX(session.get()), enlarge, nullptr, nullptr);
    std::string plain;
    ASSERT_FALSE(client.failed()) << client.error();
    deliver(to_server, session.get());
    (void)SSL_do_handshake(session.get());
    ASSERT_TRUE(client.receive(written_by(session.get()), plain, to_server));
    ASSERT_TRUE(client.established());
    SSL_set_max_send_fragment(session.get(), 512);
    deliver(to_server, session.get());
    ASSERT_EQ(SSL_do_handshake(session.get()), 1);
    const auto ticket = written_by(session.get());
    constexpr std::size_t first_record = 540;
    ASSERT_GT(ticket.size(), 2 * first_record);
    ASSERT_TRUE(client.receive(std::string_view{ticket}.substr(0, first_record), plain, to_server));
    to_server.clear();
    EXPECT_FALSE(client.send("PING\r\n", to_server)) << "nothing was sent";
    EXPECT_NE(client.error(), "");
}

// A lack of memory is no mistake in the configuration, and passes.
TEST_F(Handshake, ThrowsBadAllocWithoutMemory) {
    const auto to = endpoint("db.internal");
    const TlsContext context{to};
    no_memory = true;
    EXPECT_THROW(TlsContext{to}, std::bad_alloc);
    std::string to_server;
    EXPECT_THROW(TlsSession(context, to_server), std::bad_alloc);
    no_memory = false;
    EXPECT_EQ(outcome(to, TLS1_3_VERSION), "");
}

// A final dot and the scope of an address are for the name service only. No certificate contains them.
TEST_F(Handshake, VerifiesTheNameWithoutAFinalDotOrAScope) {
    EXPECT_EQ(outcome(endpoint("db.internal."), TLS1_3_VERSION), "");
    EXPECT_EQ(outcome(endpoint("127.0.0.1", "db.internal."), TLS1_3_VERSION), "");
    EXPECT_EQ(outcome(endpoint("fe80::1%eth0"), TLS1_3_VERSION), "");
    EXPECT_NE(outcome(endpoint("other.internal."), TLS1_3_VERSION), "");
    EXPECT_NE(outcome(endpoint("fe80::2%eth0"), TLS1_3_VERSION), "");
}

}  // namespace
}  // namespace redlock::test::tls_handshake_test
