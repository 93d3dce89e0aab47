// Names for this machine.
#pragma once

#include <netdb.h>

namespace redlock::support {

/// Certificates and inet_pton() do not accept this text as an address. But getaddrinfo() resolves it on every
/// machine, without looking it up.
inline constexpr auto* loopback_name = "127.1";

/// Returns false on a machine without /etc/hosts, which knows no name that a test could look up.
inline bool localhost_is_known() {
    addrinfo* found = nullptr;
    if (::getaddrinfo("localhost", nullptr, nullptr, &found) != 0) return false;
    ::freeaddrinfo(found);
    return true;
}

}  // namespace redlock::support
