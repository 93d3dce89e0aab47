// What a checkup has to try, and for which locks. A server that is fine for some locks may be unsafe for
// others.
#pragma once

#include <redlock/options.hpp>
#include <redlock/redis_nodes.hpp>

#include <chrono>
#include <string>

namespace redlock::tool {

struct CheckupPlan {
    LockOptions lock{.ttl = std::chrono::seconds{30}};  ///< of the locks that the nodes are to serve
    NodesOptions nodes{};                               ///< of the clients that use these locks
    std::string resource{};                             ///< the resource of the probe, which nobody else uses
    bool mark = false;                                  ///< write the marker of the quarantine
};

}  // namespace redlock::tool
