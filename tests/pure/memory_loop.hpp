// An event loop over servers in memory, in virtual time: the complete front for event loops without an
// operating system.
//
//     MemoryLoop loop{network};
//     MemoryLoopNodes nodes{network, 3, {.node_timeout = 50ms}};
//     AsyncNodes of_loop{nodes, loop, network.clock(), entropy};
//     AsyncLock lock{of_loop, "r"};
//     lock.acquire(done);
//     while (!called && loop.run_once(latest)) {}
#pragma once

#include "memory_network.hpp"
#include "support/nodes_over_lanes.hpp"

#include "loop/loop_group.hpp"

#include <redlock/event_loop.hpp>
#include <redlock/nodes.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace redlock::test {

class MemoryLoop : public EventLoop {
public:
    explicit MemoryLoop(MemoryNetwork& network) : network_(network) {}

    void watch(int fd, bool reads, bool writes) override {
        {
            const OutsideTheClient outside;
            known_.insert(fd);
        }
        watched_.erase(fd);
        if (reads || writes) watched_.emplace(fd, writes);
    }
    void forget(int fd) noexcept override {
        watched_.erase(fd);
        if (network_.is_open(fd)) known_.erase(fd);
    }
    void wake_after(std::chrono::nanoseconds delay) noexcept override {
        wake_at_ = delay == delay.max() ? Clock::never() : network_.clock().now() + delay;
    }

    /// Waits for events and handles them. Returns false if there was nothing to do until this instant.
    bool run_once(Clock::time_point until) {
        auto& clock = network_.clock();
        while (clock.let_next_event_happen(std::min(until, next()))) {
        }
        clock.advance_to(std::min(until, next()));
        if (next() > clock.now()) return false;
        for (const int fd : ready_descriptors()) {
            if (watched_.erase(fd) == 0) continue;
            ready(fd);
        }
        if (wake_at_ <= clock.now()) {
            wake_at_ = Clock::never();
            wake();
        }
        return true;
    }

    /// Handles the timers, and no descriptor, as a loop does that comes back after a long pause.
    void come_back() { wake(); }

    bool watches_anything() const { return !watched_.empty(); }
    /// Returns true if a socket was closed that the loop had not forgotten before.
    bool knows_closed_sockets() const {
        return !std::ranges::all_of(known_, [this](int fd) { return network_.is_open(fd); });
    }

private:
    std::vector<int> ready_descriptors() const {
        const OutsideTheClient outside;
        std::vector<int> found;
        for (const auto& [fd, writes] : watched_)
            if (network_.ready_at(fd, writes) <= network_.clock().now()) found.push_back(fd);
        return found;
    }
    Clock::time_point next() const {
        auto earliest = wake_at_;
        for (const auto& [fd, writes] : watched_)
            earliest = std::min(earliest, network_.ready_at(fd, writes));
        return earliest;
    }

    MemoryNetwork& network_;
    std::set<int> known_{};          // the descriptors of watch(), until forget()
    std::map<int, bool> watched_{};  // the descriptors, and whether to wait until they can be written
    Clock::time_point wake_at_ = Clock::never();
};

/// The nodes as one process has them, for its loops and for threads.
class MemoryLoopNodes final : public support::NodesOverLanes {
public:
    MemoryLoopNodes(MemoryNetwork& network, std::size_t size, const NodesOptions& options)
        : MemoryLoopNodes(network, first(size, network.configs(options.quarantine)), options) {}
    MemoryLoopNodes(MemoryNetwork& network, const std::vector<NodeConfig>& configs,
                    const NodesOptions& options, std::size_t processors = 1)
        : NodesOverLanes(std::vector<std::string>(configs.size(), "n"), configs, options, network,
                         processors),
          options_(options) {}
    ~MemoryLoopNodes() override { former_->close(lanes_); }
    MemoryLoopNodes(const MemoryLoopNodes&) = delete;
    MemoryLoopNodes& operator=(const MemoryLoopNodes&) = delete;

    std::shared_ptr<loop::Rounds> rounds_in(EventLoop& loop,
                                            const std::shared_ptr<loop::Scheduler>& scheduler) override {
        const std::shared_ptr<Network> network{&network_, [](auto) {}};  // the test owns it
        return std::make_shared<loop::LoopGroup>(scheduler, loop, configs_, options_, network, former_);
    }

private:
    static std::vector<NodeConfig> first(std::size_t size, std::vector<NodeConfig> configs) {
        configs.resize(size);
        return configs;
    }

    const NodesOptions options_;
    const std::shared_ptr<loop::FormerGroups> former_ = std::make_shared<loop::FormerGroups>();
};

}  // namespace redlock::test
