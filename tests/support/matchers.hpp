// GoogleTest, its matchers and the units of time, under the names that the tests use. A test that includes
// the header of a world has them.
#pragma once

#include <gmock/gmock.h>

#include <chrono>

namespace redlock::test {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

/// Matches the values of this interval, which has both ends. Shows a duration in ns.
MATCHER_P2(IsBetween, least, most, "is in the interval") {
    if constexpr (requires { std::chrono::nanoseconds{arg}; })
        *result_listener << std::chrono::nanoseconds{arg}.count() << " ns";
    return least <= arg && arg <= most;
}

}  // namespace redlock::test
