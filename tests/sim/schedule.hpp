// Runs one random schedule: the world and the faults of a seed, and the outcome.
#pragma once

#include "checker.hpp"
#include "presets.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace redlock::sim {

struct Outcome {
    std::uint64_t seed = 0;
    std::uint64_t events = 0;
    std::size_t holds = 0;
    std::size_t extensions = 0;
    std::size_t disturbances = 0;  ///< by SimLoop::disturb_next()
    std::vector<Violation> violations{};
    std::vector<std::string> schedule{};  ///< empty unless logged
};

enum class Logging : bool { no, yes };

/// Runs a schedule in any world, or in one of the given kind, up to the first violation.
Outcome run_schedule(std::uint64_t seed, const Preset* preset = nullptr, Logging logging = Logging::no);

}  // namespace redlock::sim
