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

/// Returns true if a round of this verb begins a validity.
bool gives_validity(Verb verb) {
    return acquires(verb) || verb == Verb::compare_and_expire;
}

}  // namespace

SimNodes::SimNodes(Process& process, Network& network, const std::vector<std::unique_ptr<SimNode>>& nodes,
                   Rng rng, NodesOptions options, Checker& checker)
    : Nodes(names_of(nodes), options.node_timeout, options.quarantine),
      process_(process),
      checker_(checker),
      nodes_(nodes),
      in_turn_(options.round == Round::sequential),
      network_(process, network, nodes, rng,
               [this](const Channel& channel, const Words& words) { sent(channel, words); }),
      group_(configs_of(nodes.size(), options), options, network_) {
    network_.on_endless_wait(
        [this] { checker_.violated(Rule::ends_in_time, process_.name() + " waits for ever"); });
}

void SimNodes::ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies) {
    process_.check_alive();
    for (const auto& [command, to] : requests) {
        if (gives_validity(command.verb)) asked_[std::string{command.owner}].began = process_.now();
        if (command.verb == Verb::compare_and_delete) unreached_.try_emplace(std::string{command.owner});
        if (acquires(command.verb)) owners_.emplace_back(process_.current(), command.owner);
    }
    const Stopwatch stopwatch{process_};
    process_.fault_point();
    group_.ask(requests, limits, tallies);
    check_duration(requests, limits, stopwatch);
    for (std::size_t i = 0; i < requests.size(); ++i)
        if (requests[i].command.verb == Verb::compare_and_delete)
            note_unreached(requests[i], tallies[i]);
        else if (gives_validity(requests[i].command.verb) || requests[i].command.verb == Verb::raise_count)
            asked_[std::string{requests[i].command.owner}].ended = process_.now();
}

/// Checks the duration of a round: one node_timeout for each node if the nodes are asked in turn, otherwise
/// one for all.
void SimNodes::check_duration(std::span<const Request> requests, const RoundLimits& limits,
                              const Stopwatch& stopwatch) {
    const auto verb = requests.front().command.verb;
    const auto in_turn = acquires(verb) && in_turn_ ? size() : 1;
    const auto rounds = verb == Verb::compare_and_expire ? 1 : requests.size();
    auto longest = nanoseconds{node_timeout()} * static_cast<int>(in_turn * rounds);
    if (limits.deadline != Clock::never())
        longest = std::min(longest, std::max<nanoseconds>(limits.deadline - stopwatch.began(), 0ns));
    checker_.expect(stopwatch.within(longest), Rule::ends_in_time, process_.name() + " in a round");
}

/// Records the nodes that a release did not reach. A round does not wait for a node that is not trusted.
/// While the next connection to such a node is still being made, the release has no connection to use. A
/// round also waits for no connection longer than node_timeout.
void SimNodes::note_unreached(const Request& release, const Tally& tally) {
    auto& unreached = unreached_[std::string{release.command.owner}];
    for (std::size_t node = 0; node < size(); ++node)
        if (release.to[node])
            unreached[node] =
                !tally[node].sent && (tally[node].cause == Errc::timed_out || has_new_connection(node));
}

bool SimNodes::has_new_connection(std::size_t node) const {
    return network_.any_channel(
        [&](const Channel& channel) { return &channel.node() == nodes_[node].get() && channel.is_new(); });
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
    std::erase_if(owners_, [&](auto& entry) {
        if (entry.first != process_.current()) return false;
        mine.push_back(std::move(entry.second));
        return true;
    });
    return mine;
}

void SimNodes::sent(const Channel& channel, const Words& words) {
    const auto owner = owner_of(words);
    if (owner.empty()) return;
    const auto is_overtaken = [&](const Channel& other) {
        return &other != &channel && &other.node() == &channel.node() && other.is_overtaken_by(words);
    };
    if (network_.any_channel(is_overtaken))
        checker_.violated(Rule::order_is_kept,
                          process_.name() + ": " + text(words) + " to " + channel.node().name());
    if (extends(words) && released_.contains(owner))
        checker_.violated(Rule::over_with_release, process_.name() + ": " + text(words));
}

}  // namespace redlock::sim
