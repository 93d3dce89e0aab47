// The nodes of a RedisNodes as one event loop uses them: connections of its own, and rounds that the loop
// continues.
#pragma once

#include "loop/loop_network.hpp"
#include "loop/rounds.hpp"
#include "redis/node_group.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace redlock::loop {

class LoopGroup;

/// The groups of loops that have ended before their RedisNodes. They may have unsent releases, which the
/// destructor of the RedisNodes sends. All threads may share it.
class FormerGroups {
public:
    /// Keeps the group until close(). Does nothing after close().
    void add(std::shared_ptr<LoopGroup> group);
    /// Sends the unsent releases of all groups. Blocks for one node_timeout at most.
    void close() noexcept;
    bool closed() const noexcept {
        const std::lock_guard guard{mutex_};
        return closed_;
    }

private:
    mutable std::mutex mutex_{};
    // Guarded by mutex_.
    std::vector<std::shared_ptr<LoopGroup>> groups_{};
    bool closed_ = false;
};

class LoopGroup final : public Rounds, public std::enable_shared_from_this<LoopGroup> {
public:
    /// Does no I/O. `loop` must outlive the group or detach().
    LoopGroup(std::shared_ptr<Scheduler> scheduler, EventLoop& loop, const std::vector<NodeConfig>& configs,
              const NodesOptions& options, const OsNetwork& system, std::shared_ptr<FormerGroups> former)
        : scheduler_(std::move(scheduler)),
          former_(std::move(former)),
          network_(*scheduler_, loop, system),
          group_(configs, options, network_) {}

    std::unique_ptr<RoundInSteps> begin(Task& task, std::span<const Request> requests,
                                        const RoundLimits& limits, std::span<Tally> tallies) override;
    void on_ready(int fd) noexcept override { network_.watches().on_ready(fd); }
    void detach() noexcept override;
    bool nodes_are_gone() const noexcept override { return former_->closed(); }

    /// Sends the unsent releases after detach(). Blocks until `deadline` at most.
    void send_the_rest(Clock::time_point deadline) { group_.send_the_rest(deadline); }
    std::chrono::milliseconds node_timeout() const noexcept { return group_.node_timeout(); }
    Clock& clock() noexcept { return network_.clock(); }

private:
    class Round;

    const std::shared_ptr<Scheduler> scheduler_;  // the background task of the group uses it
    const std::shared_ptr<FormerGroups> former_;
    LoopNetwork network_;
    NodeGroup group_;
};

}  // namespace redlock::loop
