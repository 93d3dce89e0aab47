// Random schedules, as many as a quick test may have. `sim` runs more: see README.md.
#include "random_world.hpp"

#include <gtest/gtest.h>

namespace redlock::sim {
namespace {

TEST(RandomTest, NoScheduleViolatesAClaim) {
    std::size_t holds = 0;
    for (std::uint64_t seed = 1; seed <= 600; ++seed) {
        const auto outcome = run_schedule(seed);
        holds += outcome.holds;
        for (const auto& violation : outcome.violations)
            ADD_FAILURE() << name_of(violation.rule) << ": " << violation.text << "; see sim --seed " << seed;
    }
    EXPECT_GT(holds, 1000U) << "hardly anybody ever held anything: nothing was tried";
}

TEST(RandomTest, ASeedGivesTheSameScheduleEveryTime) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const auto once = run_schedule(seed, any_plan, Logging::yes);
        const auto again = run_schedule(seed, any_plan, Logging::yes);
        EXPECT_EQ(once.schedule, again.schedule);
        EXPECT_EQ(once.events, run_schedule(seed).events) << "also where nobody writes it down";
    }
}

}  // namespace
}  // namespace redlock::sim
