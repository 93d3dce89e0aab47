// The workload of clients in random schedules: acquire in one of several ways, work, extend, release or leave
// the lock.
#pragma once

#include "checked_lock.hpp"
#include "fault_injector.hpp"
#include "plan.hpp"

#include <stop_token>

namespace redlock::sim {

/// The life of one thread of a client.
class Workload {
public:
    Workload(Client& client, const Plan& plan, FaultInjector& faults, Rng rng)
        : client_(client), plan_(plan), faults_(faults), rng_(rng) {}

    /// Stops early if `stop` is requested.
    void run(const std::stop_token& stop = {});

private:
    void take_a_turn();
    void take_a_slot();
    bool acquire(CheckedLock& lock);
    void work(CheckedLock& lock);
    void hold(CheckedLock& lock);
    void hold_with_another(CheckedLock& lock);
    void extend(CheckedLock& lock);
    void release(CheckedLock& lock);
    void inject_before_verb();
    std::vector<std::string> some_resources();
    CheckedLock some_lock();
    LockOptions some_options();

    Client& client_;
    const Plan& plan_;
    FaultInjector& faults_;
    Rng rng_;
};

}  // namespace redlock::sim
