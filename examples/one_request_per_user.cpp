// How do I refuse the second request of a user while any server is still processing the first one?
//
// Make one attempt on a lock that is named after the user. If it is refused, respond with "409 Conflict" and
// do not wait. The ttl must be longer than any request. If a server dies, the user is locked out until the
// ttl has passed.
#include "node_list.hpp"

#include <redlock/redlock.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <iostream>
#include <string>

using namespace std::chrono_literals;

/// Returns the HTTP status of the response.
int serve(redlock::Nodes& nodes, const std::string& user, const std::function<void()>& request) {
    redlock::Lock lock{nodes, "user:" + user + ":request", {.ttl = 10s}};
    const auto admitted = lock.try_acquire();
    if (admitted.error() == redlock::Errc::held_by_other) return 409;  // another request of this user
    if (!admitted) {                                                   // a majority did not reply
        std::cerr << admitted.message() << '\n';
        return 503;
    }
    request();
    return 200;
}  // the destructor releases the lock

int main(int argc, char** argv) try {
    redlock::RedisNodes nodes{node_list(argc, argv)};
    int again = 0;
    int another = 0;
    const int first = serve(nodes, "ada", [&] {  // inside the first request:
        again = serve(nodes, "ada", [] {});
        another = serve(nodes, "grace", [] {});
    });
    const int later = serve(nodes, "ada", [] {});
    std::cout << "ada: " << first << ", at the same time: " << again << ", grace: " << another
              << ", ada later: " << later << '\n';
    return first == 200 && again == 409 && another == 200 && later == 200 ? 0 : 1;
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
}
