// Which lane the round of a thread uses, and when the thread wakes the leading thread: each row of the
// tables.

#include <gtest/gtest.h>

#include "round/lane_choice.hpp"
#include "round/write_choice.hpp"

#include <chrono>
#include <optional>

namespace redlock::detail::lane_choice_test {
namespace {

using namespace std::chrono_literals;

constexpr auto every_number = {0U, 1U, rounds_until_alone};

TEST(LaneChoice, TheRenewalOfAWatchdogDependsOnNoOtherThread) {
    for (const unsigned rounds_to_share : every_number)
        EXPECT_FALSE(shares_lane({.of_watchdog = true, .rounds_to_share = rounds_to_share}));
}

TEST(LaneChoice, SharingCanBeSwitchedOff) {
    for (const unsigned rounds_to_share : every_number)
        EXPECT_FALSE(shares_lane({.may_share = false, .rounds_to_share = rounds_to_share}));
}

TEST(LaneChoice, ALateLeadingThreadIsNotWaitedFor) {
    for (const unsigned rounds_to_share : every_number)
        EXPECT_FALSE(shares_lane({.leading_thread_is_stalled = true, .rounds_to_share = rounds_to_share}));
}

TEST(LaneChoice, ALaneThatReachesAQuorumIsPreferred) {
    for (const unsigned rounds_to_share : every_number) {
        EXPECT_FALSE(shares_lane({.shared_lacks_quorum = true, .rounds_to_share = rounds_to_share}));
        EXPECT_TRUE(shares_lane({.own_lacks_quorum = true, .rounds_to_share = rounds_to_share}));
        EXPECT_EQ(
            shares_lane(
                {.shared_lacks_quorum = true, .own_lacks_quorum = true, .rounds_to_share = rounds_to_share}),
            rounds_to_share > 0);
        EXPECT_FALSE(
            shares_lane({.of_watchdog = true, .own_lacks_quorum = true, .rounds_to_share = rounds_to_share}));
    }
}

TEST(LaneChoice, OtherwiseRoundsShareWhileThereAreMany) {
    EXPECT_TRUE(shares_lane({.rounds_to_share = 1}));
    EXPECT_FALSE(shares_lane({.rounds_to_share = 0}));
}

TEST(NextRoundsToShare, StartsAgainIfMoreRoundsThanProcessorsAreUnderWay) {
    for (const unsigned rounds_to_share : {0U, 1U, rounds_until_alone})
        for (const std::size_t processors : {1U, 2U, 64U})
            EXPECT_EQ(next_rounds_to_share(rounds_to_share, processors + 1, processors), rounds_until_alone);
}

TEST(NextRoundsToShare, CountsDownOtherwise) {
    for (const std::size_t rounds : {1U, 2U}) {
        EXPECT_EQ(next_rounds_to_share(rounds_until_alone, rounds, 2), rounds_until_alone - 1);
        EXPECT_EQ(next_rounds_to_share(1, rounds, 2), 0U);
        EXPECT_EQ(next_rounds_to_share(0, rounds, 2), 0U);
    }
}

// C6. A watchdog that asks shortly before it has to report a loss must not wait for long.
TEST(TheLeadingThread, IsWokenAtOnceByARoundWithLittleTime) {
    EXPECT_EQ(wakes_leading_thread_after(true, max_collecting), 0ns);
    EXPECT_EQ(wakes_leading_thread_after(false, max_collecting), 0ns);
    EXPECT_EQ(wakes_leading_thread_after(false, -1s), 0ns);
    EXPECT_EQ(wakes_leading_thread_after(true, max_collecting + 1ns), max_collecting);
    EXPECT_EQ(wakes_leading_thread_after(false, max_collecting + 1ns), std::nullopt);
}

}  // namespace
}  // namespace redlock::detail::lane_choice_test
