// The address of a node, and the credentials for it.
#pragma once

#include <redlock/export.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redlock {

/// The parameters of a TLS connection. An empty field means the system's default.
struct Tls {
    bool enabled = false;
    std::string ca_file{};      ///< The PEM file of the certificate authorities to trust.
    std::string certificate{};  ///< The PEM file of the client certificate, if the server asks for one.
    std::string key{};          ///< The PEM file of the private key of the client certificate.
    std::string server_name{};  ///< The name that the server's certificate must have; the host if empty.
};

/// The name and the password of an ACL user. Without a name they are for the default user, and if both are
/// empty, no AUTH is sent.
struct Credentials {
    std::string username{};
    std::string password{};
};

/// The address of one node: a host and port, a unix socket, a master that Sentinels know, or a Redis Cluster.
struct REDLOCK_EXPORT Endpoint {
    std::string host{};  ///< A name, or an IPv4 or IPv6 address without brackets. Empty with a unix socket.
    std::uint16_t port = 6379;
    std::string unix_socket{};  ///< The path of a socket, instead of host and port.
    std::string username{};     ///< The ACL user; the default user if empty.
    std::string password{};     ///< If both user name and password are empty, no AUTH is sent.
    int database = 0;           ///< Selected unless it is 0.
    Tls tls{};
    /// The Sentinels that know the address of the server, instead of host and port.
    std::vector<Endpoint> sentinels{};
    /// The name that the Sentinels have for the server.
    std::string master{};
    /// Some servers of a Redis Cluster, instead of host and port. They name the others. The node is then the
    /// whole Cluster: for each resource, it is the master that has the hash slot of the resource. Of the
    /// seeds, only host and port are used.
    std::vector<Endpoint> seeds{};

    /// Returns the endpoint that `uri` describes. The forms are
    ///
    ///     redis://[user[:password]@]host[:port][/db]     redis://:password@10.0.0.1
    ///     rediss://...?ca_file=&certificate=&key=&server_name=    the same over TLS
    ///     unix://[user[:password]@]/path/to/socket[?db=1]
    ///     redis+sentinel://[user[:password]@]host[:port],host[:port],.../master[/db]
    ///         [?sentinel_user=&sentinel_password=]
    ///     rediss+sentinel://...?server_name=[&sentinel_tls=no]    the same over TLS, to the Sentinels, too
    ///     redis+cluster://[user[:password]@]host[:port],host[:port],...    a Redis Cluster
    ///     rediss+cluster://...?ca_file=&certificate=&key=&server_name=     the same over TLS
    ///     host[:port]     [::1]:6379     10.0.0.1:6379
    ///
    /// User name, password, path and query values are percent-decoded. Throws std::invalid_argument, with the
    /// name of the wrong part, if `uri` is malformed. The message never contains a password.
    static Endpoint parse(std::string_view uri);

    /// Returns "host:port", "[::1]:port", the path of the socket, "master@host:port", or
    /// "cluster@host:port" with the first seed. The name contains no secrets; reports and logs use it.
    std::string name() const;
};

}  // namespace redlock
