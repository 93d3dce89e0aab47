// A name for this machine.
#pragma once

namespace redlock::support {

/// No address by the strict rules that certificates and inet_pton know, and yet getaddrinfo understands it on
/// every machine, also on one without /etc/hosts, which does not know "localhost".
inline constexpr auto* loopback_name = "127.1";

}  // namespace redlock::support
