// Rules B1 to B6: release reaches every node that may have our key, says what it found, and never throws.
#include "world.hpp"

#include <new>
#include <stdexcept>

namespace redlock::test {
namespace {

struct Release : testing::Test {
    Release() { EXPECT_THAT(lock.acquire(), Succeeds()); }

    World world;
    Lock lock = world.lock({.ttl = 10s});
};

TEST_F(Release, FreesTheResourceOnAllNodes) {
    const auto result = lock.release();
    EXPECT_THAT(result, Succeeds());
    EXPECT_TRUE(world.clean());
    EXPECT_FALSE(lock.valid());
    EXPECT_EQ(lock.owner(), "");
    EXPECT_EQ(result.attempts(), 1);
    for (const auto& node : result.nodes()) EXPECT_EQ(node.vote, Vote::granted);
}

// B1. To every node to which a byte of the SET may have been sent, whatever was answered; to no other.
TEST(Releasing, GoesWhereTheSetMayHaveGone) {
    World world{7};
    world.cut(0);
    world.silence(1);
    world.lie(Errc::unexpected_reply, 2);
    auto lock = world.lock(no_retry());
    ASSERT_THAT(lock.acquire(), Succeeds());
    world.heal_all();
    world.forget_events();
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_THAT(world.events(), ElementsAre("delete #1 on 1 2 3 4 5 6"));
}

// All nodes at once: the slowest alone counts.
TEST_F(Release, TakesNoLongerThanOneBudget) {
    world.silence(0, 1);
    world.slow(2, 30ms);
    EXPECT_THAT(time_taken(world, [&] { EXPECT_THAT(lock.release(), Succeeds()); }), Lasts(50ms));
}

// B5. A SET and the release behind it, executed late: no stray key.
TEST(Releasing, LeavesNoStrayKeyOnAFrozenNode) {
    World world;
    world.silence(4);
    auto lock = world.lock();
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    world.heal(4);
    EXPECT_TRUE(world.clean());
}

// B7. Nothing is ever sent for that owner afterwards.
TEST_F(Release, IsTheEndOfItsOwner) {
    EXPECT_THAT(lock.release(), Succeeds());
    world.forget_events();
    (void)lock.extend();
    (void)lock.release();
    lock.unlock();
    EXPECT_THAT(world.events(), IsEmpty());
}

// ---- Idempotent (B2).

// B2. A second release finds nothing to do.
TEST_F(Release, IsIdempotent) {
    EXPECT_THAT(lock.release(), Succeeds());
    world.forget_events();
    EXPECT_THAT(lock.release(), FailsWith(Errc::not_held));
    EXPECT_THAT(world.events(), IsEmpty());
}

// ---- Expired or lost (B3).

// B3. Releasing an expired lock is reported as such; its remains are removed.
TEST_F(Release, TellsThatTheLockHadExpired) {
    world.pass(lock.remaining());
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    EXPECT_TRUE(world.clean());
    EXPECT_THAT(lock.release(), FailsWith(Errc::not_held));
}

// B3, S8. What another holds by now is left alone.
TEST_F(Release, LeavesTheKeysOfOthersAlone) {
    world.pass(10s);
    auto theirs = world.lock();
    ASSERT_THAT(theirs.acquire(), Succeeds());
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    EXPECT_EQ(world.held_by(theirs.owner()), 5U);
}

// B3. So is a lock that a majority had forgotten within its validity.
TEST_F(Release, TellsThatAMajorityHadLostTheKey) {
    world.forget(0);
    world.forget(1);
    EXPECT_THAT(lock.release(), Succeeds()) << "three of five had it: held to the end";

    ASSERT_THAT(lock.acquire(), Succeeds());
    world.forget(0);
    world.forget(1);
    world.forget(2);
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    EXPECT_TRUE(world.clean());
}

// B3. The nodes that were down when it was acquired never had it.
TEST_F(Release, CountsNodesThatNeverHadOurKeyWithThoseThatLostIt) {
    (void)lock.release();
    world.cut(1, 4);
    ASSERT_THAT(lock.acquire(), Succeeds());
    world.heal(1, 4);
    world.forget(0);
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    EXPECT_TRUE(world.clean());
}

// B3, B4. What is lost may still have left keys where nobody answered.
TEST_F(Release, CanBeRepeatedAfterALossThatMostNodesDidNotAnswer) {
    (void)lock.release();
    world.cut(1, 4);
    ASSERT_THAT(lock.acquire(), Succeeds());
    world.forget(0);
    world.cut(2, 3);
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    world.heal(2, 3);
    (void)lock.release();
    EXPECT_TRUE(world.clean());
}

// ---- No answer (B4).

// B4. The owner is kept until a majority has answered, so that the release can be repeated.
TEST_F(Release, CanBeRepeatedAfterNoAnswer) {
    world.cut(0, 1, 2);
    EXPECT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    EXPECT_FALSE(lock.valid()) << "in every case, from now on";
    EXPECT_THAT(lock.remaining(), Lasts(0ns));
    EXPECT_EQ(world.held_by({}), 2U);

    world.heal(0, 1, 2);
    (void)lock.release();
    EXPECT_TRUE(world.clean());
    EXPECT_THAT(lock.release(), FailsWith(Errc::not_held));
}

// B4. The repeated one meets nodes that had deleted the key the first time: that is our own doing, and no
// loss.
TEST_F(Release, SucceedsWhenRepeatedThoughTheFirstHadWorked) {
    world.lose_replies_of(0, 1, 2);
    ASSERT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    ASSERT_TRUE(world.clean());
    world.heal(0, 1, 2);
    EXPECT_THAT(lock.release(), Succeeds());
}

// B3, B4. The first time, a node without the key has not confirmed anything: it had lost it before.
TEST_F(Release, NeedsAMajorityThatDeletedTheKeyTheFirstTime) {
    world.forget(0);
    world.cut(3, 4);
    EXPECT_THAT(lock.release(), FailsWith(Errc::no_quorum)) << "2 deleted, 1 had lost it, 2 unknown";
}

// B4. The same when some nodes had answered the first time and the others answer now.
TEST_F(Release, AddsUpWhatItsRepetitionsConfirm) {
    world.cut(2, 3, 4);
    ASSERT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    world.heal(2, 3);
    EXPECT_THAT(lock.release(), Succeeds()) << "two then, two more now";
    EXPECT_EQ(world.held_by({}), 4U);
}

// B4. Once valid_until has passed, the keys have expired or soon will: the owner is forgotten.
TEST_F(Release, IsNotRepeatedBeyondTheValidity) {
    world.cut(0, 1, 2);
    ASSERT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    world.pass(10s);
    world.heal(0, 1, 2);
    world.forget_events();
    EXPECT_THAT(lock.release(), FailsWith(Errc::not_held));
    EXPECT_THAT(world.events(), IsEmpty());
}

// B4. A release that got no answer cannot be taken back by extending.
TEST_F(Release, CannotBeUndoneByExtending) {
    world.cut(0, 1, 2);
    ASSERT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    world.heal(0, 1, 2);
    EXPECT_THAT(lock.extend(), FailsWith(Errc::not_held));
    EXPECT_FALSE(lock.valid());
}

// B4. Acquiring anew repeats the release first, or our own old key would keep us out.
TEST_F(Release, IsRepeatedByTheNextAcquire) {
    world.cut(0, 1, 2);
    ASSERT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    world.heal(0, 1, 2);
    EXPECT_THAT(lock.try_acquire(), Succeeds());
    EXPECT_EQ(world.held_by(lock.owner()), 5U);
}

// B4, B2. The destructor repeats it, too.
TEST(Releasing, IsRepeatedByTheDestructor) {
    World world;
    {
        auto lock = world.lock();
        ASSERT_THAT(lock.acquire(), Succeeds());
        world.cut_all();
        ASSERT_THAT(lock.release(), FailsWith(Errc::no_quorum));
        world.heal_all();
    }
    EXPECT_TRUE(world.clean());
}

// ---- Never throws (B2).

static_assert(noexcept(std::declval<Lock&>().release()));
static_assert(noexcept(std::declval<Lock&>().unlock()));
static_assert(std::is_nothrow_destructible_v<Lock>);

/// Grants everything, until it breaks the contract and throws.
template <class Thrown>
class BreakingNodes : public Nodes {
public:
    BreakingNodes() : Nodes({"a", "b", "c"}) {}

