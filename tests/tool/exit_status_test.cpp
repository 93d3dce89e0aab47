// The exit statuses of results that no server can cause.
#include "tool/exit_status.hpp"

#include <gtest/gtest.h>

#include <system_error>

namespace redlock::tool {
namespace {

TEST(ExitStatusOfAResult, IsThatOfAnInternalErrorForAnErrorOfTheSystem) {
    const Result result{std::make_error_code(std::errc::not_enough_memory)};
    EXPECT_EQ(exit_status::of(result), exit_status::internal);
}

}  // namespace
}  // namespace redlock::tool
