#include "support/reserved_port.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace redlock::support {

namespace {

/// Binds to the port, or to any free port if it is 0, and stores its number in `address`.
bool bind_to(int socket, sockaddr_in& address) {
    const int yes = 1;
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    return ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
           ::bind(socket, generic, length) == 0 && ::getsockname(socket, generic, &length) == 0;
}

}  // namespace

sockaddr_in loopback_address(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

ReservedPort::ReservedPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    auto address = loopback_address(0);
    if (socket_ < 0 || !bind_to(socket_, address)) {
        const auto error = errno;
        ::close(socket_);
        throw std::system_error(error, std::generic_category(), "no free port on 127.0.0.1");
    }
    number_ = ntohs(address.sin_port);
}

ReservedPort::~ReservedPort() {
    ::close(socket_);
}

int ReservedPort::listen(int flags) const {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    auto address = loopback_address(number_);
    if (listener >= 0 && bind_to(listener, address) && ::listen(listener, SOMAXCONN) == 0) return listener;
    const auto error = errno;
    ::close(listener);
    throw std::system_error(error, std::generic_category(), "cannot listen on a port of 127.0.0.1");
}

}  // namespace redlock::support
