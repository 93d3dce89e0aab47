// The lanes of a RedisNodes, which the threads of a program use (lane.hpp). lane_choice.hpp decides which
// lane a round uses.
#pragma once

#include <redlock/detail/not_copied.hpp>
#include <redlock/nodes.hpp>
#include <redlock/redis_nodes.hpp>

#include "../os/network.hpp"
#include "lane.hpp"
#include "node_group.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace redlock {

class Lanes : detail::NotCopied {
public:
    /// Does no I/O. The lanes share the Servers of `configs` (node_config.hpp). `network` must outlive the
    /// object. If more rounds than `processors` are under way, rounds that begin then share a lane.
    Lanes(std::vector<NodeConfig> configs, NodesOptions options, Network& network, std::size_t processors);
    ~Lanes() { close({}); }

    /// Closes the groups of this object and `others` by NodeGroup::close(). Further calls and the destructor
    /// do nothing.
    void close(std::span<NodeGroup* const> others) noexcept;

    /// See Nodes::ask().
    void ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies);
    /// See Nodes::waiter().
    std::unique_ptr<Waiter> waiter() { return shared_.group().waiter(); }

private:
    struct CountedLane : Lane {
        using Lane::Lane;
        std::size_t users = 0;  // rounds and read_late() on it; guarded by Lanes::mutex_
    };
    struct Leave {
        Lanes* lanes = nullptr;
        void operator()(CountedLane* lane) const noexcept { lanes->leave(*lane); }
    };
    /// A lane that is in use.
    using Use = std::unique_ptr<CountedLane, Leave>;
    struct EndRound {
        void operator()(std::atomic<std::size_t>* rounds) const noexcept { --*rounds; }
    };
    using Others = std::vector<std::unique_ptr<CountedLane>>;

    void make_round(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies);

    Use choose(std::span<const Request> requests, std::size_t rounds);
    template <class Test>
    CountedLane* find_locked(Test test) noexcept;
    CountedLane* find_to_follow_locked(const Command& command) noexcept;
    std::vector<Request> without_overtaking(std::span<const Request> requests, const CountedLane& chosen,
                                            std::span<Tally> tallies);
    Others::reverse_iterator find_idle_locked() noexcept;
    CountedLane& take_locked(Others::reverse_iterator idle);
    void leave(CountedLane& lane) noexcept;
    void read_late() noexcept;

    const std::vector<NodeConfig> configs_;
    const NodesOptions options_;
    Network& network_;
    const std::size_t processors_;
    CountedLane shared_;
    bool closed_ = false;  // used by close() only
    std::mutex mutex_{};
    // Guarded by mutex_. The lane that was taken or read last is at the end.
    Others others_{};
    unsigned rounds_to_share_ = 0;  // see detail::next_rounds_to_share()

    std::atomic<std::size_t> rounds_{0};  // rounds that are under way
};

}  // namespace redlock
