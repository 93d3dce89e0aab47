// N nodes over a network, as one process knows them: the engine of RedisNodes, and of the simulation.
#pragma once

#include <redlock/detail/duplicate_server_check.hpp>
#include <redlock/nodes.hpp>
#include <redlock/redis_nodes.hpp>

#include "os/network.hpp"
#include "redis/connection.hpp"
#include "redis/node.hpp"

#include <chrono>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace redlock {

class NodeGroup {
public:
    /// No I/O. `network` must outlive it.
    NodeGroup(const std::vector<NodeConfig>& configs, const NodesOptions& options, Network& network);
    /// Sends what was written and not waited for. Blocks one node_timeout at most.
    ~NodeGroup();
    NodeGroup(const NodeGroup&) = delete;
    NodeGroup& operator=(const NodeGroup&) = delete;

    /// See Nodes::ask().
    void ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies);

    /// See Nodes::waiter().
    std::unique_ptr<Waiter> waiter();

private:
    void send_the_rest();
    void notify(std::span<const Request> requests, std::span<const Tally> tallies,
                std::chrono::nanoseconds took) const;
    void notify(std::string_view node, const NodeEvent& event) const;

    const NodesOptions options_;
    Network& network_;
    detail::DuplicateServerCheck servers_;
    std::vector<std::unique_ptr<Node>> nodes_{};
};

}  // namespace redlock
