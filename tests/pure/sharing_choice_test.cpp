// Whether the round of a thread shares its connections: each row of the tables.
#include <redlock/detail/sharing_choice.hpp>

#include <gtest/gtest.h>

namespace redlock::detail {
namespace {

TEST(SharingChoiceOfThreads, ACommandFollowsAnotherOneOfTheOwnSet) {
    for (const bool follows_shared : {false, true})
        for (const unsigned calm : {0U, 1U, rounds_until_own})
            EXPECT_FALSE(uses_shared_set({true, follows_shared, calm}));
}

TEST(SharingChoiceOfThreads, ACommandFollowsAnotherOneOfTheSharedSet) {
    for (const unsigned calm : {0U, 1U, rounds_until_own}) EXPECT_TRUE(uses_shared_set({false, true, calm}));
}

TEST(SharingChoiceOfThreads, OtherCommandsUseTheSetOfTheMoment) {
    EXPECT_TRUE(uses_shared_set({.calm = 1}));
    EXPECT_FALSE(uses_shared_set({.calm = 0}));
}

TEST(SharingChoiceOfThreads, TheRenewalOfAWatchdogDependsOnNoOtherThread) {
    for (const bool late : {false, true})
        EXPECT_FALSE(uses_shared_set({.calm = 1, .renewal = true, .leader_is_late = late}));
    EXPECT_FALSE(uses_shared_set({.follows_shared = true, .renewal = true}));
}

TEST(SharingChoiceOfThreads, ALateLeaderIsFollowedOnlyIfACommandFollowsAnotherOne) {
    EXPECT_FALSE(uses_shared_set({.calm = 1, .leader_is_late = true}));
    EXPECT_TRUE(uses_shared_set({.follows_shared = true, .leader_is_late = true}));
}

TEST(NextCalm, StartsAgainIfMoreRoundsThanProcessorsAreUnderWay) {
    for (const unsigned calm : {0U, 1U, rounds_until_own})
        for (const std::size_t processors : {1U, 2U, 64U})
            EXPECT_EQ(next_calm(calm, processors + 1, processors), rounds_until_own);
}

TEST(NextCalm, CountsDownOtherwise) {
    for (const std::size_t rounds : {1U, 2U}) {
        EXPECT_EQ(next_calm(rounds_until_own, rounds, 2), rounds_until_own - 1);
        EXPECT_EQ(next_calm(1, rounds, 2), 0U);
        EXPECT_EQ(next_calm(0, rounds, 2), 0U);
    }
}

}  // namespace
}  // namespace redlock::detail
