// Lets one node fail over, back and forth, in a separate thread.
//
// There are two ways, chosen at random. Either the Sentinels are told to fail over, and the former master
// continues for a while, for clients that do not know the new master yet. Or the master is frozen, and its
// replica lacks the last grants. The former master is thawed at some time, possibly when other clients hold
// locks again, and executes the commands in its sockets.
#pragma once

#include "hold_log.hpp"

#include "support/sentinel_group.hpp"

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

class Failovers : detail::NotCopied {
public:
    Failovers(support::SentinelGroup& group, HoldLog& log, std::uint64_t seed);
    ~Failovers() { stopped_ = true; }

    /// Returns how many are complete. May be called while they continue.
    std::size_t completed() const noexcept { return completed_; }

    /// Ends the failovers with a healthy master and a healthy replica. Throws std::runtime_error if a
    /// failover has failed.
    void stop();

    // ---- After stop().

    /// Returns after how many failovers the node did not vote again, or no worker held anything.
    std::size_t without_holds() const noexcept { return without_holds_; }
    const std::map<std::string, int>& counts() const noexcept { return counts_; }

private:
    using Server = support::RedisServer;

    void run();
    void order(const Server& former, const Server& next);
    void freeze(Server& former, const Server& next);
    static void lose_last_writes(const Server& replica);
    void await_holds(const Server& master);
    template <class Condition>
    bool comes(Condition condition) const;
    void pause(std::chrono::milliseconds at_most);

    support::SentinelGroup& group_;
    HoldLog& log_;
    std::mt19937_64 random_;
    std::atomic<bool> stopped_ = false;
    std::atomic<std::size_t> completed_ = 0;
    std::size_t without_holds_ = 0;
    std::map<std::string, int> counts_{};
    std::future<void> thread_;  // the last member: it uses the others
};

}  // namespace redlock::torture
