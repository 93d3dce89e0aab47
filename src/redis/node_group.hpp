// A group of connections to the N Redis masters, over any Network, and the rounds that use them. A RedisNodes
// has one group for each of its lanes (lane.hpp) and for each event loop. There is one Node object for each
// master, or several if a node is a Redis Cluster: one for each of its servers that the group has used. A
// round uses one of them for each node.
#pragma once

#include <redlock/detail/not_copied.hpp>
#include <redlock/nodes.hpp>
#include <redlock/redis_nodes.hpp>

#include "../os/network.hpp"
#include "../round/cluster_map.hpp"
#include "listener.hpp"
#include "node.hpp"
#include "redis_cluster.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace redlock {

class NodeGroup : detail::NotCopied {
public:
    /// Whether commands of several rounds are written together.
    enum class Writes : bool { at_once, collected };

    /// Does no I/O. `configs` must come from for_one_process() (node_config.hpp). `network` must outlive the
    /// group.
    NodeGroup(const std::vector<NodeConfig>& configs, NodesOptions options, Network& network,
              Writes writes = Writes::collected);
    /// Sends the unsent releases. Blocks for one node_timeout at most.
    ~NodeGroup();

    /// Returns one Node for each node. That of a Cluster is its first seed.
    std::span<Node* const> nodes() const noexcept { return nodes_; }
    /// Returns one pool for each node. That of a Cluster is for its first seed.
    ListenerPools listeners() const noexcept { return listeners_; }
    /// Returns the nodes that are Redis Clusters, for RequestsByServer.
    const RedisClusters& clusters() const noexcept { return clusters_; }
    const NodesOptions& options() const noexcept { return options_; }
    Network& network() const noexcept { return network_; }

    // ---- For a round

    /// If a node is a Redis Cluster, breaks the connections to the servers that were replaced, and makes a
    /// Node for each server that has to get a kept release.
    void prepare_clusters(Clock::time_point now);
    /// The Node that a round uses, and how.
    struct Route {
        Node* node = nullptr;
        bool asking = false;  ///< the command must be sent behind ASKING
    };
    /// Returns the Node for a command to this node. If the node is a Cluster, this is the server of the hash
    /// slot of the command, with two exceptions. A command follows its SET to the server on which the SET is
    /// unanswered. If the server of the hash slot is not known, or has failed, the command goes to another
    /// server, which then also has to name the servers (Connection::fetch_servers()).
    Route route(std::size_t index, const Command& command, Clock::time_point now) {
        return nodes_[index]->cluster() ? route_in_cluster(index, command, now) : Route{nodes_[index]};
    }
    /// Returns the Node of the server that the Cluster has for the hash slot of the command, or null if it is
    /// not known. The node must be a Cluster.
    Node* served_by(std::size_t index, const Command& command);
    /// Returns the Node of the server to which `from` has redirected a command, or null if there are too
    /// many.
    Node* redirected(const Node& from, const detail::Redirection& to);

    // ---- For an event loop or a leading thread (Lane), whose rounds share connections. In each pass, it
    // continues with its rounds, calls write_collected(), waits for the poll entries, and calls take_ready().

    /// See Node::write_collected().
    Clock::time_point write_collected(Clock::time_point now);
    /// See Node::write_all().
    Rest write_all(Clock::time_point now);
    /// See Node::check_silence().
    bool check_silence(Clock::time_point now);
    /// See Node::give_up_unwritten().
    void give_up_unwritten(Clock::time_point now);
    /// Notifies the observer, if there is one, of a round that has ended, or that its caller has left.
    void notify(std::span<const Request> requests, std::span<const Tally> tallies,
                std::chrono::nanoseconds took) const;
    /// Adds what the rounds that are over have left behind on the connections.
    void add_late_replies(detail::LateReplies& late) const;
    /// Returns for how many nodes Node::lacks_connection() is true. Clusters do not count.
    std::size_t count_unconnected() const noexcept;
    /// See Node::append_poll_entries().
    void append_poll_entries(std::vector<PollEntry>& entries, Node::Polled polled = Node::Polled::all) const;
    /// Reads from the connections whose entries are ready, and wakes the rounds that can continue.
    void take_ready(std::span<const PollEntry> entries, Clock::time_point now);

    /// See Nodes::waiter().
    std::unique_ptr<Waiter> waiter();

    std::chrono::milliseconds node_timeout() const noexcept { return options_.node_timeout; }
    /// Returns how long a round takes at most. If it awaits no answers, it waits for connections that are
    /// being made.
    Clock::duration longest_round(detail::KeyEffect effect, const RoundLimits& limits) const noexcept {
        if (!limits.awaits_answers) return node_timeout() / 8;
        const bool one_by_one = effect == detail::KeyEffect::acquires && options_.round == Round::sequential;
        return node_timeout() * (one_by_one ? static_cast<int>(nodes().size()) : 1);
    }
    /// Sends the unsent releases of all groups, and waits for the replies to all releases. The network of the
    /// first group must be able to wait for the connections of all. Blocks until `deadline` at most. Requires
    /// that no round and no background task is under way. Returns true if nothing is left to do. See
    /// Node::append_unfinished() for `sends_kept`.
    static bool send_the_rest(std::span<NodeGroup* const> groups, Clock::time_point deadline,
                              bool sends_kept);
    /// Leaves the releases that are not answered to the other groups of the process, and closes all
    /// connections. No round may be under way. The destructor then sends nothing.
    void give_up() noexcept;
    /// Sends the rest within one node_timeout (docs/architecture.md, The end of a RedisNodes). The
    /// destructors of the groups then send nothing.
    static void close(std::span<NodeGroup* const> groups) noexcept;

private:
    template <class Function>
    void for_each_node(Function function);
    void find_debtors();
    Route route_in_cluster(std::size_t index, const Command& command, Clock::time_point now);
    /// Adds a Node to all_.
    Node& add_node(NodeConfig config, std::shared_ptr<RedisCluster> cluster, std::size_t index);
    Node& node_of(std::size_t index, const ClusterServer& server);

    const NodesOptions options_;
    Network& network_;
    const Writes writes_;
    RedisClusters clusters_{};
    std::vector<std::unique_ptr<Node>> all_{};  // PollEntry::node is an index into it
    // Constant after construction.
    std::vector<Node*> nodes_{};
    std::vector<std::unique_ptr<ListenerPool>> listeners_{};

    std::size_t next_server_ = 0;  // the one that is tried if all have failed
    bool closed_ = false;
};

}  // namespace redlock
