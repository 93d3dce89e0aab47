// Can I use std::lock_guard, std::unique_lock and std::scoped_lock as with any mutex?
//
// Yes. But unlike a mutex, the lock is a lease: it ends after its ttl even if the guard is still in scope.
#include "node_list.hpp"

#include <redlock/redlock.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <mutex>

using namespace std::chrono_literals;

int main(int argc, char** argv) try {
    redlock::RedisNodes nodes{node_list(argc, argv)};
    redlock::Lock from{nodes, "account:1"};
    redlock::Lock to{nodes, "account:2"};

    {
        const std::lock_guard guard{from};  // waits; throws redlock::Error if there is no quorum
        std::cout << "read the balance of " << from.resource() << '\n';
    }

    if (const std::unique_lock guard{from, 2s})  // try_lock_for
        std::cout << "booked on " << from.resource() << '\n';
    else
        return 1;

    {
        const std::scoped_lock both{from,
                                    to};  // no deadlock with a thread that locks them in the other order
        std::cout << "moved money from " << from.resource() << " to " << to.resource() << '\n';
        if (!from.valid() || !to.valid()) return 1;
    }

    return from.valid() || to.valid() ? 1 : 0;  // all guards have released
} catch (const redlock::Error& error) {
    std::cerr << "no lock: " << error.what() << '\n';
    return 1;
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
}
