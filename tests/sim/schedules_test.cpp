// Random schedules, as many as fit into a quick test; the program `sim` runs more. The mutants that they must
// find are in tests/mutants.
#include "schedule.hpp"
#include "suspension_workload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

namespace redlock::sim {

inline void PrintTo(const Preset& preset, std::ostream* out) {
    *out << preset.description;
}

namespace {

std::optional<Outcome> first_violation(const Preset& preset, std::uint64_t seeds) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed)
        if (auto outcome = run_schedule(seed, &preset); !outcome.violations.empty()) return outcome;
    return std::nullopt;
}

Outcome run_without_violation(const char* world, std::uint64_t seed) {
    auto outcome = run_schedule(seed, find_preset(world));
    for (const auto& violation : outcome.violations)
        ADD_FAILURE() << name_of(violation.rule) << ": " << violation.text << "; see sim --world " << world
                      << " --seed " << seed;
    return outcome;
}

TEST(Schedule, ViolatesNoInvariant) {
    std::size_t holds = 0;
    for (std::uint64_t seed = 1; seed <= 600; ++seed) holds += run_without_violation("any", seed).holds;
    EXPECT_GT(holds, 1000U) << "hardly any lock was ever held: nothing was tried";
}

TEST(Schedule, DependsOnlyOnItsSeed) {
    for (const auto* const world : {"any", "loops", "threads-hanging"})
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            const auto* const preset = find_preset(world);
            const auto once = run_schedule(seed, preset, Logging::yes);
            const auto again = run_schedule(seed, preset, Logging::yes);
            EXPECT_EQ(once.schedule, again.schedule) << world << ", seed " << seed;
            EXPECT_EQ(once.events, run_schedule(seed, preset).events) << "even without a log";
        }
}

TEST(Schedule, DisturbsEachOperationOfALoopAtSeveralSuspensions) {
    std::size_t disturbances = 0;
    for (std::uint64_t seed = 0; seed < SuspensionCase::count; ++seed) {
        const auto outcome = run_without_violation("loops-systematic", seed);
        EXPECT_GE(outcome.disturbances, 2U) << "seed " << seed;
        disturbances += outcome.disturbances;
    }
    EXPECT_GT(disturbances, 1500U);
}

TEST(Schedule, MovesTheSlotsOfAClusterAtEachSuspensionOfAnOperation) {
    std::size_t moves = 0;
    for (std::uint64_t seed = 0; seed < 3 * SuspensionCase::count_in_cluster; ++seed)
        moves += run_without_violation("moving-systematic", seed).disturbances;
    EXPECT_GT(moves, 400U);
}

struct WorldPreset : testing::TestWithParam<Preset> {};

TEST_P(WorldPreset, ViolatesOnlyTheInvariantsOfItsBrokenAssumption) {
    const auto& preset = GetParam();
    const auto found = first_violation(preset, preset.breaks.empty() ? 20 : 500);
    ASSERT_EQ(found.has_value(), !preset.breaks.empty());
    if (!found) return;
    const auto rule = found->violations.front().rule;
    EXPECT_TRUE(std::ranges::count(preset.breaks, rule)) << "seed " << found->seed << ": " << name_of(rule);
}

INSTANTIATE_TEST_SUITE_P(Worlds, WorldPreset, testing::ValuesIn(presets().begin(), presets().end()),
                         [](const auto& info) {
                             std::string name{info.param.name};
                             std::erase(name, '-');
                             return name;
                         });

}  // namespace
}  // namespace redlock::sim
