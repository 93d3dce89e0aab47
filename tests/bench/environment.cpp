#include "environment.hpp"

#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace redlock::bench {

std::vector<std::string> nodes_of_environment() {
    const auto* const list = std::getenv("REDLOCK_NODES");
    if (list == nullptr) throw std::invalid_argument("REDLOCK_NODES is not set; run me by with_redis_nodes");
    std::vector<std::string> uris;
    std::istringstream words{list};
    for (std::string uri; std::getline(words, uri, ',');) uris.push_back(uri);
    return uris;
}

}  // namespace redlock::bench
