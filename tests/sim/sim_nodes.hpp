// The nodes of one simulated process: the library's own engine (NodeGroup) over a simulated network. It
// records all requests for the checker.
#pragma once

#include "checker.hpp"
#include "process.hpp"
#include "process_network.hpp"
#include "sim_node.hpp"

#include <redlock/nodes.hpp>
#include <redlock/redis_nodes.hpp>

#include "loop/loop_group.hpp"
#include "redis/lanes.hpp"

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::sim {

class SimNodes final : public Nodes {
public:
    SimNodes(Process& process, Network& network, const std::vector<std::unique_ptr<SimNode>>& nodes, Rng rng,
             NodesOptions options, std::size_t processors, Checker& checker);

    void ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies) override;
    std::unique_ptr<Waiter> waiter() override { return group_.waiter(); }
    std::shared_ptr<loop::Rounds> rounds_in(EventLoop& loop,
                                            const std::shared_ptr<loop::Scheduler>& scheduler) override;
    bool has_cluster() const noexcept override { return nodes_.front()->in_cluster(); }
    Clock* required_clock() const noexcept override { return &network_.clock(); }

    /// Returns true if rounds share connections, in an event loop or by threads.
    bool shares_connections() const noexcept { return shares_connections_; }
    bool threads_share() const noexcept { return options_.share_connections; }
    /// Returns how long a round to all nodes may take. If threads share connections, a round may wait for the
    /// leading thread first.
    nanoseconds longest_round() const noexcept { return node_timeout() + to_be_collected_; }
    nanoseconds to_be_collected() const noexcept { return to_be_collected_; }

    Link& link(std::size_t node) { return network_.link(node); }
    ProcessNetwork& network() noexcept { return network_; }

    /// Sends the rest of the releases, also those of loops that were shut down, as the destructor of a
    /// RedisNodes does.
    void close() noexcept;
    /// Closes all connections when the process has crashed.
    void abandon() { network_.abandon(); }

    // ---- The recorded requests, for the checker.

    /// When a round that began a validity started and ended.
    struct Asked {
        Clock::time_point began{};
        Clock::time_point ended{};
    };
    /// Returns the round in which `owner` acquired. Rounds that raise the count move its end.
    Asked acquisition(std::string_view owner) const { return find(acquisitions_, owner); }
    /// Returns the last round that extended the lock of `owner`, or its acquisition. In an event loop, the
    /// watchdog may extend a lock before the completion of its acquisition is called.
    Asked last_asked(std::string_view owner) const { return find(last_asked_, owner); }

    /// Returns the owners of all attempts so far.
    std::vector<std::string> owners() const;

    /// Records the owners of all attempts of the lock with these resources from now on. Returns the number of
    /// the record. Another lock may have the same resources, but not at the same address.
    std::size_t record_owners(Resources resources);
    /// Returns the owners in this record, and ends it.
    std::vector<std::string> take_owners(std::size_t record);

    /// Returns true if a release of `owner` has begun.
    bool releasing(std::string_view owner) const { return unreached_.contains(owner); }

    /// Returns the nodes that a release of `owner` did not reach, because no connection was ready in time.
    NodeSet unreached(std::string_view owner) const;

    /// Records that the lock of `owner` was released. From now on no command may extend its keys (rule B7).
    void released(std::string owner) { released_.insert(std::move(owner)); }

private:
    class LoopRounds;
    using AskedByOwner = std::map<std::string, Asked, std::less<>>;

    static Asked find(const AskedByOwner& asked, std::string_view owner);

    /// Record the begin and the end of a round.
    Stopwatch begins(std::span<const Request> requests);
    void ends(std::span<const Request> requests, std::span<const Tally> tallies);

    void sent(const Channel& channel, const Words& words);
    void check_duration(std::span<const Request> requests, const RoundLimits& limits,
                        const Stopwatch& stopwatch);
    void note_unreached(const Request& release, const Tally& tally);
    bool has_new_connection(std::size_t node) const;

    Process& process_;
    Checker& checker_;
    const std::vector<std::unique_ptr<SimNode>>& nodes_;
    const NodesOptions options_;
    const std::vector<NodeConfig> configs_;
    mutable ProcessNetwork network_;
    Lanes group_;
    bool shares_connections_;
    const nanoseconds to_be_collected_;
    const std::shared_ptr<loop::FormerGroups> former_ = std::make_shared<loop::FormerGroups>();
    AskedByOwner acquisitions_{};
    AskedByOwner last_asked_{};
    std::map<std::string, NodeSet, std::less<>> unreached_{};
    std::map<const std::string*, std::size_t> records_{};  // by the address of the resources
    std::size_t last_record_ = 0;
    std::vector<std::pair<std::size_t, std::string>> owners_{};  // with the number of their record
    std::set<std::string, std::less<>> released_{};
    std::set<std::string, std::less<>> repeated_{};  // owners with a second release in an event loop
};

}  // namespace redlock::sim
