// The workload of clients that elect a leader in random schedules. A leader works for a while or until stop
// is requested, ends its work within the margin, sometimes by an exception, and campaigns again.
#pragma once

#include "client.hpp"
#include "plan.hpp"
#include "sim_loop.hpp"

#include <redlock/leader.hpp>

#include <stop_token>

namespace redlock::sim {

/// The life of one thread of a client.
class LeaderWorkload {
public:
    LeaderWorkload(Client& client, const Plan& plan, Rng rng) : client_(client), plan_(plan), rng_(rng) {}

    /// Stops early if `stop` is requested.
    void run(const std::stop_token& stop = {});
    LeaderOptions some_options();
    /// Runs a leader in the loop. Its run() is cancelled after a while.
    void run_in(SimLoop& loop, const LeaderOptions& options, nanoseconds until_stop);

private:
    nanoseconds mean_term() const;
    void run(const LeaderOptions& options, nanoseconds until_stop);
    /// Works for a while, and ends within the margin. Returns true if the work has failed.
    bool work(const std::stop_token& lost, milliseconds margin);

    Client& client_;
    const Plan& plan_;
    Rng rng_;
};

}  // namespace redlock::sim
