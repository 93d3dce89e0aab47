// The workload of clients that elect a leader in random schedules. A leader works for a while or until stop
// is requested, ends its work within the margin, sometimes by an exception, and campaigns again.
#pragma once

#include "client.hpp"
#include "plan.hpp"

#include <redlock/leader.hpp>

namespace redlock::sim {

/// The life of one thread of a client.
class LeaderWorkload {
public:
    LeaderWorkload(Client& client, const Plan& plan, Rng rng) : client_(client), plan_(plan), rng_(rng) {}

    void run();

private:
    void lead(const Term& term, milliseconds margin);

    Client& client_;
    const Plan& plan_;
    Rng rng_;
};

}  // namespace redlock::sim
