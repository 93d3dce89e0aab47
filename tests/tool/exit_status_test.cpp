// The exit statuses of results that no server can cause.
#include "tool/process/exit_status.hpp"

#include <gtest/gtest.h>

#include <system_error>

namespace redlock::tool::exit_status_test {
namespace {

TEST(ExitStatusOfAResult, IsThatOfAnInternalErrorForAnErrorOfTheSystem) {
    const Result result{std::make_error_code(std::errc::not_enough_memory)};
    EXPECT_EQ(exit_status::of(result), exit_status::internal);
}

// The time to wait was over before any node was asked.
TEST(ExitStatusOfAResult, IsNoDenialIfNoNodeWasAsked) {
    EXPECT_EQ(exit_status::of(Result{Errc::deadline}), exit_status::no_quorum);
}

// The nodes that refused leave no majority. Otherwise the failures of the other nodes count, which can pass.
TEST(ExitStatusWithoutAQuorum, IsThatOfADenialIfTooFewNodesAreLeft) {
    EXPECT_EQ(exit_status::without_quorum(3, 0), exit_status::no_quorum);
    EXPECT_EQ(exit_status::without_quorum(3, 1), exit_status::no_quorum);
    EXPECT_EQ(exit_status::without_quorum(3, 2), exit_status::denied);
    EXPECT_EQ(exit_status::without_quorum(5, 2), exit_status::no_quorum);
    EXPECT_EQ(exit_status::without_quorum(5, 3), exit_status::denied);
}

}  // namespace
}  // namespace redlock::tool::exit_status_test
