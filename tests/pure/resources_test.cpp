// Several resources as one lock: all of them or none, with one owner and one validity.
#include "world.hpp"

namespace redlock::test::resources_test {
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

TEST_F(SeveralResources, ExcludeOverlappingLocks) {
    auto first = lock_of({"a", "b"});
    ASSERT_THAT(first.acquire(), Succeeds());
    EXPECT_THAT(lock_of({"b", "c"}).acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(lock_of({"c", "d"}).acquire(), Succeeds());
}

TEST_F(SeveralResources, AreSortedAndLockedOnce) {
    EXPECT_THAT(lock_of({"b", "a", "b"}).resources(), ElementsAre("a", "b"));
    EXPECT_EQ(lock_of({"b", "a"}).resource(), "a");
    const Lock listed{world, {"b", "a"}, {}, world.clock, world.entropy};
    EXPECT_THAT(listed.resources(), ElementsAre("a", "b"));
}

// A10. Rejected before any I/O. The message names the field.
TEST_F(SeveralResources, MustNotBeEmpty) {
    const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
        {{}, "list of resources is empty"},
        {{""}, "resource is empty"},
        {{"a", ""}, "resource is empty"},
        {std::vector<std::string>(1001, "a"), "1001 entries"},
        {{"a", "redlock:since"}, "resource is redlock:since; it must have another name"}};
    for (const auto& [resources, words] : wrong)
        EXPECT_THAT(refusal([this, &names = resources] { (void)lock_of(names); }), HasSubstr(words));
    EXPECT_EQ(refusal([this] { (void)lock_of(std::vector<std::string>(1000, "a")); }), "");
}

// Otherwise a lock with a queue, for example, could never be acquired, because the lock of one resource would
// be in the place of the queue of the other.
TEST_F(SeveralResources, MustNotBeNamedAsAKeyBesideEachOther) {
    for (const std::string suffix : {"queue", "queue:signs", "readers", "fence"}) {
        EXPECT_EQ(refusal([&] {
                      (void)lock_of({"a", "{a}:" + suffix});
                  }),
                  "redlock: resource {a}:" + suffix +
                      " is the name of a key beside the resource a; they cannot be locked together");
        EXPECT_NE(refusal([&] { (void)lock_of({"{a}:tag-" + suffix, "{a}"}); }), "");
        EXPECT_EQ(refusal([&] { (void)lock_of({"a", "{b}:" + suffix, "{a}:tag-" + suffix}); }), "");
        EXPECT_EQ(refusal([&] { (void)lock_of({"{a}:" + suffix}); }), "");
    }
}

}  // namespace
}  // namespace redlock::test::resources_test
