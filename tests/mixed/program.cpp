// program KIND DIRECTORY: a program with the library, for tests/mixed/mixed_versions.py. It acquires a lock
// of this kind several times. Each time it makes DIRECTORY/held, which cannot be made twice, extends the
// lock, and writes DIRECTORY/two if it was not alone. It is compiled with each version of the library.
#include <redlock/redlock.hpp>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

std::vector<std::string> nodes_of_environment() {
    const auto* const text = std::getenv("REDLOCK_NODES");
    std::istringstream words{text != nullptr ? text : ""};
    std::vector<std::string> uris;
    for (std::string uri; std::getline(words, uri, ',');) uris.push_back(uri);
    return uris;
}

bool holds_alone(redlock::Lock& lock, const std::filesystem::path& directory) {
    const auto acquired = lock.acquire_for(30s);
    if (!acquired) {
        std::cerr << "program: " << acquired.message() << '\n';
        return false;
    }
    const bool alone = std::filesystem::create_directory(directory / "held");
    if (!alone) std::ofstream{directory / "two"} << "TWO\n";
    std::this_thread::sleep_for(10ms);
    const auto extended = lock.extend();
    std::filesystem::remove(directory / "held");
    const auto released = lock.release();
    if (!extended || !released)
        std::cerr << "program: " << extended.message() << ", " << released.message() << '\n';
    return extended && released;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const std::string kind = argv[1];
    redlock::NodesOptions for_nodes;
    for_nodes.node_timeout = 1s;
    if (kind == "quarantine") for_nodes.quarantine = 2s;
    redlock::RedisNodes nodes{nodes_of_environment(), for_nodes};
    redlock::LockOptions options;
    options.ttl = kind == "quarantine" ? 2s : 10s;
    options.fair = kind == "fair";
    options.fencing = kind == "fencing";
    options.holder = "program";
    const auto resource = kind + ":compete";
    auto lock = kind == "several" ? redlock::Lock{nodes, {resource, std::string{"several:2"}}, options}
                                  : redlock::Lock{nodes, resource, options};
    for (int i = 0; i < 8; ++i)
        if (!holds_alone(lock, argv[2])) return 1;
}
