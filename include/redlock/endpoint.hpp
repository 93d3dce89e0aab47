// Where a node is, and how to be let in.
#pragma once

#include <redlock/export.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
    /// The Sentinels that know where the server is, in place of host and port, and its name with them.
    std::vector<Endpoint> sentinels{};
    std::string master{};

    /// Reads one of
    ///
    ///     redis://[user[:password]@]host[:port][/db]     redis://:password@10.0.0.1
    ///     rediss://...?ca_file=&certificate=&key=&server_name=    the same over TLS
    ///     unix://[user[:password]@]/path/to/socket[?db=1]
    ///     redis+sentinel://[user[:password]@]host[:port],host[:port],.../master[/db]
    ///         [?sentinel_user=&sentinel_password=]
    ///     rediss+sentinel://...?server_name=[&sentinel_tls=no]    the same over TLS, to the Sentinels, too
    ///     host[:port]     [::1]:6379     10.0.0.1:6379
    ///
    /// User, password, path and query values are percent-decoded. Throws std::invalid_argument with the part
    /// that is wrong; the message never shows a password (rule D11).
    static Endpoint parse(std::string_view uri);

    /// "host:port", "[::1]:port", the socket's path or "master@host:port": for reports and logs, without
    /// secrets.
    std::string name() const;
};

}  // namespace redlock
