// Moves the slots of a Redis Cluster between its masters, in a separate thread. In between, lets a master
// fail for a while: it is frozen, or killed and restarted with its data.
#pragma once

#include "support/redis_cluster_servers.hpp"

#include <redlock/detail/not_copied.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <random>
#include <string>

namespace redlock::torture {

class SlotMoves : detail::NotCopied {
public:
    SlotMoves(support::RedisClusterServers& servers, std::uint64_t seed);
    ~SlotMoves() { stopped_ = true; }

    /// Ends with healthy servers, and no slot half moved. Throws std::runtime_error if a move has failed.
    void stop();

    /// After stop(): returns how often each event has happened.
    const std::map<std::string, int>& counts() const noexcept { return counts_; }

private:
    void run();
    void move_a_slot();
    void lose_a_server();
    void cut_connections();
    void pause(std::chrono::milliseconds at_most);
    std::size_t below(std::size_t end) { return random_() % end; }

    support::RedisClusterServers& servers_;
    std::mt19937_64 random_;
    std::map<std::uint16_t, std::size_t> places_{};  // the masters of the slots that were moved
    std::map<std::string, int> counts_{};
    std::atomic<bool> stopped_ = false;
    std::future<void> thread_;  // the last member: it uses the others
};

}  // namespace redlock::torture
