#include "sim_nodes.hpp"

#include <algorithm>
#include <utility>

namespace redlock::sim {
namespace {

std::vector<std::string> names_of(const std::vector<std::unique_ptr<SimNode>>& nodes) {
    std::vector<std::string> names;
    for (const auto& node : nodes) names.push_back(node->name());
    return names;
}

std::vector<NodeConfig> configs_of(std::size_t nodes, const NodesOptions& options) {
    std::vector<NodeConfig> configs;
    for (std::size_t node = 0; node < nodes; ++node)
        configs.push_back({.endpoint = {.unix_socket = ProcessNetwork::path_of(node)},
                           .node_timeout = options.node_timeout,
                           .quarantine = options.quarantine});
    return configs;
}

}  // namespace

SimNodes::SimNodes(Process& process, Network& network, const std::vector<std::unique_ptr<SimNode>>& nodes,
                   Rng rng, NodesOptions options)
    : Nodes(names_of(nodes), options.node_timeout, options.quarantine),
      process_(process),
      network_(process, network, nodes, rng, [this](const Words& words) { sent(words); }),
      group_(configs_of(nodes.size(), options), options, network_) {}

void SimNodes::ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies) {
    process_.check_alive();
    for (const auto& [command, to] : requests) {
        const bool continues = command.verb == Verb::raise_count || command.verb == Verb::compare_and_delete;
        auto& asked = asked_[std::string{command.owner}];
        if (!continues) asked.began = process_.now();
        if (acquires(command.verb)) owners_.emplace_back(process_.current(), command.owner);
    }
    process_.fault_point();
    group_.ask(requests, limits, tallies);
    for (std::size_t i = 0; i < requests.size(); ++i)
        if (requests[i].command.verb == Verb::compare_and_delete)
            note_unreached(requests[i], tallies[i]);
        else
            asked_[std::string{requests[i].command.owner}].ended = process_.now();
}

/// A connection that was not made within the budget, on a network as slow as that.
void SimNodes::note_unreached(const Request& release, const Tally& tally) {
    auto& unreached = unreached_[std::string{release.command.owner}];
    for (std::size_t node = 0; node < size(); ++node)
        if (release.to[node]) unreached[node] = !tally[node].sent && tally[node].cause == Errc::timed_out;
}

NodeSet SimNodes::unreached(std::string_view owner) const {
    const auto it = unreached_.find(owner);
    return it == unreached_.end() ? NodeSet{} : it->second;
}

SimNodes::Asked SimNodes::asked(std::string_view owner) const {
    const auto it = asked_.find(owner);
    return it == asked_.end() ? Asked{} : it->second;
}

std::vector<std::string> SimNodes::take_owners() {
    std::vector<std::string> mine;
    std::erase_if(owners_, [&](auto& claim) {
        if (claim.first != process_.current()) return false;
        mine.push_back(std::move(claim.second));
        return true;
    });
    return mine;
}

void SimNodes::sent(const Words& words) const {
    if (extends(words) && released_.contains(owner_of(words)) && on_late_extension_)
        on_late_extension_(owner_of(words));
}

}  // namespace redlock::sim
