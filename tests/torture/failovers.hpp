// Has one node fail over, back and forth, again and again, in a thread of its own.
//
// In two ways, at random. The Sentinels are told to, and the former master goes on for a while, for those
// that know no other yet. Or the master is frozen, and its replica lacks what it has granted last; the former
// master is thawed at some time, at times when others hold locks again, and carries out what stands in its
// sockets.
#pragma once

#include "hold_log.hpp"

#include "support/sentinel_group.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <random>
#include <string>

namespace redlock::torture {

class Failovers {
public:
    Failovers(support::SentinelGroup& group, HoldLog& log, std::uint64_t seed);
    ~Failovers() { stopped_ = true; }
    Failovers(const Failovers&) = delete;
    Failovers& operator=(const Failovers&) = delete;

    /// How many are complete; may be asked while they go on.
    std::size_t completed() const noexcept { return completed_; }

    /// Ends them with a master and a replica that are both well. Throws std::runtime_error if one has failed.
    void stop();

    // ---- Once stopped.

    /// After how many the node has not voted again, or nobody has held anything.
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
