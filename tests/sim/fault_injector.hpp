// Injects the faults of a plan at random moments, as long as any client is busy.
#pragma once

#include "plan.hpp"
#include "world.hpp"

namespace redlock::sim {

class FaultInjector {
public:
    FaultInjector(World& world, const Plan& plan, Rng rng)
        : world_(world), plan_(plan), rng_(rng), stepped_(world.size()) {}

    void begin() { go_on(); }
    /// Injects faults at the worst moment: just before a client begins a verb.
    void inject_before_verb() {
        if (plan_.faults.empty()) return;
        while (rng_.chance(plan_.fault_before_verb)) inject(rng_.pick(plan_.faults));
    }

private:
    void go_on();
    void inject(Fault fault);
    void crash(SimNode& node, Data data);
    void step_clock();
    void move_slots(SimNode& node);
    nanoseconds some_time() { return rng_.about(plan_.longest_fault / 3); }

    World& world_;
    const Plan& plan_;
    Rng rng_;
    bool has_moved_slots_ = false;
    std::vector<nanoseconds> stepped_;  // for each wall clock, the sum of its steps so far
};

}  // namespace redlock::sim
