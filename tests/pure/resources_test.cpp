// Several resources as one lock: all of them or none, one owner, one validity.
#include "world.hpp"

namespace redlock::test {
namespace {

struct SeveralResources : testing::Test {
    Lock lock_of(std::vector<std::string> resources, LockOptions options = no_retry()) {
        return Lock{world, std::move(resources), options, world.clock, world.entropy};
    }

    World world;
};

TEST_F(SeveralResources, AreLockedTogether) {
    auto lock = lock_of({"a", "b"});
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(world.held_by(lock.owner(), "a"), 5U);
    EXPECT_EQ(world.held_by(lock.owner(), "b"), 5U);
    EXPECT_THAT(lock.extend(1min), Succeeds());
    EXPECT_THAT(world.ttl_on(0, "b"), Lasts(1min));
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_EQ(world.held_by({}, "a"), 5U);
    EXPECT_EQ(world.held_by({}, "b"), 5U);
    EXPECT_THAT(world.events(), SizeIs(3)) << "a round each";
}

// A node grants all of them or none.
TEST_F(SeveralResources, AreNotLockedInPart) {
    auto holder = lock_of({"b"});
    ASSERT_THAT(holder.acquire(), Succeeds());
    EXPECT_THAT(lock_of({"a", "b"}).acquire(), FailsWith(Errc::held_by_other));
    EXPECT_EQ(world.held_by({}, "a"), 5U);
    EXPECT_EQ(world.held_by(holder.owner(), "b"), 5U);
}

TEST_F(SeveralResources, ExcludeLocksThatOverlap) {
    auto first = lock_of({"a", "b"});
    ASSERT_THAT(first.acquire(), Succeeds());
    EXPECT_THAT(lock_of({"b", "c"}).acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(lock_of({"c", "d"}).acquire(), Succeeds());
}

// One that is lost on a majority is the loss of the whole.
TEST_F(SeveralResources, AreLostTogether) {
    auto lock = lock_of({"a", "b"});
    ASSERT_THAT(lock.acquire(), Succeeds());
    for (std::size_t node = 0; node < 3; ++node) world.forget(node);
    EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
}

TEST_F(SeveralResources, AreSortedAndLockedOnce) {
    EXPECT_THAT(lock_of({"b", "a", "b"}).resources(), ElementsAre("a", "b"));
    EXPECT_EQ(lock_of({"b", "a"}).resource(), "a");
    const Lock listed{world, {"b", "a"}, {}, world.clock, world.entropy};
    EXPECT_THAT(listed.resources(), ElementsAre("a", "b"));
}

// A10. Refused before any I/O, by the name of the field.
TEST_F(SeveralResources, HaveToBeNamed) {
    const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
        {{}, "list of resources is empty"},
        {{"a", ""}, "resource is empty"},
        {std::vector<std::string>(1001, "a"), "1001 entries"}};
    for (const auto& [resources, words] : wrong) {
        try {
            (void)lock_of(resources);
            ADD_FAILURE() << "accepted: " << words;
        } catch (const std::invalid_argument& refused) {
            EXPECT_THAT(refused.what(), HasSubstr(words));
        }
    }
}

// Each resource has its count; the token is larger than what any of them has seen.
TEST_F(SeveralResources, AreCountedEachForItself) {
    for (std::size_t node = 0; node < 5; ++node) world.count_on(node, 7, "b");
    auto both = lock_of({"a", "b"}, {.fencing = true});
    ASSERT_THAT(both.acquire(), Succeeds());
    EXPECT_EQ(both.fencing_token(), 8U);
    (void)both.release();
    auto one = lock_of({"a"}, {.fencing = true});
    ASSERT_THAT(one.acquire(), Succeeds());
    EXPECT_EQ(one.fencing_token(), 9U);
}

}  // namespace
}  // namespace redlock::test
