// Injects faults into nodes, proxies and workers at random, and ends them again.
#pragma once

#include "worker_pool.hpp"

#include "support/cluster.hpp"
#include "support/tcp_proxy.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>

namespace redlock::torture {

/// The data of a killed node after its restart, or whether no node is killed or flushed at all.
enum class Restart : std::uint8_t { empty, with_data, never };

class Nemesis {
public:
    /// Each node has two proxies. Those of node i have the numbers 2 i and 2 i + 1.
    Nemesis(support::Cluster& nodes, std::deque<support::TcpProxy>& links, WorkerPool& workers,
            Restart restart, std::uint64_t seed);

    /// Begins one fault, and ends those that are overdue.
    void inject_fault();

    /// Ends all faults.
    void heal_all();

    /// Returns the number of faults of each kind.
    const std::map<std::string, int>& fault_counts() const noexcept { return fault_counts_; }

private:
    /// A lasting fault, and how to end it.
    struct Fault {
        Instant until;
        std::size_t node;  // no_node for a worker
        std::function<void()> heal;
    };
    static constexpr std::size_t no_node = SIZE_MAX;

    void kill_node();
    void kill_majority();
    void flush_node();
    void freeze_node();
    void pause_clients();
    void cut_link();
    void silence_link();
    void stop_worker();
    void kill_worker();

    void restart(std::size_t node);
    void count(const std::string& fault) { ++fault_counts_[fault]; }
    void heal_later(std::size_t node, std::chrono::milliseconds at_most, std::function<void()> heal);
    void heal_overdue(Instant now);
    bool has_fault(std::size_t node) const;
    std::size_t healthy_node();
    std::size_t below(std::size_t end);

    support::Cluster& nodes_;
    std::deque<support::TcpProxy>& links_;
    WorkerPool& workers_;
    Restart restart_;
    std::mt19937_64 random_;
    std::deque<Fault> faults_{};
    std::map<std::string, int> fault_counts_{};
};

}  // namespace redlock::torture
