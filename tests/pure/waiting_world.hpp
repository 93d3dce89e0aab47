// Clients that share servers in memory, in virtual time, and wait for one another's locks.
//
//     WaitingWorld world;
//     auto& alice = world.client();                        // with nodes of her own, as another process has
//     ...
//     world.after(100ms, [&] { (void)bobs.release(); });   // while alice waits
#pragma once

#include "memory_network.hpp"
#include "support/nodes_over_lanes.hpp"

#include "wire/command_encoding.hpp"

#include <redlock/lock.hpp>
#include <redlock/nodes.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::test {

/// More processors than a test has rounds, so that no round shares its connections.
inline constexpr std::size_t many_processors = 1'000'000;

/// The nodes as one process has them. Without processors, all rounds share connections.
class MemoryNodes final : public support::NodesOverLanes {
public:
    MemoryNodes(MemoryNetwork& network, std::size_t size, const NodesOptions& options,
                std::size_t processors = many_processors)
        : NodesOverLanes(*names_of(size), network.configs(options.quarantine), options, network, processors) {
    }
};

struct WaitingWorld {
    using Words = support::CommandReader::Words;
    using Executed = MemoryServer::Executed;

    explicit WaitingWorld(std::size_t nodes = 3, NodesOptions options = {.node_timeout = 50ms},
                          std::size_t processors = many_processors)
        : network{nodes}, size(nodes), options_(options), processors_(processors) {
        network.draw_from(entropy);
    }

    MemoryNodes& client() {
        return *clients_.emplace_back(std::make_unique<MemoryNodes>(network, size, options_, processors_));
    }
    /// Destroys all clients, also `alice`. The servers go on meanwhile.
    void destroy_clients() { clients_.clear(); }
    Lock lock(MemoryNodes& nodes, Retry retry = {.delay = 100ms}, LockOptions options = {}) {
        options.retry = retry;
        options.fair = true;
        return {nodes, "r", options, network.clock(), entropy};
    }

    Clock::time_point now() { return network.clock().now(); }
    void after(Clock::duration span, std::function<void()> event) {
        network.clock().after(span, std::move(event));
    }

    /// Of the test itself, at once.
    std::string ask(std::size_t node, const Words& words) {
        auto& server = network.server(node);
        const auto instant = now();
        server.redis->on_publish(
            [&](auto channel, auto message) { return server.publish(channel, message, instant); });
        const auto wall = std::chrono::duration_cast<support::RedisModel::Time>(instant.time_since_epoch());
        return text_of(server.redis->execute(words, wall));
    }
    void hold(std::size_t node, const std::string& owner) { ask(node, {"SET", "r", owner}); }
    std::string holder(std::size_t node) { return ask(node, {"GET", "r"}); }
    /// A fair client's release reaches this node alone.
    void release_at(std::size_t node, const std::string& owner) {
        ask(node, {"EVAL", std::string{detail::scripts::release.text}, "2", "r", "{r}:queue", owner, "1", "",
                   "", "100", "1"});
    }
    std::vector<std::string> queued(std::size_t node) {
        std::vector<std::string> tickets;
        if (const auto* const set = network.find(node, "{r}:queue"))
            for (const auto& [score, ticket] : set->in_order()) tickets.emplace_back(ticket);
        return tickets;
    }

    /// What a node was asked, without handshakes.
    std::vector<std::string> verbs(std::size_t node) {
        std::vector<std::string> result;
        for (const auto& it : network.server(node).executed())
            if (it.words.front() != "PING" && it.words.front() != "INFO") result.push_back(verb_of(it.words));
        return result;
    }
    std::vector<Executed> all(std::size_t node, std::string_view verb) {
        std::vector<Executed> result;
        for (const auto& it : network.server(node).executed())
            if (verb_of(it.words) == verb) result.push_back(it);
        return result;
    }
    /// That argument of each of these commands.
    std::vector<std::string> arguments(std::size_t node, std::string_view verb, std::size_t number) {
        std::vector<std::string> result;
        for (const auto& it : all(node, verb)) result.emplace_back(argument(it.words, number));
        return result;
    }
    void forget_log() {
        for (std::size_t node = 0; node < size; ++node) network.server(node).forget_log();
    }
    /// From now on commands of these kinds are refused, as to a user that may not.
    void forbid(std::size_t node, std::initializer_list<const char*> forbidden) {
        for (const auto& kind : forbidden)
            network.server(node).answers[kind] = "-NOPERM No permissions to access a key\r\n";
    }

    SeededEntropy entropy{1};
    MemoryNetwork network;
    const std::size_t size;

private:
    NodesOptions options_;
    std::size_t processors_;
    std::vector<std::unique_ptr<MemoryNodes>> clients_{};
};

/// Bob holds what Alice wants.
struct Waiting : testing::Test, WaitingWorld {
    explicit Waiting(std::size_t nodes = 3, NodesOptions options = {.node_timeout = 50ms})
        : WaitingWorld(nodes, options) {}

    /// And lets go of it after a while.
    void bob_holds_for(Clock::duration span, LockOptions options = {}) {
        bobs.emplace(lock(bob, {.delay = 100ms}, options));
        ASSERT_TRUE(bobs->acquire());
        forget_log();
        after(span, [this] { (void)bobs->release(); });
    }
    /// Others hold it everywhere, without an end.
    void others_hold() {
        for (std::size_t node = 0; node < size; ++node) hold(node, "other");
    }
    /// Between the questions of whoever waits.
    std::vector<milliseconds> intervals(std::size_t node = 0) {
        std::vector<milliseconds> result;
        const auto questions = all(node, "enter");
        for (std::size_t i = 1; i < questions.size(); ++i)
            result.push_back(
                std::chrono::duration_cast<milliseconds>(questions[i].when - questions[i - 1].when));
        return result;
    }
    Clock::duration time_of(const std::function<void()>& what) { return time_taken(network, what); }

    MemoryNodes& alice = client();
    MemoryNodes& bob = client();
    std::optional<Lock> bobs{};
};

}  // namespace redlock::test
