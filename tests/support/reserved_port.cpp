#include "support/reserved_port.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace redlock::support {

namespace {

/// Binds to any free port, and stores its number in `address`.
bool bind_any(int socket, sockaddr_in& address) {
    const int yes = 1;
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    return ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
           ::bind(socket, generic, length) == 0 && ::getsockname(socket, generic, &length) == 0;
}

}  // namespace

ReservedPort::ReservedPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (socket_ < 0 || !bind_any(socket_, address)) {
        const auto error = errno;
        ::close(socket_);
        throw std::system_error(error, std::generic_category(), "no free port on 127.0.0.1");
    }
    number_ = ntohs(address.sin_port);
}

ReservedPort::~ReservedPort() {
    ::close(socket_);
}

}  // namespace redlock::support
