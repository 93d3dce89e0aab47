#include "tls.hpp"

#include "../os/exit_gate.hpp"
#include "../os/socket.hpp"
#include "../wire/causes.hpp"
#include "parse_address.hpp"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <sstream>
#include <system_error>
#include <utility>

namespace redlock {
namespace {

constinit ExitGate gate;  // trivially destroyed: threads use it until the process is gone

/// Closes the gate at exit. OpenSSL calls the handler before it frees anything. Throws std::bad_alloc.
void close_gate_at_exit() {
    static const bool registered = OPENSSL_atexit([] { gate.close(); }) == 1;
    if (!registered) throw std::bad_alloc{};
}

std::string text_of(unsigned long error) {
    if (ERR_SYSTEM_ERROR(error)) return std::generic_category().message(ERR_GET_REASON(error));
    const char* const reason = error != 0 ? ERR_reason_error_string(error) : nullptr;
    return reason ? reason : "unknown reason";
}

/// Returns why OpenSSL has not done what it was asked for, and clears the queue. Throws std::bad_alloc if
/// memory has run out. A null pointer alone does not mean that, because OpenSSL also returns one if its
/// configuration file forbids what is needed.
std::string refusal() {
    const auto first = ERR_get_error();
    bool no_memory = first == 0;  // there was no memory to record the error
    for (auto error = first; error != 0; error = ERR_get_error()) {
        const int reason = ERR_GET_REASON(error);
        no_memory = no_memory || reason == (ERR_SYSTEM_ERROR(error) ? ENOMEM : ERR_R_MALLOC_FAILURE);
    }
    if (no_memory) throw std::bad_alloc{};
    return text_of(first);
}

bool is_address(const std::string& name) {
    std::array<unsigned char, 16> bytes{};
    return ::inet_pton(AF_INET, name.c_str(), bytes.data()) == 1 ||
           ::inet_pton(AF_INET6, name.c_str(), bytes.data()) == 1;
}

/// Returns the name that the certificate must contain. A final dot ("db.example.") and the scope of an
/// address ("fe80::1%eth0") are for finding the server, and no certificate contains them.
std::string name_to_verify(const Endpoint& endpoint) {
    auto name = endpoint.tls.server_name.empty() ? endpoint.host : endpoint.tls.server_name;
    if (name.ends_with('.')) name.pop_back();
    const bool is_ipv6 = name.find(':') != name.npos;
    return is_ipv6 ? name.substr(0, name.find('%')) : name;
}

/// Throws std::invalid_argument if a text is not one that OpenSSL can take: it would stop at a NUL, and
/// rejects long names.
void check_text(const Endpoint& endpoint) {
    const auto& tls = endpoint.tls;
    for (const auto& [field, text] :
         {std::pair{"tls.ca_file", &tls.ca_file}, std::pair{"tls.certificate", &tls.certificate},
          std::pair{"tls.key", &tls.key}, std::pair{"tls.server_name", &tls.server_name}})
        if (text->find('\0') != text->npos) throw_unusable(endpoint, std::string{field} + " has a NUL in it");
    constexpr std::size_t max_name = 255;  // the longest name that TLS can ask for
    if (tls.server_name.size() > max_name)
        throw_unusable(endpoint, "tls.server_name is longer than 255 bytes");
    if (endpoint.host.size() > max_name) throw_unusable(endpoint, "host is longer than 255 bytes");
}

/// Returns the list of directories in SSL_CERT_DIR, or null. A process that has more rights than its user
/// ignores the variable, as OpenSSL does.
const char* certificate_directories() noexcept {
    // NOLINTBEGIN(concurrency-mt-unsafe): OpenSSL reads the variable, too
#if defined(__linux__)
    return ::secure_getenv("SSL_CERT_DIR");
#else
    return ::issetugid() != 0 ? nullptr : std::getenv("SSL_CERT_DIR");
#endif
    // NOLINTEND(concurrency-mt-unsafe)
}

/// Trusts the authorities of the system. OpenSSL searches the directories of SSL_CERT_DIR whenever it
/// verifies a certificate. If the process changes its current directory, relative paths lead elsewhere, so
/// their absolute paths are added.
bool trust_system(SSL_CTX* context) {
    if (SSL_CTX_set_default_verify_paths(context) != 1) return false;
    const char* const directories = certificate_directories();
    std::istringstream list{directories != nullptr ? directories : ""};
    for (std::string part; std::getline(list, part, ':');) {
        std::error_code error;  // the current directory may have been removed
        if (part.empty() || part.front() == '/') continue;
        const auto path = std::filesystem::absolute(part, error);
        if (!error && SSL_CTX_load_verify_locations(context, nullptr, path.c_str()) != 1) return false;
    }
    return true;
}

/// Returns what may be wrong in the address of the node, or an empty text.
std::string_view hint_for(long verification, int reason) {
    switch (verification) {
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: return detail::hints::ca_file;
        case X509_V_ERR_HOSTNAME_MISMATCH:
        case X509_V_ERR_IP_ADDRESS_MISMATCH: return detail::hints::server_name;
        default: break;
    }
    if (reason == SSL_R_WRONG_VERSION_NUMBER) return detail::hints::without_tls;
    return reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED ? detail::hints::certificate
                                                             : std::string_view{};
}

/// The errors of OpenSSL that mean that one side does not accept the certificate of the other.
constexpr std::array rejections{
    SSL_R_CERTIFICATE_VERIFY_FAILED,         SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,
    SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,   SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED,
    SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN,   SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE,
    SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, SSL_R_TLSV1_ALERT_UNKNOWN_CA};

}  // namespace

// ---- Context

bool TlsContext::leave_thread() noexcept {
    const ExitGate::Permit permit{gate};
    if (permit) OPENSSL_thread_stop();
    return bool{permit};
}

TlsContext::TlsContext(const Endpoint& endpoint) : server_name_(name_to_verify(endpoint)) {
    ERR_clear_error();
    context_ = {SSL_CTX_new(TLS_client_method()), [](SSL_CTX* it) {
                    if (const ExitGate::Permit permit{gate}) SSL_CTX_free(it);
                }};
    auto* const context = context_.get();
    if (!context || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1)
        throw_unusable(endpoint, "TLS is not possible as OpenSSL is configured (OPENSSL_CONF): " + refusal());
    close_gate_at_exit();
    const auto& tls = endpoint.tls;
    check_text(endpoint);
    // OpenSSL would not check the name if it were empty.
    if (server_name_.empty())
        throw_unusable(endpoint, "tls.server_name is empty, and there is no host to take it from");
    ERR_clear_error();
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);  // nothing can be sent during a handshake
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    // An encrypted key would make OpenSSL ask for its password on the terminal.
    SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return -1; });
    const bool trust = tls.ca_file.empty()
                           ? trust_system(context)
                           : SSL_CTX_load_verify_locations(context, tls.ca_file.c_str(), nullptr) == 1;
    if (!trust) throw_unusable(endpoint, "tls.ca_file cannot be read: " + refusal());
    if (tls.certificate.empty() != tls.key.empty())
        throw_unusable(endpoint, "tls.certificate and key must be given together");
    if (tls.certificate.empty()) return;
    if (SSL_CTX_use_certificate_chain_file(context, tls.certificate.c_str()) != 1)
        throw_unusable(endpoint, "tls.certificate cannot be read: " + refusal());
    if (SSL_CTX_use_PrivateKey_file(context, tls.key.c_str(), SSL_FILETYPE_PEM) != 1)
        throw_unusable(endpoint, "tls.key cannot be used with the certificate: " + refusal());
}

