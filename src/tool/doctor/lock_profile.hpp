// The locks that the nodes are to serve. A server that is fine for one profile may be unsafe for another.
#pragma once

#include <redlock/options.hpp>
#include <redlock/redis_nodes.hpp>

#include <chrono>

namespace redlock::tool {

struct LockProfile {
    std::chrono::milliseconds ttl = std::chrono::seconds{30};
    double drift_factor = LockOptions{}.drift_factor;
    std::chrono::milliseconds node_timeout = NodesOptions{}.node_timeout;
    std::chrono::milliseconds quarantine{0};  ///< 0 if the locks have none
};

}  // namespace redlock::tool
