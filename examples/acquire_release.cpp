// How do I guard a critical section, and what do I do if I cannot acquire the lock?
//
//     acquire_release redis://10.0.0.1 redis://10.0.0.2 redis://10.0.0.3
#include "node_list.hpp"

#include <redlock/redlock.hpp>

#include <chrono>
#include <exception>
#include <iostream>

using namespace std::chrono_literals;

/// Returns true if the order was charged.
bool charge_once(redlock::Nodes& nodes) {
    redlock::Lock lock{nodes, "orders:42", {.ttl = 10s}};

    const auto acquired = lock.acquire();
    if (!acquired) {
        std::cerr << "not charged: " << acquired.message() << '\n';
        return false;
    }
    std::cout << "the order is ours for "
              << std::chrono::ceil<std::chrono::milliseconds>(lock.remaining()).count() << " ms\n";
    // ... the work. Either it ends before remaining() is over, or it checks valid() before every step that
    // matters:
    if (!lock.valid()) return false;
    std::cout << "charged\n";

    // The destructor would release the lock as well, but it could not report a failure.
    const auto released = lock.release();
    if (!released) std::cerr << "released late: " << released.message() << '\n';
    return true;
}

int main(int argc, char** argv) {
    try {
        redlock::RedisNodes nodes{node_list(argc, argv)};  // no I/O yet
        return charge_once(nodes) ? 0 : 1;
    } catch (const std::exception& error) {  // an empty list, a malformed URI
        std::cerr << error.what() << '\n';
        return 2;
    }
}
