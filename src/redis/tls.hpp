// TLS without sockets: plain text in, cipher text out, and back. The connection carries the bytes as it
// carries all others, so that deadlines, SIGPIPE and late replies need no second thought under TLS.
//
// The certificate's chain and its *name* are verified (rule D12). hiredis' own TLS checks no name, and Debian
// 12's hiredis has none at all; this needs OpenSSL alone. A build without it has no_tls.cpp in place of
// tls.cpp.
//
// A process may call exit() while other threads use TLS. OpenSSL takes itself down then, under their feet.
// Therefore every use of OpenSSL here passes a gate, which closes before OpenSSL is taken down and waits for
// the threads that are inside. From then on every session fails, and nothing of OpenSSL is freed any more.
#pragma once

#include <redlock/endpoint.hpp>

#include <memory>
#include <string>
#include <string_view>

struct ssl_st;
struct ssl_ctx_st;

namespace redlock {

/// What all TLS connections to one node share. Immutable; may be shared by threads.
class TlsContext {
public:
    static bool supported() noexcept;

    /// Frees what OpenSSL keeps for this thread, which must not use TLS any more. Returns false if OpenSSL is
    /// being taken down already because the process exits: then the thread must not end before that is over.
    static bool leave_thread() noexcept;

    /// Reads the files of `endpoint.tls`. Throws std::invalid_argument that names the field which cannot be
    /// used, and if there is neither a server name nor a host: no certificate is accepted for any name.
    explicit TlsContext(const Endpoint& endpoint);
    ~TlsContext();
    TlsContext(const TlsContext&) = delete;
    TlsContext& operator=(const TlsContext&) = delete;

private:
    friend class TlsSession;
    struct Free {
        void operator()(ssl_ctx_st* context) const noexcept;
    };
    std::unique_ptr<ssl_ctx_st, Free> context_;
    std::string server_name_;
};

/// One connection's TLS.
class TlsSession {
public:
    explicit TlsSession(const TlsContext& context);
    ~TlsSession();
    TlsSession(const TlsSession&) = delete;
    TlsSession& operator=(const TlsSession&) = delete;

    /// Begins: appends the first bytes to send to `out`.
    bool start(std::string& out);

    /// Takes bytes off the wire; appends what they say to `plain`, and what must be answered to `out`.
    /// False: the session is over, error() says why. So with send().
    bool receive(std::string_view cipher, std::string& plain, std::string& out);

    /// Appends to `out` what says `plain` on the wire.
    bool send(std::string_view plain, std::string& out);

    bool established() const noexcept { return established_; }
    const std::string& error() const noexcept { return error_; }
    /// The error is that one side does not accept the other's certificate: waiting cannot cure it.
    bool rejected() const noexcept { return rejected_; }

private:
    struct Free {
        void operator()(ssl_st* session) const noexcept;
    };
    bool shake_hands();
    bool fail(int status);
    bool fail_at_exit();
    void drain(std::string& out);

    std::unique_ptr<ssl_st, Free> session_;
    bool established_ = false;
    bool rejected_ = false;
    std::string error_{};
};

}  // namespace redlock
