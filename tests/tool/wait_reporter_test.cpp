#include "run/wait_reporter.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace redlock::tool::wait_reporter_test {
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

// The second attempt, because most waits are over by then. A semaphore first tries its other slots.
TEST(WaitReporter, ReportsOnceThatTheResourceIsHeld) {
    const std::vector<std::string> first{"slot:0"};
    const std::vector<std::string> second{"slot:1"};
    const Tally free{std::make_shared<const std::vector<std::string>>(3, "a")};
    auto refused = free;
    refused.refuse(0);
    refused.refuse(2);
    const auto said_by = [&](WaitReporter reporter, const std::vector<std::vector<std::string>>& attempts) {
        testing::internal::CaptureStderr();
        for (const auto& resources : attempts)
            reporter.round_ended({.verb = Verb::set_if_absent, .resources = resources}, refused, 1ms);
        return testing::internal::GetCapturedStderr();
    };
    const std::string line = "redlock: waiting for job: held by another on 2 of 3 nodes\n";
    EXPECT_EQ(said_by({"job", true, true}, {first}), "");
    EXPECT_EQ(said_by({"job", true, true}, {first, second}), "");
    EXPECT_EQ(said_by({"job", true, true}, {first, second, first, second}), line);
    EXPECT_EQ(said_by({"job", true, true}, {{}, {}, {}}), line);
    EXPECT_EQ(said_by({"job", false, true}, {first, first}), "") << "nobody sits at a terminal";
    EXPECT_EQ(said_by({"job", true, false}, {first, first}), "") << "it does not wait";
}

// The caller has started it, and holds the lock until it ends. --also names further resources.
TEST(WaitReporter, ReportsOnceThatTheProcessMayWaitForItself) {
    const std::vector<std::string> resources{"other", "outer"};
    Tally refused{std::make_shared<const std::vector<std::string>>(1, "a")};
    refused.refuse(0);
    const auto said_by = [&](WaitReporter reporter) {
        testing::internal::CaptureStderr();
        for (int i = 0; i < 3; ++i)
            reporter.round_ended({.verb = Verb::set_if_absent, .resources = resources}, refused, 1ms);
        return testing::internal::GetCapturedStderr();
    };
    EXPECT_EQ(said_by({"job", false, true, "outer"}),
              "redlock: this process runs under a lock of outer already, and may wait for itself\n");
    EXPECT_EQ(said_by({"job", false, true, "out"}), "");
    EXPECT_EQ(said_by({"job", false, true}), "") << "the caller holds no lock";
    EXPECT_EQ(said_by({"job", false, false, "outer"}), "") << "it does not wait";
}

// The place in the queue says more.
TEST(WaitReporter, ReportsThePlaceInPlaceOfTheHolder) {
    const QueueTerms queue{.ticket = "ticket"};
    const Command attempt{.verb = Verb::set_if_absent};
    Tally refused{std::make_shared<const std::vector<std::string>>(1, "a")};
    refused.refuse(0);
    WaitReporter reporter{"job", true, true};
    testing::internal::CaptureStderr();
    reporter.round_ended(attempt, refused, 1ms);
    reporter.round_ended({.verb = Verb::enter_queue, .queue = &queue}, refused, 1ms);
    reporter.round_ended(attempt, refused, 1ms);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "redlock: waiting for job: free, nobody in front\n");
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
}  // namespace redlock::tool::wait_reporter_test
