// The nodes of a program that with_redis_nodes started.
#pragma once

#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace redlock::support {

/// Returns the URIs in REDLOCK_NODES, which are separated by commas.
inline std::vector<std::string> redlock_nodes() {
    const auto* const list = std::getenv("REDLOCK_NODES");
    if (list == nullptr) throw std::invalid_argument("REDLOCK_NODES is not set; run me by with_redis_nodes");
    std::vector<std::string> uris;
    std::istringstream words{list};
    for (std::string uri; std::getline(words, uri, ',');) uris.push_back(uri);
    return uris;
}

}  // namespace redlock::support
