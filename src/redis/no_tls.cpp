// Replaces tls.cpp in a build without OpenSSL. Every attempt to use TLS fails with a message.
#include "parse_address.hpp"
#include "tls.hpp"

namespace redlock {

bool TlsContext::leave_thread() noexcept {
    return true;
}
TlsContext::TlsContext(const Endpoint& endpoint) {
    throw_unusable(
        endpoint,
        "TLS (rediss://) is not supported by this build of redlock, which was made without OpenSSL");
}

TlsContext::TlsContext(const TlsContext&, const Endpoint& endpoint) : TlsContext(endpoint) {}

TlsSession::TlsSession(const TlsContext&, std::string&) : session_(nullptr, nullptr) {}
bool TlsSession::receive(std::string_view, std::string&, std::string&) {
    return false;
}
bool TlsSession::send(std::string_view, std::string&) {
    return false;
}

}  // namespace redlock
