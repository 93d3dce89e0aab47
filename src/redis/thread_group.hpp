// The nodes of a RedisNodes as the threads of a program use them: rounds with connections of their own, and
// rounds that share connections. sharing_choice.hpp decides which kind of connections a round uses.
#pragma once

#include <redlock/nodes.hpp>
#include <redlock/redis_nodes.hpp>

#include "../os/network.hpp"
#include "node_group.hpp"
#include "shared_rounds.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace redlock {

class ThreadGroup {
public:
    /// Does no I/O. `network` must outlive the group. If more rounds than `processors` are under way, rounds
    /// that begin then share connections.
    ThreadGroup(const std::vector<NodeConfig>& configs, const NodesOptions& options, Network& network,
                std::size_t processors);
    ~ThreadGroup() { close({}); }
    ThreadGroup(const ThreadGroup&) = delete;
    ThreadGroup& operator=(const ThreadGroup&) = delete;

    /// Sends the unsent releases of this object and of `others`, as NodeGroup::close() does. Blocks for one
    /// node_timeout at most. After the first call, further calls and the destructor do nothing.
    void close(std::span<NodeGroup* const> others) noexcept;

    /// See Nodes::ask().
    void ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies);
    /// See Nodes::waiter().
    std::unique_ptr<Waiter> waiter() { return own_.waiter(); }

private:
    class UnderWay;

    bool shares(std::span<const Request> requests, std::size_t rounds);
    bool may_overtake(std::span<const Request> renewals) const noexcept;

    bool closed_ = false;
    const bool may_share_;
    const std::size_t processors_;
    NodeGroup own_;
    SharedRounds shared_;
    std::atomic<std::size_t> rounds_{0};  // rounds that are under way
    std::atomic<unsigned> calm_{0};       // see detail::next_calm()
};

}  // namespace redlock
