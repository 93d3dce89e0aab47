// What the clients of random schedules do: acquire in one of several ways, work, extend, let go or do not.
#pragma once

#include "checked_lock.hpp"
#include "plan.hpp"
#include "storm.hpp"

namespace redlock::sim {

/// The life of one thread of a client.
class Habits {
public:
    Habits(Client& client, const Plan& plan, Storm& storm, Dice dice)
        : client_(client), plan_(plan), storm_(storm), dice_(dice) {}

    void live();

private:
    void take_a_turn();
    bool acquire(CheckedLock& lock);
    void work(CheckedLock& lock);
    void hold(CheckedLock& lock);
    void hold_with_another(CheckedLock& lock);
    void extend(CheckedLock& lock);
    void let_go(CheckedLock& lock);
    void ambush();
    std::vector<std::string> some_resources();
    LockOptions some_options();

    Client& client_;
    const Plan& plan_;
    Storm& storm_;
    Dice dice_;
};

}  // namespace redlock::sim
