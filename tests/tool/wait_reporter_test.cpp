#include "wait_reporter.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;
using Held = QueuePlace::Held;

TEST(WaitReporter, ReportsTheMaximumTimeAndTheWaitersInFront) {
    EXPECT_EQ(text_of({Held::by_holder, 11'001ms, 3}), "held for at most 12 s more, 3 in front");
    EXPECT_EQ(text_of({Held::by_holder, 0ms, 0}), "held for at most 0 s more, nobody in front");
    EXPECT_EQ(text_of({Held::by_holder, -1ms, 1}), "held without an end, 1 in front");
    EXPECT_EQ(text_of({Held::by_waiter, 100ms, 1}), "being handed over, 1 in front");
    EXPECT_EQ(text_of({Held::by_nobody, -1ms, 2}), "free, 2 in front");
}

TEST(WaitReporter, ReportsMissingNodesOnlyAfterRepeatedFailures) {
    const Command attempt{.verb = Verb::set_if_absent};
    const Tally silent{std::make_shared<const std::vector<std::string>>(3, "a")};
    auto refused = silent;
    for (std::size_t node = 0; node < 3; ++node) refused.refuse(node);
    WaitReporter reporter{"job", false, true};
    WaitReporter reporter_of_nonblock{"job", false, false};
    const auto said_after = [&](const std::vector<Tally>& rounds) {
        testing::internal::CaptureStderr();
        for (const auto& tally : rounds) {
            reporter.round_ended(attempt, tally, 1ms);
            reporter_of_nonblock.round_ended(attempt, tally, 1ms);
        }
        return testing::internal::GetCapturedStderr();
    };
    EXPECT_EQ(said_after({silent, silent, refused, silent, silent}), "");
    EXPECT_EQ(said_after({silent}),
              "redlock: job: no quorum: granted by 0 of 3 nodes, 3 attempts; waiting\n");
    EXPECT_EQ(said_after({silent, silent, silent}), "") << "once is enough";
}

TEST(WaitReporter, EscapesTheNameOfTheResource) {
    WaitReporter reporter{"job\x1b[31m\n", false, true};
    const Tally silent{std::make_shared<const std::vector<std::string>>(3, "a")};
    testing::internal::CaptureStderr();
    const Command attempt{.verb = Verb::set_if_absent};
    for (int i = 0; i < 3; ++i) reporter.round_ended(attempt, silent, 1ms);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "redlock: job\\x1b[31m\\x0a: no quorum: granted by 0 of 3 nodes, 3 attempts; waiting\n");
}

}  // namespace
}  // namespace redlock::tool
