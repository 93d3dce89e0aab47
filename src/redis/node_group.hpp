// The N Redis masters in one lane of a RedisNodes: the connections, and the rounds that use them, over any
// Network.
#pragma once

#include <redlock/detail/not_copied.hpp>
#include <redlock/nodes.hpp>
#include <redlock/redis_nodes.hpp>

#include "../os/network.hpp"
#include "node.hpp"
#include "node_table.hpp"

#include <chrono>
#include <memory>
#include <span>
#include <vector>

namespace redlock {

class RoundDriver;

class NodeGroup : detail::NotCopied {
public:
    /// Whether commands of several rounds are written together.
    enum class Writes : bool { at_once, collected };

    /// Does no I/O. `configs` must come from for_one_process(). `network` must outlive the group.
    NodeGroup(const std::vector<NodeConfig>& configs, const NodesOptions& options, Network& network,
              Writes writes = Writes::collected);
    /// Sends the unsent releases. Blocks for one node_timeout at most.
    ~NodeGroup();

    // ---- For an event loop or a leading thread (Lane), whose rounds share connections. In each turn, it
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
    /// See Node::append_poll_entries().
    void append_poll_entries(std::vector<PollEntry>& entries, Node::Polled polled = Node::Polled::all) const;
    /// Reads from the connections whose entries are ready, and wakes the rounds that can continue.
    void take_ready(std::span<const PollEntry> entries, Clock::time_point now);

    /// See Nodes::waiter().
    std::unique_ptr<Waiter> waiter();

    /// See NodeTable::nodes().
    std::span<Node* const> nodes() const noexcept { return table_.nodes(); }
    /// Returns the nodes that are Redis Clusters, for RequestsByServer.
    const RedisClusters& clusters() const noexcept { return table_.clusters(); }
    std::chrono::milliseconds node_timeout() const noexcept { return options_.node_timeout; }
    /// Returns how long a round takes at most. If it awaits no answers, it waits for connections that are
    /// being made.
    Clock::duration longest_round(detail::KeyEffect effect, const RoundLimits& limits) const noexcept {
        if (!limits.awaits_answers) return node_timeout() / 8;
        const bool in_turn = effect == detail::KeyEffect::acquires && options_.round == Round::sequential;
        return node_timeout() * (in_turn ? static_cast<int>(nodes().size()) : 1);
    }
    /// Sends the unsent releases of all groups, and waits for the replies to all releases. The network of the
    /// first group must be able to wait for the connections of all. Blocks until `deadline` at most. Requires
    /// that no round and no background task is under way. Returns true if nothing is left to do. See
    /// Node::append_unfinished() for `repeats`.
    static bool send_the_rest(std::span<NodeGroup* const> groups, Clock::time_point deadline, bool repeats);
    /// Leaves the releases that are not answered to the other groups of the process, and closes all
    /// connections. No round may be under way. The destructor then sends nothing.
    void give_up() noexcept;
    /// Sends the rest within one node_timeout (docs/architecture.md, The end of a RedisNodes). The
    /// destructors of the groups then send nothing.
    static void close(std::span<NodeGroup* const> groups) noexcept;

private:
    friend RoundDriver;

    const NodesOptions options_;
    Network& network_;
    NodeTable table_;
    bool closed_ = false;
};

}  // namespace redlock
