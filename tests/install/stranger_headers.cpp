// A program that compiles the library itself, see stranger_library.cpp. It acquires and releases a lock on
// the servers in REDLOCK_NODES, and checks whether the library supports TLS: its argument is `tls` or
// `plain`.
#define REDLOCK_PROGRAM
#include <redlock/redlock.hpp>

#include "os/network.hpp"

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

static std::vector<std::string> servers() {
    const char* const variable = std::getenv("REDLOCK_NODES");
    std::istringstream list{variable != nullptr ? variable : ""};
    std::vector<std::string> uris;
    for (std::string uri; std::getline(list, uri, ',');) uris.push_back(uri);
    return uris;
}

static bool supports_tls() {
    try {
        redlock::RedisNodes nodes{"rediss://127.0.0.1:1"};  // connects later
        return true;
    } catch (const std::invalid_argument& error) {
        std::cout << error.what() << '\n';
        return false;
    }
}

int main(int argc, char** argv) {
    using namespace std::chrono_literals;
    static_assert(own_network);
    redlock::RedisNodes nodes{servers()};
    redlock::Lock lock{nodes, "stranger", {.ttl = 60s, .fencing = true}};
    const auto acquired = lock.acquire_for(60s);
    const auto released = lock.release();
    std::cout << acquired.message() << "\n" << released.message() << '\n';
    const bool tls_as_expected = supports_tls() == (argc == 2 && std::string{argv[1]} == "tls");
    return acquired && released && tls_as_expected ? 0 : 1;
}
