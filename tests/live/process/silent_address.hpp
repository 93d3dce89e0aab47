// An address that neither accepts nor refuses connections, like one behind a firewall or of a machine that is
// down.
#pragma once

#include <redlock/detail/not_copied.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

namespace redlock::test {

/// Listens, never accepts, and keeps its queue full. The kernel then drops packets that would open a
/// connection.
class SilentAddress : detail::NotCopied {
public:
    /// Takes any address of 127.0.0.0/8 except 127.0.0.1, and the port of one of our servers.
    SilentAddress(const std::string& address, std::uint16_t port) {
        sockaddr_in name{};
        name.sin_family = AF_INET;
        name.sin_port = htons(port);
        ::inet_pton(AF_INET, address.c_str(), &name.sin_addr);
        const auto* const generic = reinterpret_cast<const sockaddr*>(&name);
        const int listener = open_socket();
        if (::bind(listener, generic, sizeof name) != 0 || ::listen(listener, 0) != 0) fail(address);
        for (int client = 0; client < 4; ++client)
            if (::connect(open_socket(), generic, sizeof name) != 0 && errno != EINPROGRESS) fail(address);
    }
    ~SilentAddress() {
        for (const int socket : sockets_) ::close(socket);
    }

private:
    [[noreturn]] static void fail(const std::string& what) {
        throw std::system_error(errno, std::generic_category(), what);
    }

    int open_socket() {
        const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (socket < 0) fail("socket");
        sockets_.push_back(socket);
        return socket;
    }

    std::vector<int> sockets_{};
};

}  // namespace redlock::test
