#include "node_table.hpp"

#include "../round/cluster_slots.hpp"

#include <algorithm>
#include <utility>

namespace redlock {

NodeTable::NodeTable(const std::vector<NodeConfig>& configs, Network& network, Node::Options options)
    : network_(network), options_(options) {
    for (const auto& config : configs) {
        const auto& cluster = config.cluster;
        nodes_.push_back(&add_node(cluster ? *cluster->servers().front() : config, cluster, nodes_.size()));
        if (cluster) clusters_.push_back(cluster);
    }
}

Node& NodeTable::add_node(NodeConfig config, std::shared_ptr<RedisCluster> cluster, std::size_t index) {
    config.cluster = std::move(cluster);
    auto options = options_;
    options.index = index;
    options.position = all_.size();
    return *all_.emplace_back(std::make_unique<Node>(std::move(config), network_, options));
}

Node& NodeTable::node_of(std::size_t index, const ClusterServer& server) {
    for (const auto& node : all_)
        if (node->is_of(*server)) return *node;
    return add_node(*server, nodes_[index]->cluster(), index);
}

Node* NodeTable::served_by(std::size_t index, const Command& command) {
    const auto server = nodes_[index]->cluster()->server_of(detail::slot_of(command.resources.front()));
    return server ? &node_of(index, server) : nullptr;
}

NodeTable::Route NodeTable::route_in_cluster(std::size_t index, const Command& command,
                                             Clock::time_point now) {
    const auto& cluster = nodes_[index]->cluster();
    if (!acquires(command.verb))
        for (const auto& node : all_)
            if (const auto* const set =
                    node->index() == index ? node->binding_command_of(command.owner) : nullptr)
                return {node.get(), set->asking};
    auto* const serving = served_by(index, command);
    if (serving && (serving->trusted(now) || !cluster->refresh_is_due(now))) return {serving};
    auto servers = cluster->servers();
    const auto other =
        std::ranges::find_if(servers, [now](const auto& it) { return it->server->health(now).trusted; });
    if (other != servers.end()) return {&node_of(index, *other)};
    // All have failed. They are tried in turn, because any of them can name the server of the slot.
    for (std::size_t i = 0; i < servers.size(); ++i) {
        const auto& server = servers[turn_++ % servers.size()];
        if (server->server->health(now).probe_due) return {&node_of(index, server)};
    }
    return {serving ? serving : nodes_[index]};
}

Node* NodeTable::redirected(const Node& from, const detail::Redirection& to) {
    const auto server = from.cluster()->server_at(to.to, from.host());
    return server ? &node_of(from.index(), server) : nullptr;
}

void NodeTable::leave_former_servers(Clock::time_point now) {
    for (std::size_t i = 0; i < all_.size(); ++i)  // a user that leaves may begin another Node
        if (all_[i]->cluster()) all_[i]->leave_former_server(now);
}

void NodeTable::find_debtors() {
    for (const auto* const node : nodes_)
        if (node->cluster())
            for (const auto& server : node->cluster()->debtors()) (void)node_of(node->index(), server);
}

}  // namespace redlock
