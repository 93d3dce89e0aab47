// Options of the command line that depend on one another.
#include "tool/value_options.hpp"
#include "tool/run/run_arguments.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace redlock::tool::value_options_test {
namespace {

using namespace std::chrono_literals;

/// A command with the option --min-hold, which has a former name.
struct FormerName : testing::Test {
    FormerName() {
        add_span(app, "--min-hold", min_hold, "the minimum hold time");
        add_former_name(app, "--at-least", "--min-hold", min_hold);
    }

    CLI::App app{};
    std::chrono::milliseconds min_hold{};
};

TEST_F(FormerName, SetsTheSameOption) {
    app.parse("--at-least 2s");
    EXPECT_EQ(min_hold, 2s);
}

TEST_F(FormerName, CannotBeGivenTogetherWithTheNewName) {
    EXPECT_THROW(app.parse("--at-least 2s --min-hold 3s"), CLI::ValidationError);
    EXPECT_THROW(app.parse("--min-hold 3s --at-least 2s"), CLI::ValidationError);
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
