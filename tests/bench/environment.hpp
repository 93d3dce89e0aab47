// What a program of the benchmark is told by with_redis_nodes.
#pragma once

#include <string>
#include <vector>

namespace redlock::bench {

/// The URIs in REDLOCK_NODES, separated by commas there. Throws std::invalid_argument without.
std::vector<std::string> nodes_of_environment();

}  // namespace redlock::bench
