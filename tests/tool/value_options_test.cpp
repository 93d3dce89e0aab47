// Options of the command line that depend on one another.
#include "tool/value_options.hpp"

#include "tool/command_line.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>

namespace redlock::tool::value_options_test {
namespace {

using namespace std::chrono_literals;

/// A command with the option --min-hold, which has a former name.
struct FormerName : testing::Test {
    FormerName() {
        auto& app = line.add("run", "runs", [] { return 0; });
        add_span(app, "--min-hold", min_hold, "the minimum hold time");
        add_former_name(app, "--at-least", "--min-hold", min_hold);
    }

    CommandLine line{"redlock", "locks", "1.0"};
    std::chrono::milliseconds min_hold{};
};

TEST_F(FormerName, SetsTheSameOption) {
    EXPECT_TRUE(line.parse({"run", "--at-least", "2s"}));
    EXPECT_EQ(min_hold, 2s);
}

TEST_F(FormerName, CannotBeGivenTogetherWithTheNewName) {
    EXPECT_THROW((void)line.parse({"run", "--at-least", "2s", "--min-hold", "3s"}), std::invalid_argument);
    EXPECT_THROW((void)line.parse({"run", "--min-hold", "3s", "--at-least", "2s"}), std::invalid_argument);
}

}  // namespace
}  // namespace redlock::tool::value_options_test
