// How do I refuse the second request of a user while the first is being served, on whatever server that is?
//
// One attempt on a lock named after the user: a refusal is an answer ("409 Conflict"), not a reason to wait.
// A ttl longer than any request is enough; a server that dies locks the user out for that long.
#include "node_list.hpp"

#include <redlock/redlock.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <iostream>
#include <string>

using namespace std::chrono_literals;

/// The HTTP status of the answer.
int serve(redlock::Nodes& nodes, const std::string& user, const std::function<void()>& request) {
    redlock::Lock lock{nodes, "user:" + user + ":request", {.ttl = 10s}};
    const auto admitted = lock.try_acquire();
    if (admitted.error() == redlock::Errc::held_by_other) return 409;  // one of theirs is being served
    if (!admitted) return 503;                                         // the nodes cannot tell
    request();
    return 200;
}  // released here

int main(int argc, char** argv) try {
    redlock::RedisNodes nodes{node_list(argc, argv)};
    int again = 0;
    int another = 0;
    const int first = serve(nodes, "ada", [&] {  // meanwhile:
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
