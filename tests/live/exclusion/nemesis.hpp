// Kills and freezes nodes and workers, at random, and each time sees how the others get on.
//
// It goes on when the workers have, not after a time: a slow machine makes it slower, not different.
#pragma once

#include "team.hpp"

#include "support/cluster.hpp"

#include <cstdint>
#include <random>
#include <string>

namespace redlock::exclusion {

class Nemesis {
public:
    Nemesis(support::Cluster& nodes, Team& team, std::uint32_t seed)
        : nodes_(nodes), team_(team), randomness_(seed) {}

    /// One misfortune, and its end. All nodes are up again afterwards.
    void strike();

    /// What it has done, in order.
    const std::string& deeds() const noexcept { return deeds_; }
    /// Whether there was a time when a majority was up, and nobody got the lock (S3).
    bool stalled() const noexcept { return stalled_; }

private:
    void crash_a_node();
    void crash_a_node_and_freeze_another();
    void freeze_a_node();
    void blink_with_all_nodes();
    void crash_a_worker();

    void await_holds(std::int64_t more);
    void await_attempts(std::int64_t more);
    void note(const std::string& deed, std::size_t whom);
    std::size_t below(std::size_t count);

    support::Cluster& nodes_;
    Team& team_;
    std::mt19937 randomness_;
    std::string deeds_{};
    bool stalled_ = false;
};

}  // namespace redlock::exclusion
