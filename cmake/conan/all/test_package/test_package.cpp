// Links all that the package consists of: a node that is not there is asked for a lock, and the answer is
// told.
#include <iostream>
#include <redlock/redlock.hpp>

int main() {
    redlock::RedisNodes nodes{"127.0.0.1:1"};  // nobody listens there
    redlock::Lock lock{nodes, "test_package"};
    std::cout << "redlock " REDLOCK_VERSION_STRING ": " << lock.try_acquire().message() << '\n';
    return 0;
}
