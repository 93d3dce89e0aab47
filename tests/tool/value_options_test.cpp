// Options of the command line that depend on one another.
#include "tool/run/run_arguments.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace redlock::tool::value_options_test {
namespace {

using namespace std::chrono_literals;

/// The command `run`, whose option --min-hold has a former name.
struct FormerName : testing::Test {
    FormerName() { arguments.add_to(app); }

    CLI::App app{};
    RunArguments arguments{};
};

TEST_F(FormerName, SetsTheSameOption) {
    app.parse("--at-least 2s job");
    EXPECT_EQ(arguments.lock.min_hold, 2s);
}

TEST_F(FormerName, CannotBeGivenTogetherWithTheNewName) {
    EXPECT_THROW(app.parse("--at-least 2s --min-hold 3s job"), CLI::ValidationError);
    EXPECT_THROW(app.parse("--min-hold 3s --at-least 2s job"), CLI::ValidationError);
}

TEST(RunArguments, HaveALeaseThatLastsForTheMinimumHoldTime) {
    RunArguments arguments;
    arguments.lock.ttl = 30s;
    for (const auto min_hold : {0s, 1s, 60s}) {
        arguments.lock.min_hold = min_hold;
        EXPECT_EQ(arguments.ttl(), std::max(min_hold, 30s));
    }
}

}  // namespace
}  // namespace redlock::tool::value_options_test
