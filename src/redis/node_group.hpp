// The nodes behind one RedisNodes (the public class for N Redis masters), over any Network. A Network is the
// interface to sockets, time and randomness. RedisNodes uses the real one, OsNetwork, and the simulation uses
// its own.
//
// A release is *unsent* if its connection is not established yet, or if the socket has accepted only a part
// of it. A round does not wait for that. A background task sends such releases.
#pragma once

#include <redlock/detail/duplicate_server_check.hpp>
#include <redlock/nodes.hpp>
#include <redlock/redis_nodes.hpp>

#include "os/network.hpp"
#include "redis/connection.hpp"
#include "redis/node.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace redlock {

class NodeGroup {
public:
    /// Does no I/O. `network` must outlive the group.
    NodeGroup(const std::vector<NodeConfig>& configs, const NodesOptions& options, Network& network);
    /// Sends the unsent releases. Blocks for one node_timeout at most.
    ~NodeGroup();
    NodeGroup(const NodeGroup&) = delete;
    NodeGroup& operator=(const NodeGroup&) = delete;

    /// See Nodes::ask().
    void ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies);

    /// See Nodes::waiter().
    std::unique_ptr<Waiter> waiter();

private:
    void send_the_rest();
    void send_in_background() noexcept;
    Clock::time_point send_unsent(Clock::time_point now);
    void notify(std::span<const Request> requests, std::span<const Tally> tallies,
                std::chrono::nanoseconds took) const;
    void notify(std::string_view node, const NodeEvent& event) const;

    const NodesOptions options_;
    Network& network_;
    detail::DuplicateServerCheck servers_;
    std::vector<std::unique_ptr<Node>> nodes_{};
    std::atomic<Clock::time_point> unsent_since_{};  // when the last unsent release was left behind
    std::unique_ptr<BackgroundTask> sender_{};
};

}  // namespace redlock
