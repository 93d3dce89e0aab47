// The library's own nodes and connections over a VirtualNetwork, and the servers behind it.
#pragma once

#include "fake_redis_server.hpp"
#include "require.hpp"
#include "virtual_network.hpp"

#include <redlock/redis_nodes.hpp>

#include "redis/connection.hpp"
#include "support/nodes_over_lanes.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace redlock::fuzz {

/// The node_timeout of the fuzzed nodes.
inline constexpr std::chrono::milliseconds the_node_timeout{50};

/// Servers, and the network to them.
class World {
public:
    explicit World(std::size_t servers) {
        while (servers_.size() < servers)
            network_.add(servers_.emplace_back(servers_.size(), the_node_timeout));
    }

    std::deque<FakeRedisServer>& servers() { return servers_; }
    VirtualNetwork& network() { return network_; }
    bool misreported() const { return std::ranges::any_of(servers_, &FakeRedisServer::has_misreported); }

private:
    std::deque<FakeRedisServer> servers_{};
    VirtualNetwork network_{};
};

/// The engine of RedisNodes over that network.
class VirtualNodes final : public support::NodesOverLanes {
public:
    VirtualNodes(std::size_t nodes, Round round, VirtualNetwork& network)
        : NodesOverLanes(names(nodes), configs(nodes), {.node_timeout = the_node_timeout, .round = round},
                         network, 64) {}

private:
    static std::vector<NodeConfig> configs(std::size_t nodes) {
        std::vector<NodeConfig> configs(nodes);
        for (std::size_t node = 0; node < nodes; ++node) {
            configs[node] = {.endpoint = VirtualNetwork::endpoint(node), .node_timeout = the_node_timeout};
            configs[node].endpoint.password = secret;
        }
        return configs;
    }
    static std::vector<std::string> names(std::size_t nodes) {
        std::vector<std::string> names;
        for (const auto& config : configs(nodes)) names.push_back(config.endpoint.name());
        return names;
    }
};

}  // namespace redlock::fuzz
