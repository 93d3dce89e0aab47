// The library's own nodes and connections over a VirtualNetwork, and the servers behind it.
#pragma once

#include "fake_redis_server.hpp"
#include "require.hpp"
#include "virtual_network.hpp"

#include <redlock/nodes.hpp>
#include <redlock/redis_nodes.hpp>

#include "redis/connection.hpp"
#include "redis/lanes.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <span>
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
class VirtualNodes final : public Nodes {
public:
    VirtualNodes(std::size_t nodes, Round round, VirtualNetwork& network)
        : Nodes(names(nodes), the_node_timeout),
          network_(network),
          group_(configs(nodes), {.node_timeout = the_node_timeout, .round = round}, network, 64) {}

    Clock* required_clock() const noexcept override { return &network_; }
    void ask(std::span<const Request> requests, const RoundLimits& limits,
             std::span<Tally> tallies) override {
        group_.ask(requests, limits, tallies);
    }
    using Nodes::ask;

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

    VirtualNetwork& network_;
    Lanes group_;
};

}  // namespace redlock::fuzz
