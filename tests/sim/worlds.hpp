// Worlds by name, in which a kind of mistake shows soon. Without one, all but the unsafe worlds violate no
// claim.
#pragma once

#include "checker.hpp"
#include "plan.hpp"
#include "random_world.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace redlock::sim {

struct NamedWorld {
    std::string_view name;
    std::string_view what;
    void (*narrow)(Plan& plan, Rng& rng);
};

/// Outside of what the protocol assumes.
struct UnsafeWorld {
    NamedWorld world;
    std::vector<Rule> breaks;  ///< the claims it may break: one of them is found violated
};

std::span<const NamedWorld> worlds();
std::span<const UnsafeWorld> unsafe_worlds();
/// Of both kinds; null if there is none of that name.
const NamedWorld* find_world(std::string_view name);

Planner planner_of(const NamedWorld& world);

}  // namespace redlock::sim
