// Kinds of worlds by name, in each of which a kind of mistake shows soon.
#pragma once

#include "checker.hpp"
#include "plan.hpp"

#include <span>
#include <string_view>
#include <vector>

namespace redlock::sim {

struct Preset {
    std::string_view name;
    std::string_view description;
    void (*apply)(Plan& plan);  ///< to one that was drawn at random
    std::vector<Rule>
        breaks{};  ///< where it is outside of what the protocol assumes: one of these is violated
};

std::span<const Preset> presets();
/// Null if there is none of that name.
const Preset* find_preset(std::string_view name);

}  // namespace redlock::sim
