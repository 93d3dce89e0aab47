// What the connections to one node have in common, and how its server is found.
#pragma once

#include <redlock/endpoint.hpp>

#include "os/resolution.hpp"
#include "redis/tls.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace redlock {

/// Constant while there is a connection that uses it.
struct NodeConfig {
    /// Throws std::invalid_argument if TLS cannot be had as the endpoint wants it, and if the endpoint has
    /// more Sentinels than can be polled at the same time (16).
    static NodeConfig of(Endpoint endpoint, std::chrono::milliseconds node_timeout,
                         std::chrono::milliseconds quarantine = {});

    bool has_sentinels() const noexcept { return sentinels && !sentinels->empty(); }

    /// Returns the addresses of its server: its own, those of its name, or those of the master that more than
    /// half of its Sentinels name now. An inquiry of Sentinels ends with the last owner of what is returned.
    std::shared_ptr<Resolution> find_server() const;

    Endpoint endpoint{};
    std::shared_ptr<const TlsContext> tls{};  ///< null for plain connections
    std::chrono::milliseconds node_timeout{};
    std::chrono::milliseconds quarantine{};
    std::shared_ptr<const std::vector<NodeConfig>> sentinels{};  ///< null or empty: the endpoint is a server
    std::function<std::shared_ptr<Resolution>()> asks_sentinels{};  ///< a test's, in place of ours
};

}  // namespace redlock
