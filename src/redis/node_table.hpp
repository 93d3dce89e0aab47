// The Node objects of one lane or event loop. There is one for each node, or several if the node is a Redis
// Cluster: one for each of its servers that the lane has used. A round uses one of them for each node.
#pragma once

#include <redlock/nodes.hpp>

#include "../round/cluster_map.hpp"
#include "node.hpp"
#include "redis_cluster.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace redlock {

class NodeTable {
public:
    /// Does no I/O. `configs` must come from for_one_process(). `options` are those of all nodes, apart from
    /// the index.
    NodeTable(const std::vector<NodeConfig>& configs, Network& network, Node::Options options);

    /// Returns one Node for each node. That of a Cluster is its first seed.
    std::span<Node* const> nodes() const noexcept { return nodes_; }
    /// Returns all Node objects. PollEntry::node is an index into it.
    std::span<const std::unique_ptr<Node>> all() const noexcept { return all_; }

    /// The Node that a round uses, and how.
    struct Route {
        Node* node = nullptr;
        bool asking = false;  ///< the command must be sent behind ASKING
    };
    /// Returns the Node for a command to this node. If the node is a Cluster, this is the server of the slot
    /// of the command, with two exceptions. A command follows its SET to the server on which the SET is
    /// unanswered. If the server of the slot is not known, or has failed, the command goes to another server,
    /// which then also has to name the servers (Connection::fetch_servers()).
    Route route(std::size_t index, const Command& command, Clock::time_point now) {
        return nodes_[index]->cluster() ? route_in_cluster(index, command, now) : Route{nodes_[index]};
    }
    /// Returns the Node of the server that the Cluster has for the slot of the command, or null if it is not
    /// known. The node must be a Cluster.
    Node* served_by(std::size_t index, const Command& command);
    /// Returns the Node of the server to which `from` has redirected a command, or null if there are too
    /// many.
    Node* redirected(const Node& from, const detail::Redirection& to);

    /// Returns the Clusters of all nodes.
    const RedisClusters& clusters() const noexcept { return clusters_; }

    /// Makes a Node for each server of a Cluster that has to get a kept release.
    void find_debtors();
    /// Breaks the connections to the servers that Clusters have replaced.
    void leave_former_servers(Clock::time_point now);

private:
    Route route_in_cluster(std::size_t index, const Command& command, Clock::time_point now);
    /// Adds a Node to all().
    Node& add_node(NodeConfig config, std::shared_ptr<RedisCluster> cluster, std::size_t index);
    Node& node_of(std::size_t index, const ClusterServer& server);

    Network& network_;
    const Node::Options options_;
    RedisClusters clusters_{};
    std::vector<std::unique_ptr<Node>> all_{};
    std::vector<Node*> nodes_{};  // constant after construction
    std::size_t turn_ = 0;        // of the server that is tried next if all have failed
};

}  // namespace redlock
