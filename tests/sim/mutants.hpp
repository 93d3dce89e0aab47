// The mistakes that must be found, each by the claim that it breaks, in worlds where it shows soon: whoever
// does not find them is blind to what they stand for.
#pragma once

#include "plan.hpp"
#include "random_world.hpp"
#include "referee.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace redlock::sim {

struct Mutant {
    std::string_view name;
    std::string_view what;
    std::vector<Rule> breaks;                ///< the claims it may break: one of them is found violated
    void (*make)(Flaws& flaws);              ///< the mistake
    void (*narrow)(Plan& plan, Dice& dice);  ///< the worlds
};

std::span<const Mutant> mutants();
const Mutant* find_mutant(std::string_view name);

/// The worlds of a mutant, with the mistake and without.
Planner with_flaw(const Mutant& mutant);
Planner without_flaw(const Mutant& mutant);
/// Any worlds, with the mistake.
Planner with_flaw_anywhere(const Mutant& mutant);

}  // namespace redlock::sim
