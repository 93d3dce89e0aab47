// The faults of a plan, at random moments, for as long as anybody is busy.
#pragma once

#include "plan.hpp"
#include "world.hpp"

namespace redlock::sim {

class Storm {
public:
    Storm(World& world, const Plan& plan, Dice dice)
        : world_(world), plan_(plan), dice_(dice), stepped_(world.size()) {}

    void begin() { go_on(); }
    /// In the worst moment: when somebody is about to say something.
    void ambush() {
        if (plan_.faults.empty()) return;
        while (dice_.chance(plan_.ambush)) strike(dice_.pick(plan_.faults));
    }

private:
    void go_on();
    void strike(Fault fault);
    void crash(SimNode& node, Data data);
    void step_clock();
    nanoseconds some_time() { return dice_.about(plan_.longest_fault / 3); }

    World& world_;
    const Plan& plan_;
    Dice dice_;
    std::vector<nanoseconds> stepped_;  // how far each wall clock has been set, in all
};

}  // namespace redlock::sim
