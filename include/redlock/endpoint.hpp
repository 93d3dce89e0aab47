// Where a node is, and how to be let in.
#pragma once

#include <redlock/export.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace redlock {

/// What a TLS connection is made with. Empty fields mean the system's defaults.
struct Tls {
    bool enabled = false;
    std::string ca_file{};      ///< PEM file of the authorities to trust
    std::string certificate{};  ///< PEM file of our certificate, where the server asks for one
    std::string key{};          ///< PEM file of its private key
    std::string server_name{};  ///< the name to find in the server's certificate; the host if empty
};

struct REDLOCK_EXPORT Endpoint {
    std::string host{};  ///< a name, an IPv4 or an IPv6 address (no brackets); empty with a unix socket
    std::uint16_t port = 6379;
    std::string unix_socket{};  ///< the path of a socket, in place of host and port
    std::string username{};     ///< the ACL user; empty: the default user
    std::string password{};     ///< empty, and no user name: no AUTH is sent
    int database = 0;           ///< selected where it is not 0
    Tls tls{};

    /// Reads one of
    ///
    ///     redis://[user[:password]@]host[:port][/db]     redis://:password@host
    ///     rediss://...?ca_file=&certificate=&key=&server_name=    the same over TLS
    ///     unix://[user[:password]@]/path/to/socket[?db=1]
    ///     host[:port]     [::1]:6379     10.0.0.1:6379
    ///
    /// User, password, path and query values are percent-decoded. Throws std::invalid_argument with the part
    /// that is wrong; the message never shows a password (rule D11).
    static Endpoint parse(std::string_view uri);

    /// "host:port", "[::1]:port" or the socket's path: for reports and logs, without secrets.
    std::string name() const;
};

}  // namespace redlock