TlsContext::TlsContext(const TlsContext& settings, const Endpoint& endpoint)
    : context_(settings.context_), server_name_(name_to_verify(endpoint)) {}

// ---- Session

TlsSession::TlsSession(const TlsContext& context, std::string& out)
    : session_(nullptr, [](SSL* it) {
          if (const ExitGate::Permit permit{gate}) SSL_free(it);
      }) {
    const ExitGate::Permit permit{gate};
    if (!may_go_on(bool{permit})) return;
    ERR_clear_error();
    session_.reset(SSL_new(context.context_.get()));
    auto* const received = BIO_new(BIO_s_mem());
    auto* const to_send = BIO_new(BIO_s_mem());
    if (!session_ || !received || !to_send) {
        BIO_free(received);
        BIO_free(to_send);
        error_ = "TLS: " + refusal();
        return;
    }
    auto* const session = session_.get();
    SSL_set_bio(session, received, to_send);
    const auto& name = context.server_name_;
    // If the name cannot be set, it would not be checked. Then there must be no session.
    const bool named = is_address(name)
                           ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), name.c_str()) == 1
                           : SSL_set1_host(session, name.c_str()) == 1 &&
                                 SSL_set_tlsext_host_name(session, name.c_str()) == 1;
    if (named)
        (void)shake_hands();
    else
        error_ = "TLS: " + refusal();
    drain(out);
}

