// Fencing tokens: strictly larger from one holder to the next, in one round where the counts agree.
#include "world.hpp"

namespace redlock::test {
namespace {

struct Fencing : testing::Test {
    World world;
    Lock lock = world.lock({.ttl = 10s, .retry = {.attempts = 1}, .fencing = true});

    /// Acquires, releases, and says the token.
    std::uint64_t token_of_a_holder() {
        EXPECT_THAT(lock.acquire(), Succeeds());
        const auto token = lock.fencing_token();
        (void)lock.release();
        return token;
    }
};

// Where all nodes have counted alike, the first round shows it.
TEST_F(Fencing, TakesOneRoundWhereTheCountsAgree) {
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(lock.fencing_token(), 1U);
    EXPECT_THAT(world.story(), ElementsAre("set and count #1 for 10000 ms"));
}

TEST_F(Fencing, GrowsFromOneHolderToTheNext) {
    std::uint64_t last = 0;
    for (std::size_t holder = 0; holder < 100; ++holder) {
        for (std::size_t node = 0; node < 5; ++node)
            if ((holder + node) % 3 == 0) world.cut(node);
        const auto token = token_of_a_holder();
        EXPECT_GT(token, last);
        last = token;
        world.heal_all();
    }
}

// Where they differ, the second raises the others to the largest.
TEST_F(Fencing, TakesASecondRoundWhereTheCountsDiffer) {
    world.count_on(3, 8);
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(lock.fencing_token(), 9U);
    EXPECT_THAT(world.story(), ElementsAre("set and count #1 for 10000 ms", "raise #1 to 9"));
    for (std::size_t node = 0; node < 5; ++node) EXPECT_EQ(world.counted_on(node), 9U);
}

// A majority that has counted so far is enough.
TEST_F(Fencing, NeedsNoMoreThanAMajorityThatAgrees) {
    for (const std::size_t node : {0U, 2U, 4U}) world.count_on(node, 8);
    EXPECT_EQ(token_of_a_holder(), 9U);
    EXPECT_THAT(world.story(), Each(Not(HasSubstr("raise"))));
}

// Without the majority of the second round there is no token, and no lock: the next holder could get the
// same.
TEST_F(Fencing, FailsWithoutAMajorityInTheSecondRound) {
    world.count_on(3, 8);
    world.slow(4, 10ms);  // the last in turn: what happens meanwhile happens between the rounds
    world.after(5ms, [&] { world.cut(0, 1, 2); });
    EXPECT_THAT(lock.acquire(), FailsWith(Errc::no_quorum));
    EXPECT_EQ(lock.fencing_token(), 0U);
    EXPECT_EQ(world.owner_on(3), "") << "given back";
    EXPECT_EQ(world.owner_on(4), "");
}

// A node that lost our key between the rounds does not take part, and its count stays: its next holder may
// have got a token already.
TEST_F(Fencing, RaisesNoCountWhereTheKeyIsGone) {
    world.count_on(3, 8);
    world.slow(4, 10ms);
    world.after(5ms, [&] { world.occupy(1min, 0); });
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(lock.fencing_token(), 9U);
    EXPECT_EQ(world.counted_on(0), 1U);
    EXPECT_EQ(world.counted_on(1), 9U);
}

// Nor one that was restarted and counts nothing: the next grant there is to begin with a seed.
TEST_F(Fencing, BeginsNoCountInTheSecondRound) {
    world.count_on(3, 8);
    world.slow(4, 10ms);
    world.after(5ms, [&] { world.forget(0); });
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(world.counted_on(0), 0U);
}

// The validity counts from the first round, and is looked at after the second.
TEST_F(Fencing, TakesTheSecondRoundOutOfTheValidity) {
    world.count_on(3, 8);
    world.slow(1, 40ms);
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_THAT(lock.remaining(), Lasts(10s - 102ms - 80ms));
}

TEST_F(Fencing, FailsWhenTheSecondRoundUsesUpTheValidity) {
    auto brief = world.lock({.ttl = 100ms, .retry = {.attempts = 1}, .drift_factor = 0, .fencing = true});
    world.count_on(3, 8);
    world.slow(1, 49ms);
    world.overrun_deadlines();
    EXPECT_THAT(brief.acquire(), FailsWith(Errc::validity_exhausted));
    EXPECT_EQ(brief.fencing_token(), 0U);
    EXPECT_TRUE(world.clean());
}

// Without the option: a plain SET, and no number.
TEST_F(Fencing, IsOffByDefault) {
    auto plain = world.lock();
    ASSERT_THAT(plain.acquire(), Succeeds());
    EXPECT_EQ(plain.fencing_token(), 0U);
    EXPECT_THAT(world.story(), ElementsAre("set #1 for 10000 ms"));
}

TEST_F(Fencing, StaysWhileItIsExtendedAndEndsWithTheRelease) {
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_EQ(lock.fencing_token(), 1U);
    EXPECT_EQ(world.counted_on(0), 1U);
    (void)lock.release();
    EXPECT_EQ(lock.fencing_token(), 0U);
    EXPECT_EQ(world.counted_on(0), 1U) << "the count outlives the lock";
}

}  // namespace
}  // namespace redlock::test
