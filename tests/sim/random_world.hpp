// One random schedule: a seed, a plan drawn from it or given, and what came of it.
#pragma once

#include "checker.hpp"
#include "plan.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace redlock::sim {

struct Outcome {
    std::uint64_t seed = 0;
    std::uint64_t events = 0;
    std::size_t holds = 0;
    std::size_t extensions = 0;
    std::vector<Violation> violations{};
    std::vector<std::string> schedule{};  ///< empty unless it is logged
};

/// Makes the plan of a schedule from its rng.
using Planner = std::function<Plan(Rng&)>;

enum class Logging : bool { no, yes };

/// Up to the first violation, if there is one.
Outcome run_schedule(std::uint64_t seed, const Planner& planner = any_plan, Logging logging = Logging::no);

}  // namespace redlock::sim
