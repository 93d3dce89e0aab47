// Real nodes over a network in memory, and rounds that share connections.
#pragma once

#include "memory_network.hpp"
#include "support/round_loop.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test {

using support::SharedRound;

/// The nodes, and the rounds that a test begins.
class SharedWorld : public testing::Test {
protected:
    static constexpr std::size_t size = 3;

    explicit SharedWorld(std::vector<NodeConfig> configs = {}, Observer* observer = nullptr,
                         NodeGroup::Writes writes = NodeGroup::Writes::collected)
        : group{configs.empty() ? network.configs() : for_one_process(std::move(configs)),
                {.round = Round::all_at_once, .observer = observer},
                network,
                writes} {}

    SharedRound& begin(Verb verb, std::string_view resource, std::string_view owner, RoundLimits limits = {},
                       std::chrono::milliseconds ttl = 10s) {
        const std::vector<std::string> resources{std::string{resource}};
        return begin({.command = {.verb = verb, .resources = resources, .owner = owner, .ttl = ttl}},
                     std::move(limits));
    }
    SharedRound& begin(const Request& request, RoundLimits limits = {}) {
        rounds.push_back(std::make_unique<SharedRound>(group, names, request, std::move(limits)));
        loop.begin(*rounds.back());
        return *rounds.back();
    }
    SharedRound& acquire(std::string_view resource, std::string_view owner) {
        return begin(Verb::set_if_absent, resource, owner);
    }
    SharedRound& release(std::string_view resource, std::string_view owner) {
        return begin(Verb::compare_and_delete, resource, owner);
    }

    void turn(Clock::time_point latest) {
        loop.turn([this](auto entries, auto until) { network.wait(entries, network.clock().now(), until); },
                  latest);
    }
    /// Makes turns until all rounds are over.
    void run() {
        while (std::ranges::any_of(rounds, [](const auto& it) { return !it->over(); }))
            turn(network.clock().now() + 1s);
    }
    void run_for(Clock::duration span) {
        for (const auto end = network.clock().now() + span; network.clock().now() < end;) turn(end);
    }
    /// Makes turns until all rounds are over, and until the late replies have come.
    void settle() {
        run();
        run_for(5ms);
    }
    /// Ends the back-off of a silent server, and lets a round reach it on a new connection. The connection on
    /// which it is silent drains.
    void reconnect(MemoryServer& server) {
        server.paused = false;  // for new connections
        network.pass(2s);
        acquire("a probe", "B");
        settle();
    }
    /// Acquires and releases once, so that the connections exist and know the scripts.
    void connect() {
        acquire("first", "first");
        run();
        release("first", "first");
        run();
        for (std::size_t node = 0; node < size; ++node) network.server(node).forget_log();
    }
    std::string value(std::size_t node, const std::string& resource) {
        return network.text_at(node, resource);
    }

    MemoryNetwork network{size};
    Tally::Names names = names_of(size);
    NodeGroup group{network.configs(), {.round = Round::all_at_once}, network};
    support::RoundLoop loop{group, network.clock()};
    std::deque<std::unique_ptr<SharedRound>> rounds{};
};

}  // namespace redlock::test
