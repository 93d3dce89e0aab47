// The settings that all connections to one node share, and the search for its server.
#pragma once

#include <redlock/endpoint.hpp>

#include "../os/resolution.hpp"
#include "server.hpp"
#include "tls.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace redlock {

class RedisCluster;

/// Must not change while a connection uses it.
struct NodeConfig {
    /// Throws std::invalid_argument if TLS is not possible as the endpoint demands it, or if the endpoint has
    /// more Sentinels than can be polled at the same time (16).
    static NodeConfig of(Endpoint endpoint, std::chrono::milliseconds node_timeout,
                         std::chrono::milliseconds quarantine = {});

    bool has_sentinels() const noexcept { return sentinels && !sentinels->empty(); }

    /// Returns the addresses of the server: those of the endpoint itself, those of its host name, or those of
    /// the master that more than half of its Sentinels name now. A query of Sentinels is stopped when the
    /// last owner of the returned object is destroyed.
    std::shared_ptr<Resolution> find_server() const;
    /// Records that the server has failed. If it is one of a Redis Cluster, the list of all servers is out of
    /// date.
    void failed(detail::NodeFailure failure, Clock::time_point now, Entropy& entropy) const;

    Endpoint endpoint{};
    std::shared_ptr<const TlsContext> tls{};  ///< null for plain connections
    std::chrono::milliseconds node_timeout{};
    std::chrono::milliseconds quarantine{};
    std::function<Credentials(std::string_view node)> credentials{};  ///< in place of those of the endpoint
    std::shared_ptr<const std::vector<NodeConfig>> sentinels{};  ///< null or empty: the endpoint is a server
    std::function<std::shared_ptr<Resolution>()> asks_sentinels{};  ///< lets a test replace the query
    /// The index of the address of a Sentinel that the next query tries first. All queries share it.
    std::shared_ptr<std::atomic<std::size_t>> first_address = std::make_shared<std::atomic<std::size_t>>(0);
    /// Shared by the Node objects of this node. Null if no round uses the connections to it.
    std::shared_ptr<Server> server{};
    /// What the process knows about the Redis Cluster; null if the node is none.
    std::shared_ptr<RedisCluster> cluster{};
};

/// Returns the settings with new Servers and RedisClusters: those of one process for its Node objects.
std::vector<NodeConfig> for_one_process(std::vector<NodeConfig> configs);

}  // namespace redlock
