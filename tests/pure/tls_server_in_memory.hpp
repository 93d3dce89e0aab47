// A server that speaks TLS, in memory, and the settings of its clients.
#pragma once

#include "support/certificates.hpp"
#include "support/temporary_directory.hpp"

#include "redis/tls.hpp"

#include <gtest/gtest.h>

#include <openssl/ssl.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

namespace redlock::test {

using support::TemporaryDirectory;

struct Free {
    void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
    void operator()(SSL* session) const noexcept { SSL_free(session); }
};
using Context = std::unique_ptr<SSL_CTX, Free>;
using Session = std::unique_ptr<SSL, Free>;

/// Returns the bytes that the session has written.
inline std::string written_by(SSL* session) {
    std::string bytes;
    std::array<char, 4096> part;
    for (int length = 0;
         (length = BIO_read(SSL_get_wbio(session), part.data(), static_cast<int>(part.size()))) > 0;)
        bytes.append(part.data(), static_cast<std::size_t>(length));
    return bytes;
}

inline Session session_of(SSL_CTX* context) {
    Session session{SSL_new(context)};
    SSL_set_bio(session.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    return session;
}

struct TlsServerInMemory : testing::Test {
    TemporaryDirectory directory{};
    support::Authority authority{directory / "authority"};

    /// Returns a server that supports no version after `newest`.
    Session server(int newest) {
        const auto files = authority.issue({.names = {"db.internal", "127.0.0.1", "::1", "fe80::1"}});
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

    /// Returns the error of the client, or an empty text if the session is established. `to_server` has its
    /// first bytes. The server has received all bytes of the client afterwards, but may not have processed
    /// the last ones.
    static std::string shake_hands(TlsSession& client, std::string& to_server, SSL* server) {
        std::string plain;
        bool fine = !client.failed();
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
        std::string to_server;
        TlsSession client{context, to_server};
        const auto session = server(newest);
        return shake_hands(client, to_server, session.get());
    }

private:
    Context server_context_{};
};

}  // namespace redlock::test
