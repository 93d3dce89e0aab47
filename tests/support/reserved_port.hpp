// A TCP port of 127.0.0.1 that stays ours while the server on it comes and goes.
#pragma once

#include <cstdint>

namespace redlock::support {

/// Holds a socket that is bound to the port, and never listens. Linux lets a server that sets SO_REUSEADDR
/// (as redis-server does) listen there all the same, and gives the port to no other socket: neither to
/// another test that looks for a free one nor to an outgoing connection, also while the server is down.
class ReservedPort {
public:
    ReservedPort();
    ~ReservedPort();
    ReservedPort(const ReservedPort&) = delete;
    ReservedPort& operator=(const ReservedPort&) = delete;

    std::uint16_t number() const noexcept { return number_; }

private:
    int socket_;
    std::uint16_t number_ = 0;
};

}  // namespace redlock::support
