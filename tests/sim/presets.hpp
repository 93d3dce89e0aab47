// Named kinds of worlds. Each exposes one kind of fault in the library quickly.
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
    void (*apply)(Plan& plan);   ///< narrows a plan that was drawn at random
    std::vector<Rule> breaks{};  ///< if outside of the assumptions: one of these must be violated
};

std::span<const Preset> presets();
/// Returns null if no preset has that name.
const Preset* find_preset(std::string_view name);

}  // namespace redlock::sim
