// Real nodes over a network in memory, and the rounds that a test requests.
#pragma once

#include "memory_network.hpp"

#include "redis/lanes.hpp"

#include <redlock/observer.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace redlock::test {

/// The calls to an observer, one for each line.
class NodeLog final : public Observer {
public:
    std::vector<std::string> lines;

    void round_ended(const Command& command, const Tally& tally, std::chrono::nanoseconds) noexcept override {
        lines.push_back("round of " + std::string{command.owner} + ": " + std::to_string(tally.granted()) +
                        " granted");
    }
    void connecting(std::string_view node) noexcept override { add("connecting", node); }
    void disconnected(std::string_view node, std::error_code cause,
                      std::string_view detail) noexcept override {
        add("disconnected", node, cause ? cause.message() + ", " + std::string{detail} : "");
    }
    void backing_off(std::string_view node, std::error_code cause, std::string_view,
                     std::chrono::nanoseconds pause) noexcept override {
        add("backing off", node, cause.message() + ", " + std::to_string(pause / 1ms) + " ms");
    }

private:
    void add(std::string_view event, std::string_view node, const std::string& why = {}) {
        lines.push_back(std::string{node} + " " + std::string{event} + (why.empty() ? "" : ": ") + why);
    }
};

/// The lanes of threads. Each round that is made while no other is under way has the same lane.
class LanesOfATest final : public Lanes {
public:
    LanesOfATest(const std::vector<NodeConfig>& configs, const NodesOptions& options, Network& network)
        : Lanes(for_one_process(configs), options, network, 64) {}
};

struct RoundDriverWorld {
    using Configs = std::vector<NodeConfig>;

    /// `change` may change the configurations of the nodes.
    explicit RoundDriverWorld(
        std::size_t nodes, NodesOptions options = {},
        const std::function<void(Configs&)>& change = [](auto&) {})
        : network{nodes}, names(names_of(nodes)) {
        options.observer = &log;
        auto configs = network.configs(options.quarantine);
        change(configs);
        group = std::make_unique<LanesOfATest>(configs, options, network);
    }

    Request request(Verb verb, std::string_view owner, std::chrono::milliseconds ttl = 10s) const {
        return {.command = {.verb = verb, .resources = resource, .owner = owner, .ttl = ttl}};
    }
    std::vector<Tally> ask(const std::vector<Request>& requests, const RoundLimits& limits = {}) {
        std::vector<Tally> tallies(requests.size(), Tally{names});
        group->ask(requests, limits, tallies);
        return tallies;
    }
    Tally acquire(std::string_view owner) { return ask({request(Verb::set_if_absent, owner)}).front(); }
    Tally extend(std::string_view owner) { return ask({request(Verb::compare_and_expire, owner)}).front(); }
    Tally release(std::string_view owner) { return ask({request(Verb::compare_and_delete, owner)}).front(); }

    /// Returns the value of the key on a node, or an empty text if there is none.
    std::string holder(std::size_t node) { return network.text_at(node, resource.front()); }

    MemoryNetwork network;
    const std::vector<std::string> resource{"r"};
    const Tally::Names names;
    NodeLog log{};
    std::unique_ptr<LanesOfATest> group{};
};

}  // namespace redlock::test
