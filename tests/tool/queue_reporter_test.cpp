#include "queue_reporter.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;
using Held = QueuePlace::Held;

TEST(QueueReporter, SaysForHowLongAtMostAndHowManyAreInFront) {
    EXPECT_EQ(text_of({Held::by_holder, 11'001ms, 3}), "held for at most 12 s more, 3 in front");
    EXPECT_EQ(text_of({Held::by_holder, 0ms, 0}), "held for at most 0 s more, nobody in front");
    EXPECT_EQ(text_of({Held::by_holder, -1ms, 1}), "held without an end, 1 in front");
    EXPECT_EQ(text_of({Held::by_waiter, 100ms, 1}), "being handed over, 1 in front");
    EXPECT_EQ(text_of({Held::by_nobody, -1ms, 2}), "free, 2 in front");
}

}  // namespace
}  // namespace redlock::tool
