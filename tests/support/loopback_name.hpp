// A name for this machine.
#pragma once

namespace redlock::support {

/// Certificates and inet_pton() do not accept this text as an address. But getaddrinfo() resolves it on every
/// machine, even on one without /etc/hosts, which does not know "localhost".
inline constexpr auto* loopback_name = "127.1";

}  // namespace redlock::support
