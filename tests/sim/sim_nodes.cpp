#include "sim_nodes.hpp"

#include "batch_trip.hpp"
#include "round_trip.hpp"

#include <algorithm>
#include <utility>

namespace redlock::sim {
namespace {

std::vector<std::string> names_of(const std::vector<std::unique_ptr<SimNode>>& nodes) {
    std::vector<std::string> names;
    for (const auto& node : nodes) names.push_back(node->name());
    return names;
}

}  // namespace

SimNodes::SimNodes(Process& process, Network& network, const std::vector<std::unique_ptr<SimNode>>& nodes,
                   Dice dice, SimNodesOptions options)
    : Nodes(names_of(nodes), options.node_timeout, options.quarantine),
      process_(process),
      network_(network),
      dice_(dice),
      options_(options) {
    for (const auto& node : nodes) sites_.push_back({.node = node.get()});
}

void SimNodes::ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies) {
    process_.check_alive();
    for (const auto& [command, to] : requests) {
        const bool continues = command.verb == Verb::raise_count || command.verb == Verb::compare_and_delete;
        auto& asked = asked_[std::string{command.owner}];
        if (!continues) asked.began = process_.now();
        if (acquires(command.verb)) claims_.emplace_back(process_.current(), command.owner);
    }
    process_.seam();
    if (requests.size() == 1 && !process_.in_background())
        RoundTrip{*this, requests.front(), limits, tallies.front()}.run();
    else
        BatchTrip{*this, requests, limits.deadline, tallies}.run();
    for (const auto& [command, to] : requests)
        if (command.verb != Verb::compare_and_delete)
            asked_[std::string{command.owner}].ended = process_.now();
}

SimNodes::Asked SimNodes::asked(std::string_view owner) const {
    const auto it = asked_.find(owner);
    return it == asked_.end() ? Asked{} : it->second;
}

std::vector<std::string> SimNodes::take_claims() {
    std::vector<std::string> mine;
    std::erase_if(claims_, [&](auto& claim) {
        if (claim.first != process_.current()) return false;
        mine.push_back(std::move(claim.second));
        return true;
    });
    return mine;
}

void SimNodes::abandon() {
    for (auto& site : sites_)
        for (auto* const lines : {&site.idle, &site.owing})
            for (const auto& line : *lines) line->abandon();
}

// ---- Connections between the rounds

/// What has paid its debts is idle again; what broke is thrown away.
void SimNodes::tidy(Site& site) {
    std::erase_if(site.owing, [&](Line& line) {
        if (line->broken()) return true;
        if (line->owed() > 0) return false;
        site.idle.push_back(std::move(line));
        return true;
    });
    std::erase_if(site.idle, [](const Line& line) { return line->broken(); });
}

SimNodes::Line SimNodes::connect(Site& site) {
    auto line = std::make_shared<Connection>(process_, network_, site.link, *site.node);
    line->open();
    return line;
}

/// A release goes behind the SET it belongs to, while that connection lives (rule B5).
SimNodes::Line SimNodes::line_for(Site& site, const Letter& letter) {
    tidy(site);
    const auto carrier =
        std::ranges::find_if(site.owing, [&](const Line& line) { return line->carries(letter.owner()); });
    const auto take = [](std::vector<Line>& lines, auto it) {
        auto line = std::move(*it);
        lines.erase(it);
        return line;
    };
    if (carrier != site.owing.end()) return take(site.owing, carrier);
    if (!site.idle.empty()) return take(site.idle, site.idle.end() - 1);
    return connect(site);
}

void SimNodes::give_back(Site& site, Line line) {
    line->listen(nullptr);
    if (line->broken()) return;
    (line->owed() > 0 ? site.owing : site.idle).push_back(std::move(line));
}

void SimNodes::send(Connection& line, const std::shared_ptr<const Letter>& letter) {
    if (letter->extends() && over_.contains(letter->owner()) && on_late_extension_)
        on_late_extension_(letter->owner());
    line.send(letter);
}

void SimNodes::failed(Site& site) {
    if (!options_.backs_off) return;
    site.suspected = true;
    site.failures = std::min(site.failures + 1, 7);
    site.next_probe = process_.now() + dice_.between(5ms, 10ms) * (1 << (site.failures - 1));
}

}  // namespace redlock::sim