bool TlsSession::receive(std::string_view cipher, std::string& plain, std::string& out) {
    const ExitGate::Permit permit{gate};
    if (!may_go_on(bool{permit})) return false;
    auto* const session = session_.get();
    BIO_write(SSL_get_rbio(session), cipher.data(), static_cast<int>(cipher.size()));
    bool fine = established_ || shake_hands();
    while (fine && established_) {
        std::array<char, 4096> part;
        ERR_clear_error();
        const int length = SSL_read(session, part.data(), static_cast<int>(part.size()));
        if (length <= 0) {
            fine = fail(length);
            break;
        }
        plain.append(part.data(), static_cast<std::size_t>(length));
    }
    drain(out);  // includes the alert that tells the server the reason
    return fine;
}

bool TlsSession::send(std::string_view plain, std::string& out) {
    const ExitGate::Permit permit{gate};
    if (!may_go_on(bool{permit})) return false;
    ERR_clear_error();
    const int length = SSL_write(session_.get(), plain.data(), static_cast<int>(plain.size()));
    // OpenSSL has taken nothing if it awaits the rest of a message that began after the handshake.
    if (length <= 0 && fail(length)) error_ = "TLS: the server prevents sending";
    drain(out);
    return length > 0;
}

bool TlsSession::shake_hands() {
    ERR_clear_error();
    const int status = SSL_connect(session_.get());
    established_ = status == 1;
    return established_ || fail(status);
}

/// Returns true if `status` only means "not yet". Otherwise stores the reason.
bool TlsSession::fail(int status) {
    auto* const session = session_.get();
    const int kind = SSL_get_error(session, status);
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) return true;
    // Of the errors in OpenSSL's queue for this thread, the first is nearest to the cause.
    const auto first = ERR_get_error();
    const int reason = ERR_GET_REASON(first);
    if (std::ranges::count(rejections, reason) > 0) cause_ = Errc::authentication_failed;
    // OpenSSL may have had no descriptor for the file of an authority. It drops the oldest of many errors, so
    // this error need not be the first.
    for (auto error = first; error != 0; error = ERR_get_error())
        if (ERR_SYSTEM_ERROR(error) && cause_of_errno(ERR_GET_REASON(error)) == shortage())
            cause_ = shortage();
    const long verification = SSL_get_verify_result(session);
    error_ = "TLS: " + (kind == SSL_ERROR_ZERO_RETURN ? std::string{"closed by the server"} : text_of(first));
    if (verification != X509_V_OK) error_ += std::string{": "} + X509_verify_cert_error_string(verification);
    const auto hint = kind == SSL_ERROR_SSL ? hint_for(verification, reason) : std::string_view{};
    if (!hint.empty()) error_ += "; " + std::string{hint};
    return false;
}

/// Returns false if the session has failed. Fails if the process is exiting (see ExitGate).
bool TlsSession::may_go_on(bool passed) {
    if (!passed) error_ = "TLS: the process is exiting";
    return !failed();
}

/// Moves the bytes that OpenSSL wants to send to `out`.
void TlsSession::drain(std::string& out) {
    char* bytes = nullptr;
    auto* const to_send = SSL_get_wbio(session_.get());
    const long length = BIO_get_mem_data(to_send, &bytes);
    if (length > 0) out.append(bytes, static_cast<std::size_t>(length));
    (void)BIO_reset(to_send);
}

}  // namespace redlock
