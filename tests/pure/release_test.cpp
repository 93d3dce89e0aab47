// Rules B1 to B6: release() reaches every node that may have our key, reports what it found, and never
// throws.
#include "fronts.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace redlock::test::release_test {
namespace {

struct Release : testing::TestWithParam<Front> {
    /// Acquires again on nodes 0, 2 and 3, while 1 and 4 are down.
    void hold_on_a_bare_majority() {
        (void)lock.release();
        world.cut(1, 4);
        ASSERT_THAT(lock.acquire(), Succeeds());
    }

    AnyWorld world{GetParam()};
    AnyLock lock = world.held({.ttl = 10s});
};
INSTANTIATE_TEST_SUITE_P(Each, Release, each_front, testing::PrintToStringParamName());

// S10. The next client need not wait for the ttl.
TEST_P(Release, FreesTheResourceOnAllNodes) {
    const auto result = lock.release();
    EXPECT_THAT(result, Succeeds());
    EXPECT_TRUE(world.clean());
    EXPECT_FALSE(lock.valid());
    EXPECT_EQ(lock.owner(), "");
    EXPECT_EQ(result.attempts(), 1);
    for (const auto& node : result.nodes()) EXPECT_EQ(node.vote, Vote::granted);
}

// A lock may live as long as its thread. So everything that the release uses must live longer.
TEST(Releasing, IsStillPossibleAtTheEndOfTheThread) {
    World world;
    const std::string resource(100, 'r');
    std::thread{[&] {
        thread_local std::optional<Lock> lock;
        lock.emplace(world.lock(resource, {.ttl = 10s, .fair = true}));
        EXPECT_THAT(lock->acquire(), Succeeds());
    }}.join();
    EXPECT_TRUE(world.clean());
}

// B1, S26. The release goes to every node to which a byte of the SET may have been sent, whatever it replied,
// and to no other.
TEST_P(Release, ReachesEveryNodeThatMayHaveGotTheSet) {
    AnyWorld seven{GetParam(), 7U};
    seven.cut(0);
    seven.silence(1);
    seven.lie(Errc::unexpected_reply, 2);
    auto its_lock = seven.held();
    seven.heal_all();
    seven.forget_events();
    EXPECT_THAT(its_lock.release(), Succeeds());
    EXPECT_THAT(seven.events(), ElementsAre("delete #1 on 1 2 3 4 5 6"));
}

// B2, B7. A second release finds nothing to do, and nothing is sent for this owner afterwards.
TEST_P(Release, IsTheLastCommandWithItsOwner) {
    EXPECT_THAT(lock.release(), Succeeds());
    world.forget_events();
    EXPECT_THAT(lock.release(), FailsWith(Errc::not_held));
    EXPECT_THAT(lock.extend(), FailsWith(Errc::not_held));
    EXPECT_THAT(world.events(), IsEmpty());
}

// ---- Lost (B3). lock_test.cpp has the lock whose validity is over.

// B3. If a majority has forgotten a lock within its validity, the lock is reported as lost.
TEST_P(Release, ReportsThatAMajorityHadLostTheKey) {
    world.forget(0, 1);
    EXPECT_THAT(lock.release(), Succeeds()) << "three of five had it: held to the end";

    ASSERT_THAT(lock.acquire(), Succeeds());
    world.forget(0, 1, 2);
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    EXPECT_TRUE(world.clean());
}

// B3, A12. A node on which the resource is a key of another type has lost our key, and says why.
TEST_P(Release, CountsNodesWithAKeyOfAnotherTypeAsNodesThatLostIt) {
    world.replace_by_a_list(0, 1);
    const auto released = lock.release();
    EXPECT_THAT(released, Succeeds()) << "three of five had it: held to the end";
    EXPECT_EQ(released.nodes()[0].vote, Vote::refused);
    EXPECT_EQ(released.nodes()[0].cause, Errc::wrong_type);

    world.command(0, {"DEL", the_resource});
    ASSERT_THAT(lock.acquire(), Succeeds());
    world.replace_by_a_list(0, 1, 2);
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    EXPECT_EQ(lock.owner(), "") << "there is nothing to repeat";
    EXPECT_EQ(world.held_by(""), 5U) << "a list has no text";
    EXPECT_EQ(world.command(2, {"TYPE", the_resource}), "list");
}

// B3. The keys of a lock of several resources do not depend on each other.
TEST_P(Release, DeletesTheKeysBesideAKeyOfAnotherType) {
    (void)lock.release();
    auto several = world.held({the_resource, "z"}, {.ttl = 10s});
    world.replace_by_a_list(0, 1, 2);
    EXPECT_THAT(several.release(), FailsWith(Errc::lost));
    EXPECT_EQ(world.held_by("", "z"), 5U);
}

// B3. The nodes that were down at the acquisition never had the key.
TEST_P(Release, CountsNodesWithoutOurKeyAsNodesThatLostIt) {
    hold_on_a_bare_majority();
    world.heal(1, 4);
    world.forget(0);
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    EXPECT_TRUE(world.clean());
}

// B3, B4. A lost lock may still have keys on nodes that did not reply.
TEST_P(Release, DeletesTheRemainingKeysIfRepeatedAfterALoss) {
    hold_on_a_bare_majority();
    world.forget(0);
    world.cut(2, 3);
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    world.heal(2, 3);
    (void)lock.release();
    EXPECT_TRUE(world.clean());
}

// ---- No reply (B4).

/// Three of five nodes did not reply, and have recovered.
struct UnansweredRelease : Release {
    UnansweredRelease() {
        world.cut(0, 1, 2);
        EXPECT_THAT(lock.release(), FailsWith(Errc::no_quorum));
        EXPECT_FALSE(lock.valid()) << "in every case, from now on";
        EXPECT_THAT(lock.remaining(), Lasts(0ns));
        EXPECT_EQ(world.held_by({}), 2U);
        world.heal(0, 1, 2);
    }
};
INSTANTIATE_TEST_SUITE_P(Each, UnansweredRelease, each_front, testing::PrintToStringParamName());

// B4. The owner is kept until a majority has replied, so that the release can be repeated.
TEST_P(UnansweredRelease, CanBeRepeated) {
    (void)lock.release();
    EXPECT_TRUE(world.clean());
    EXPECT_THAT(lock.release(), FailsWith(Errc::not_held));
}

// B4. The repeated release finds no key on nodes that deleted it the first time. This is no loss.
TEST_P(Release, SucceedsIfRepeatedAfterItsRepliesWereLost) {
    world.lose_replies_of(0, 1, 2);
    ASSERT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    ASSERT_TRUE(world.clean());
    world.heal(0, 1, 2);
    EXPECT_THAT(lock.release(), Succeeds());
}

// B3, B4. At the first release, a node without the key confirms nothing, because it had lost the key before.
TEST_P(Release, NeedsAMajorityThatDeletedTheKeyTheFirstTime) {
    world.forget(0);
    world.cut(3, 4);
    EXPECT_THAT(lock.release(), FailsWith(Errc::no_quorum)) << "2 deleted, 1 had lost it, 2 unknown";
}

// B4. A quorum replied, but too few nodes confirmed. It is unknown whether the silent nodes have the key.
TEST_P(Release, CanBeRepeatedIfAQuorumRepliedButNoQuorumConfirmed) {
    world.forget(0, 1);
    world.silence(3, 4);
    const auto owner = std::string{lock.owner()};
    const auto result = lock.release();
    ASSERT_THAT(result, FailsWith(Errc::no_quorum)) << "1 deleted, 2 had lost it, 2 unknown";
    EXPECT_THAT(result.validity(), Lasts(0ns));
    EXPECT_EQ(lock.owner(), owner);
    world.heal(3, 4);
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

// B4. The same if some nodes replied the first time and the others reply now.
TEST_P(Release, AddsUpTheConfirmationsOfItsRepetitions) {
    world.cut(2, 3, 4);
    ASSERT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    world.heal(2, 3);
    EXPECT_THAT(lock.release(), Succeeds()) << "two then, two more now";
    EXPECT_EQ(world.held_by({}), 4U);
}

// B4. Once valid_until has passed, the keys have expired or soon will, so the owner is forgotten.
TEST_P(UnansweredRelease, IsNotRepeatedAfterTheValidity) {
    world.pass(10s);
    world.forget_events();
    EXPECT_THAT(lock.release(), FailsWith(Errc::not_held));
    EXPECT_THAT(world.events(), IsEmpty());
}

// B4. An extension cannot undo a release.
TEST_P(UnansweredRelease, CannotBeUndoneByAnExtension) {
    EXPECT_THAT(lock.extend(), FailsWith(Errc::not_held));
    EXPECT_FALSE(lock.valid());
}

// B4. acquire() repeats the release first. Otherwise our own old key would exclude us.
TEST_P(UnansweredRelease, IsRepeatedByTheNextAcquire) {
    EXPECT_THAT(lock.try_acquire(), Succeeds());
    EXPECT_EQ(world.held_by(lock.owner()), 5U);
}

// B4, B2. The destructor repeats the release, too.
TEST_P(UnansweredRelease, IsRepeatedByTheDestructor) {
    { const auto gone = std::move(lock); }
    EXPECT_TRUE(world.clean());
}

// ---- Never throws (B2).

static_assert(noexcept(std::declval<Lock&>().release()));
static_assert(noexcept(std::declval<Lock&>().unlock()));
static_assert(std::is_nothrow_destructible_v<Lock>);

struct Surprise {};

/// Lets each further round throw, which violates the contract of Nodes.
void break_down(World& world) {
    world.before_round = [](auto&&...) { throw Surprise{}; };
}

// B2. An exception from a user's Nodes does not end the process. The state of the nodes is then unknown.
TEST(Releasing, SurvivesNodesThatThrow) {
    World world;
    auto lock = world.held();
    break_down(world);
    EXPECT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    EXPECT_FALSE(lock.valid());
    lock.unlock();
    world.before_round = {};
    EXPECT_THAT(lock.release(), Succeeds()) << "B4: it can be repeated";
}

// B2. The destructor catches it as well, and does not replace an exception that unwinds the caller.
TEST(Releasing, NeverReplacesTheCallersException) {
    World world;
    try {
        const auto lock = world.held();
        break_down(world);
        throw std::runtime_error("the caller's own");
    } catch (const std::runtime_error& theirs) {
        EXPECT_STREQ(theirs.what(), "the caller's own");
    }
}

}  // namespace
}  // namespace redlock::test::release_test
