// Checks that a program links with the package: requests a lock from a node that does not exist, and prints
// the result.
#include <iostream>
#include <redlock/redlock.hpp>

int main() {
    redlock::RedisNodes nodes{"127.0.0.1:1"};  // nobody listens there
    redlock::Lock lock{nodes, "test_package"};
    std::cout << "redlock " REDLOCK_VERSION_STRING ": " << lock.try_acquire().message() << '\n';
    return 0;
}
