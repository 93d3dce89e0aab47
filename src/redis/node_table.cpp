#include "node_table.hpp"

#include "../round/cluster_slots.hpp"

#include <algorithm>
#include <utility>

namespace redlock {

NodeTable::NodeTable(const std::vector<NodeConfig>& configs, Network& network, Node::Options options)
    : network_(network), options_(options), debts_(configs.size()) {
    for (const auto& config : configs) {
        auto of_node = options_;
        of_node.index = of_node.position = nodes_.size();
        auto cluster = config.cluster;
        if (!cluster && !config.endpoint.seeds.empty()) cluster = std::make_shared<RedisCluster>(config);
        auto of_server = config;
        if (cluster) {
            of_server = *cluster->servers().front();
            of_server.cluster = cluster;
        }
        nodes_.push_back(std::make_unique<Node>(std::move(of_server), network_, of_node));
        all_.push_back(nodes_.back().get());
        clusters_.push_back(std::move(cluster));
    }
}

Node& NodeTable::node_of(std::size_t index, const ClusterServer& server) {
    for (auto* const node : all_)
        if (node->is_of(*server)) return *node;
    auto of_node = options_;
    of_node.index = index;
    of_node.position = all_.size();
    auto config = *server;
    config.cluster = clusters_[index];
    all_.reserve(all_.size() + 1);
    others_.push_back(std::make_unique<Node>(std::move(config), network_, of_node));
    all_.push_back(others_.back().get());
    return *all_.back();
}

Node* NodeTable::served_by(std::size_t index, const Command& command) {
    const auto& cluster = clusters_[index];
    if (!cluster) return nullptr;
    const auto server = cluster->server_of(detail::slot_of(command.resources.front()));
    return server ? &node_of(index, server) : nullptr;
}

NodeTable::Route NodeTable::route_in_cluster(std::size_t index, const Command& command,
                                             Clock::time_point now) {
    const auto& cluster = clusters_[index];
    if (cluster->has_moved() && !acquires(command.verb))
        for (auto* const node : all_)
            if (const auto* const set =
                    node->index() == index ? node->unanswered_set_of(command.owner) : nullptr)
                return {node, set->asking};
    auto* const serving = served_by(index, command);
    if (serving && (serving->trusted(now) || !cluster->refresh_is_due(now))) return {serving};
    auto servers = cluster->servers();
    const auto other =
        std::ranges::find_if(servers, [now](const auto& it) { return it->server->health(now).trusted; });
    if (other != servers.end()) return {&node_of(index, *other)};
    if (serving) return {serving};
    // All have failed. The one whose pause is over first is the most likely to be back.
    const auto probe =
        std::ranges::find_if(servers, [now](const auto& it) { return it->server->health(now).probe_due; });
    return {&node_of(index, probe == servers.end() ? servers.front() : *probe)};
}

Node* NodeTable::redirected(const Node& from, const detail::Redirection& to) {
    const auto server = clusters_[from.index()]->server_at(to.to, from.host());
    return server ? &node_of(from.index(), server) : nullptr;
}

RedisClusters NodeTable::clusters() const {
    auto clusters = clusters_;
    std::erase(clusters, nullptr);
    return clusters;
}

void NodeTable::find_debtors() {
    for (std::size_t i = 0; i < clusters_.size(); ++i) {
        const auto debts = clusters_[i] ? clusters_[i]->debts() : 0;
        if (debts == debts_[i]) continue;
        for (const auto& server : clusters_[i]->servers())
            if (!server->kept_releases->none()) (void)node_of(i, server);
        debts_[i] = debts;
    }
}

}  // namespace redlock
