// TLS without sockets. It converts plain text to cipher text and back, and the connection sends and receives
// the cipher text like all other bytes. Therefore deadlines, SIGPIPE and late replies are handled the same
// way with and without TLS.
//
// The certificate's chain and its *name* are verified (rule D12). This file uses OpenSSL directly, because
// the TLS of hiredis checks no name, and Debian 12 has hiredis without TLS. no_tls.cpp replaces tls.cpp in a
// build without OpenSSL.
//
// A process may call exit() while other threads use TLS. Therefore every use of OpenSSL here passes an
// ExitGate, which closes before OpenSSL frees its state. After that every session fails, and no object of
// OpenSSL is freed.
#pragma once

#include <redlock/endpoint.hpp>
#include <redlock/error.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <system_error>

struct ssl_st;
struct ssl_ctx_st;

namespace redlock {

/// The TLS settings of all connections to one node. Immutable; threads may share it.
class TlsContext {
public:
    /// Frees what OpenSSL keeps for this thread, which must not use TLS any more. Returns false if OpenSSL is
    /// already being taken down because the process exits. The thread must then not end before that is over.
    static bool leave_thread() noexcept;

    /// Reads the files of `endpoint.tls`. Throws std::invalid_argument that names the unusable field, or has
    /// OpenSSL's own reason if its configuration makes TLS impossible. Also throws if there is neither a
    /// server name nor a host, because then any certificate would be accepted.
    explicit TlsContext(const Endpoint& endpoint);
    /// Uses the settings of another context for the server of `endpoint`. Reads no file.
    TlsContext(const TlsContext& settings, const Endpoint& endpoint);

private:
    friend class TlsSession;
    std::shared_ptr<ssl_ctx_st> context_;  // of one node; the servers of a Redis Cluster share it
    std::string server_name_;
};

/// The TLS state of one connection.
class TlsSession {
public:
    /// Begins the TLS handshake. Appends the first bytes to send to `out`. If OpenSSL cannot make a session,
    /// it has failed(). Throws std::bad_alloc.
    TlsSession(const TlsContext& context, std::string& out);

    /// Decrypts received bytes. Appends the plain text to `plain`, and bytes that must be sent in return to
    /// `out`. Returns false if the session has failed or has ended; error() then gives the reason. The plain
    /// text that came before the failure is valid.
    bool receive(std::string_view cipher, std::string& plain, std::string& out);

    /// Encrypts `plain` and appends the result to `out`. Returns false if the session has failed, also if it
    /// fails because nothing can be sent now; error() then gives the reason.
    bool send(std::string_view plain, std::string& out);

    bool established() const noexcept { return established_; }
    const std::string& error() const noexcept { return error_; }
    bool failed() const noexcept { return !error_.empty(); }
    /// Returns the cause of the failure. It is Errc::authentication_failed if one side does not accept the
    /// certificate of the other, and shortage() if OpenSSL could not open a file.
    std::error_code cause() const noexcept { return cause_; }

private:
    bool shake_hands();
    bool fail(int status);
    bool may_go_on(bool passed);
    void drain(std::string& out);

    std::unique_ptr<ssl_st, void (*)(ssl_st*)> session_;
    bool established_ = false;
    std::string error_{};
    std::error_code cause_ = Errc::connection_failed;
};

}  // namespace redlock
