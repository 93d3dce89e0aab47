// Readers (LockOptions::shared) against real servers. They hold the lock together, and never together with
// any other client, even one that does not know of readers.
#include "live/live_world.hpp"

#include <deque>
#include <string>

namespace redlock::test {
namespace {

using support::wait_until;
using namespace std::chrono_literals;

struct Shared : testing::TestWithParam<Round> {
    Lock reader(LockOptions options = {}) {
        options.shared = true;
        options.retry.attempts = 1;
        return world.lock(options);
    }
    Lock writer(LockOptions options = {}) {
        options.retry.attempts = 1;
        return world.lock(options);
    }
    /// Sends what plain Redlock clients in any language send. Returns the number of grants.
    std::size_t grants_to_foreigner() {
        std::size_t grants = 0;
        for (auto& server : world) grants += occupy(server) == "OK" ? 1U : 0U;
        return grants;
    }
    /// Returns the number of readers on the last server. The others are alike.
    std::string readers() {
        return world[2].command({"ZCARD", "{" + std::string{the_resource} + "}:readers"});
    }
    bool nothing_left() {
        return wait_until([&] {
            return std::ranges::all_of(world, [](auto& it) { return it.command({"DBSIZE"}) == "0"; });
        });
    }

    LiveWorld world{3, {.node_timeout = 2s, .round = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(EachRound, Shared, each_round(), by_round);

TEST_P(Shared, IsHeldWithOtherReadersAndWithNoOtherClient) {
    ASSERT_TRUE(world.warm_up());
    auto one = reader();
    auto other = reader();
    ASSERT_THAT(one.acquire(), Succeeds());
    ASSERT_THAT(other.acquire(), Succeeds());
    EXPECT_EQ(writer().acquire().error(), Errc::held_by_other);
    EXPECT_LT(grants_to_foreigner(), 2U);
    EXPECT_THAT(one.release(), Succeeds());
    EXPECT_EQ(writer().acquire().error(), Errc::held_by_other);
    EXPECT_THAT(other.extend(), Succeeds());
    EXPECT_THAT(other.release(), Succeeds());
    auto alone = writer();
    ASSERT_THAT(alone.acquire(), Succeeds());
    EXPECT_EQ(one.acquire().error(), Errc::held_by_other);
}

TEST_P(Shared, IsExcludedByAClientThatDoesNotKnowReaders) {
    EXPECT_EQ(grants_to_foreigner(), 3U);
    auto mine = reader();
    EXPECT_EQ(mine.acquire().error(), Errc::held_by_other);
    for (auto& server : world) EXPECT_EQ(holder(server), "another");
}

TEST_P(Shared, LeavesNoKeysBehind) {
    {
        std::deque<Lock> many;
        for (int i = 0; i < 10; ++i) ASSERT_THAT(many.emplace_back(reader()).acquire(), Succeeds());
    }
    EXPECT_TRUE(nothing_left());
}

// The entries of killed readers are removed when the next reader comes.
TEST_P(Shared, RemovesTheEntriesOfReadersThatDied) {
    for (int i = 0; i < 300; ++i)
        for (auto& server : world)
            server.command({"ZADD", "{" + std::string{the_resource} + "}:readers", "1000",
                            std::to_string(i + 1'000) + std::string(36, 'd')});
    auto mine = reader();
    ASSERT_THAT(mine.acquire(), Succeeds());
    EXPECT_TRUE(wait_until([&] { return readers() == "1"; }));
}

TEST_P(Shared, ExpiresWhileOtherReadersContinue) {
    auto brief = reader({.ttl = 2500ms});
    auto lasting = reader({.ttl = 1min});
    ASSERT_THAT(lasting.acquire(), Succeeds());
    ASSERT_THAT(brief.acquire(), Succeeds());
    EXPECT_TRUE(wait_until([&] { return !brief.valid(); }));
    EXPECT_EQ(brief.extend().error(), Errc::lost);
    EXPECT_TRUE(lasting.valid());
    EXPECT_THAT(lasting.extend(), Succeeds());
    EXPECT_EQ(writer().acquire().error(), Errc::held_by_other);
}

TEST_P(Shared, HasFencingTokensInOneSequenceWithWriters) {
    auto before = writer({.fencing = true});
    ASSERT_THAT(before.acquire(), Succeeds());
    const auto first = before.fencing_token();
    EXPECT_THAT(before.release(), Succeeds());
    auto between = reader({.fencing = true});
    ASSERT_THAT(between.acquire(), Succeeds());
    const auto second = between.fencing_token();
    EXPECT_GT(second, first);
    EXPECT_THAT(between.release(), Succeeds());
    ASSERT_THAT(before.acquire(), Succeeds());
    EXPECT_GT(before.fencing_token(), second);
}

TEST_P(Shared, IsExtendedByAWatchdog) {
    Watchdog watchdog;
    auto watched = reader({.ttl = 2500ms, .watchdog = &watchdog});
    auto other = reader({.ttl = 2500ms});
    ASSERT_THAT(watched.acquire(), Succeeds());
    ASSERT_THAT(other.acquire(), Succeeds());
    EXPECT_TRUE(wait_until([&] { return !other.valid(); }));
    EXPECT_TRUE(wait_until([&] { return readers() == "1"; })) << "pruned by an extension";
    EXPECT_TRUE(watched.valid());
    for (auto& server : world) server.command({"DEL", the_resource});
    EXPECT_TRUE(wait_until([&] { return watched.lost().stop_requested(); }))
        << "another client may hold the resource now";
}

TEST(SharedOptions, AreRejectedIfTheyCannotWork) {
    LiveWorld world{1};
    const auto refusal = [&](ResourceList resources, const LockOptions& options) -> std::string {
        try {
            const Lock lock{world.nodes, std::move(resources), options};
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return {};
    };
    EXPECT_THAT(refusal({"a", "b"}, {.shared = true}), testing::HasSubstr("LockOptions::shared"));
    EXPECT_THAT(refusal("a", {.fair = true, .shared = true}), testing::HasSubstr("LockOptions::shared"));
}

}  // namespace
}  // namespace redlock::test
