// The shortest program that needs all of redlock: its headers, its library, and hiredis. It asks three nodes
// that do not exist, and must get error codes that compare equal to its own. Whatever links the library
// defines REDLOCK_LINKED, so that redlock/src.hpp is an error.
#include <iostream>
#include <redlock/redlock.hpp>

#ifndef REDLOCK_LINKED
#error "redlock/src.hpp could be combined with the library"
#endif

int main() {
    using namespace std::chrono_literals;
    redlock::RedisNodes nodes{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"};  // no server listens there
    redlock::Lock lock{nodes, "stranger", {.ttl = 5s}};
    const auto result = lock.try_acquire();
    std::cout << "redlock " REDLOCK_VERSION_STRING ": " << result.message() << '\n';
    const bool refused = result.nodes().front().cause == redlock::Errc::connection_failed;
    return refused && result.error() == redlock::Errc::no_quorum ? 0 : 1;
}
