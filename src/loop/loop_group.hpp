// The nodes of a RedisNodes as one event loop uses them: connections that the rounds of the loop share, and
// rounds that the loop continues.
#pragma once

#include "../redis/lanes.hpp"
#include "../redis/node_group.hpp"
#include "../redis/round_driver.hpp"
#include "listeners.hpp"
#include "local_queues.hpp"
#include "loop_network.hpp"
#include "rounds.hpp"
#include "scheduler.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace redlock::loop {

class LoopGroup;

/// The groups of loops that were shut down before their RedisNodes was destroyed, because they may have
/// unsent releases. All threads may share it.
class FormerGroups {
public:
    /// Keeps the group until close(). Each later call of this function or of unused() drops the groups that
    /// no lock uses, and that have nothing left to send or were detached more than a node_timeout ago.
    void add(std::shared_ptr<LoopGroup> group);
    /// Records that no lock uses the group any more.
    void unused(LoopGroup& group) noexcept;
    /// Sends the unsent releases of all groups, and those of the threads, see Lanes::close().
    void close(Lanes& threads) noexcept;

private:
    void drop_done_locked() noexcept;

    std::mutex mutex_{};
    std::vector<std::shared_ptr<LoopGroup>> groups_{};  // guarded by mutex_
};

/// A base class of the group, so that `scheduler` exists before the base class Task, which needs it.
struct SchedulerMember {
    const std::shared_ptr<Scheduler> scheduler;
};

/// As a task, it ends each pass of the loop: it writes the commands that the rounds of the pass have
/// collected, and watches the connections.
class LoopGroup final : public Rounds, SchedulerMember, Task, public std::enable_shared_from_this<LoopGroup> {
public:
    /// Does no I/O. `loop` must exist until detach() is called or the group is destroyed.
    LoopGroup(std::shared_ptr<Scheduler> of_loop, EventLoop& loop, const std::vector<NodeConfig>& configs,
              const NodesOptions& options, std::shared_ptr<Network> system,
              std::weak_ptr<FormerGroups> former)
        : SchedulerMember{std::move(of_loop)},
          Task(*SchedulerMember::scheduler),
          former_(std::move(former)),
          network_(loop, std::move(system)),
          group_(configs, options, network_) {
        SchedulerMember::scheduler->set_end_of_pass(this);
    }
    ~LoopGroup() override { SchedulerMember::scheduler->set_end_of_pass(nullptr); }

    std::unique_ptr<RoundInSteps> begin(Task& task, std::span<const Request> requests,
                                        const RoundLimits& limits, std::span<Tally> tallies) override;
    std::unique_ptr<WaiterInSteps> waiter() override;
    void on_ready(int fd) override;
    void detach() noexcept override;
    void unused() noexcept override {
        if (const auto former = former_.lock()) former->unused(*this);
    }
    bool nodes_are_gone() const noexcept override { return former_.expired(); }

    /// Returns the nodes, which FormerGroups closes after detach().
    NodeGroup& nodes() noexcept { return group_; }
    /// Sends as much of the unsent releases as the sockets accept. Returns true, and gives up the rest, if
    /// nothing is left to do, or if one node_timeout has passed since detach().
    bool close_if_done() noexcept;

private:
    friend class FormerGroups;
    class RoundOfTask;

    Clock& clock() noexcept { return network_.clock(); }
    void proceed() override;
    void read_all();
    void take_ready();
    Clock::time_point find_connections_to_watch();

    const std::weak_ptr<FormerGroups> former_;  // belongs to the RedisNodes
    LoopNetwork network_;
    NodeGroup group_;
    Listeners listeners_{*SchedulerMember::scheduler, *this, *this, group_.listeners(),
                         group_.node_timeout()};
    LocalQueues local_queues_{};
    bool is_unused_ = false;  // guarded by the mutex of former_
    Clock::time_point detached_at_{};
    std::size_t rounds_ = 0;                   // rounds that are under way
    bool has_to_write_ = false;                // if there are none: the last ones may have collected commands
    Clock::time_point idle_since_{};           // then: when these commands were written
    std::chrono::milliseconds longest_ttl_{};  // of all rounds so far
    std::vector<PollEntry> watched_{};         // keeps its memory
};

}  // namespace redlock::loop
