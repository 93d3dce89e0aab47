// A TCP port of 127.0.0.1 that remains reserved while the server on it starts and stops.
#pragma once

#include <netinet/in.h>

#include <cstdint>

namespace redlock::support {

/// Returns the address of a port of 127.0.0.1; 0 is any free port.
sockaddr_in loopback_address(std::uint16_t port);

/// Holds a socket that is bound to the port and never listens. Linux still lets a server that sets
/// SO_REUSEADDR, as redis-server does, listen on the port. It gives the port to no other socket: neither to
/// another test that looks for a free port, nor to an outgoing connection. This also holds while the server
/// is down.
class ReservedPort {
public:
    ReservedPort();
    ~ReservedPort();
    ReservedPort(const ReservedPort&) = delete;
    ReservedPort& operator=(const ReservedPort&) = delete;

    std::uint16_t number() const noexcept { return number_; }
    /// Returns a new socket that listens on the port. `flags` is 0 or SOCK_NONBLOCK.
    int listen(int flags = 0) const;

private:
    int socket_;
    std::uint16_t number_ = 0;
};

}  // namespace redlock::support