    void ask(std::span<const Request> requests, const RoundLimits&, std::span<Tally> tallies) override {
        if (broken) throw Thrown{};
        for (std::size_t i = 0; i < requests.size(); ++i)
            for (std::size_t node = 0; node < size(); ++node)
                if (requests[i].to[node]) tallies[i].grant(node);
    }

    bool broken = false;
};

struct Surprise {};

// B2. A Nodes of the user's own that throws terminates nothing; how the nodes stand is unknown.
TEST(Releasing, SurvivesNodesThatThrow) {
    World world;
    BreakingNodes<Surprise> nodes;
    Lock lock{nodes, the_resource, {}, world.clock, world.entropy};
    ASSERT_THAT(lock.acquire(), Succeeds());
    nodes.broken = true;
    EXPECT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    EXPECT_FALSE(lock.valid());
    lock.unlock();
    nodes.broken = false;
    EXPECT_THAT(lock.release(), Succeeds()) << "B4: it can be repeated";
}

TEST(Releasing, SurvivesAWantOfMemory) {
    World world;
    BreakingNodes<std::bad_alloc> nodes;
    Lock lock{nodes, the_resource, {}, world.clock, world.entropy};
    ASSERT_THAT(lock.acquire(), Succeeds());
    nodes.broken = true;
    EXPECT_EQ(lock.release().error(), std::errc::not_enough_memory);
}

// B2. So does the destructor.
TEST(Releasing, SurvivesNodesThatThrowInTheDestructor) {
    World world;
    BreakingNodes<Surprise> nodes;
    {
        Lock lock{nodes, the_resource, {}, world.clock, world.entropy};
        ASSERT_THAT(lock.acquire(), Succeeds());
        nodes.broken = true;
    }
}

// B2. An exception of the caller's own that unwinds the stack is never replaced.
TEST(Releasing, NeverReplacesTheCallersException) {
    World world;
    BreakingNodes<Surprise> nodes;
    try {
        Lock lock{nodes, the_resource, {}, world.clock, world.entropy};
        ASSERT_THAT(lock.acquire(), Succeeds());
        nodes.broken = true;
        throw std::runtime_error("the caller's own");
    } catch (const std::runtime_error& theirs) {
        EXPECT_STREQ(theirs.what(), "the caller's own");
    }
}

}  // namespace
}  // namespace redlock::test
