// What the clients of random schedules do that elect a leader: campaign, work until they are told to stop or
// for a while, end that within the margin, sometimes by an exception, and campaign again.
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
