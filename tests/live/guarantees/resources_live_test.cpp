// Several resources as one lock, on real servers: one script a node, all or none.
#include "guarantee_world.hpp"

namespace redlock::test {
namespace {

class SeveralResources : public InEachRound {
protected:
    Lock lock_of(std::vector<std::string> resources, LockOptions options = no_retry()) {
        return Lock{world.nodes, std::move(resources), options};
    }

    LiveWorld world{3, {.node_timeout = 1s, .round = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Asking, SeveralResources, each_round(), by_round);

TEST_P(SeveralResources, AreLockedExtendedAndReleasedTogether) {
    auto lock = lock_of({"a", "b", std::string{"c\0\n", 3}});
    ASSERT_THAT(lock.acquire(), Succeeds());
    for (const auto& resource : lock.resources())
        for (const auto& server : world)
            EXPECT_TRUE(wait_until([&] { return holder(server, resource) == lock.owner(); }));
    EXPECT_THAT(lock.extend(1min), Succeeds());
    EXPECT_THAT(expiry(world[0], "a"), LastsAtLeast(30s));
    EXPECT_THAT(expiry(world[0], "b"), LastsAtLeast(30s));
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

TEST_P(SeveralResources, AreNotLockedInPart) {
    auto single = lock_of({"b"});
    ASSERT_THAT(single.acquire(), Succeeds());
    auto both = lock_of({"a", "b"});
    EXPECT_THAT(both.acquire(), FailsWith(Errc::held_by_other));
    for (const auto& server : world) EXPECT_EQ(holder(server, "a"), "(nil)");
    EXPECT_THAT(single.release(), Succeeds());
    EXPECT_THAT(both.acquire(), Succeeds());
}

// C1. One resource lost is a refusal; of the rest nothing is left by the release.
TEST_P(SeveralResources, AreExtendedTogetherOrNotAtAll) {
    auto lock = lock_of({"a", "b"});
    ASSERT_THAT(lock.acquire(), Succeeds());
    for (const auto& server : world)
        ASSERT_TRUE(wait_until([&] { return server.command({"DEL", "a"}) == "1"; }));
    EXPECT_THAT(lock.extend(1min), FailsWith(Errc::lost));
    EXPECT_THAT(expiry(world[0], "b"), LastsAtMost(10s));
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    EXPECT_TRUE(world.clean());
}

TEST_P(SeveralResources, AreOneRoundHoweverMany) {
    std::vector<std::string> many;
    for (int i = 0; i < 500; ++i) many.push_back("resource " + std::to_string(i));
    auto lock = lock_of(many);
    ASSERT_TRUE(world.warm_up());
    CommandMonitor monitor{world[0]};
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_THAT(monitor.commands("500"), SizeIs(3)) << "so many keys at a time";
    EXPECT_TRUE(world.clean());
}

// With everything at once.
TEST(SeveralResourcesInQuarantine, AreCountedAndLockedTogether) {
    QuarantineWorld world;
    Lock lock{world.nodes, {"a", "b"}, {.ttl = quarantine, .fencing = true}};
    ASSERT_THAT(lock.acquire(), Succeeds());
    const auto first = lock.fencing_token();
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    Lock overlapping{world.nodes, {"b", "c"}, {.ttl = quarantine, .fencing = true}};
    ASSERT_THAT(overlapping.acquire(), Succeeds());
    EXPECT_GT(overlapping.fencing_token(), first);
}

}  // namespace
}  // namespace redlock::test
