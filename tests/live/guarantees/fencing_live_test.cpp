// Fencing tokens over N masters: larger from one holder to the next, whatever happens to a minority.
#include "guarantee_world.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

namespace redlock::test {
namespace {

LockOptions fenced(milliseconds ttl = 10s) {
    return {.ttl = ttl, .retry = {.attempts = 1}, .fencing = true};
}

class Fencing : public InEachRound {
protected:
    /// Acquires, releases, and returns the token.
    std::uint64_t token_of_a_holder() {
        auto lock = world.lock(fenced());
        EXPECT_THAT(lock.acquire(), Succeeds());
        const auto token = lock.fencing_token();
        EXPECT_GT(token, 0U);
        return token;
    }

    LiveWorld world{3, {.node_timeout = 1s, .round = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Asking, Fencing, each_round(), by_round);

TEST_P(Fencing, GrowsFromOneHolderToTheNext) {
    std::uint64_t last = 0;
    for (int i = 0; i < 50; ++i) {
        const auto token = token_of_a_holder();
        EXPECT_GT(token, last);
        last = token;
    }
}

// Seeded by their clocks the nodes differ at first; once raised to one count they go on together.
TEST_P(Fencing, TakesOneRoundOnceTheNodesCountAlike) {
    (void)token_of_a_holder();
    CommandMonitor monitor{world[0]};
    EXPECT_TRUE(wait_until([&] {
        monitor.clear();
        (void)token_of_a_holder();
        return monitor.commands().size() == 2;  // the grant and the release
    }));
}

// In turn, so that each node's count is seen.
TEST(FencingInTurn, TakesASecondRoundWhereTheCountsDiffer) {
    LiveWorld world{3, {.node_timeout = 1s}};
    auto lock = world.lock(fenced());
    ASSERT_THAT(lock.acquire(), Succeeds());
    const auto ahead = lock.fencing_token() + 3'600'000'000;  // an hour
    ASSERT_THAT(lock.release(), Succeeds());
    ASSERT_EQ(world[1].command({"SET", counter_on(world[1]), std::to_string(ahead)}), "OK");
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(lock.fencing_token(), ahead + 1);
    const auto raised = [&](auto& server) {
        return server.command({"GET", counter_on(server)}) == std::to_string(ahead + 1);
    };
    EXPECT_TRUE(wait_until([&] { return std::ranges::all_of(world, raised); }));
}

// A minority may be down at each, and another one the next time.
TEST_P(Fencing, GrowsWhileNodesComeAndGo) {
    std::uint64_t last = token_of_a_holder();
    for (std::size_t i = 0; i < 6; ++i) {
        auto& server = world[i % 3];
        server.kill();
        for (const bool down : {true, false}) {
            if (!down) server.restart_empty();
            const auto token = token_of_a_holder();
            EXPECT_GT(token, last);
            last = token;
        }
    }
}

// A server that comes back with a count from before its last holders does not go on with it.
TEST_P(Fencing, DoesNotTrustACountFromAnEarlierRun) {
    LiveWorld lasting{1, {.node_timeout = 1s}, RedisConfig{}.keeps_data()};
    const auto token = [&] {
        auto lock = lasting.lock(fenced());
        EXPECT_TRUE(wait_until([&] { return bool{lock.acquire()}; }));
        return lock.fencing_token();
    };
    const auto before = token();
    const auto counter = counter_on(lasting[0]);
    ASSERT_EQ(lasting[0].command({"SET", counter, "7"}), "OK");  // as an old snapshot has it
    lasting[0].restart();
    EXPECT_EQ(lasting[0].command({"GET", counter}), "7");
    EXPECT_GT(token(), before);
}

// The count outlives the lock, and is not for ever.
TEST_P(Fencing, IsRememberedForADay) {
    (void)token_of_a_holder();
    EXPECT_THAT(expiry(world[0], counter_on(world[0])), LastsAtLeast(23h));
    EXPECT_EQ(world.keys_of("(nil)"), 3U);
}

// In Redis Cluster the counter is where its resource is: a hash tag of one's own is kept.
TEST_P(Fencing, KeepsHashTags) {
    auto lock = world.lock("{orders}:42", fenced());
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_NE(world[0].command({"GET", "{orders}:42:fence:" + run_id(world[0])}), "(nil)");
}

// Where the counter's key holds something else, the report names the key, and nothing is overwritten.
TEST_P(Fencing, RefusesACounterThatIsSomethingElse) {
    for (const std::vector<std::string>& other :
         {std::vector<std::string>{"RPUSH", "", "x"}, std::vector<std::string>{"SET", "", "many"},
          std::vector<std::string>{"SET", "", "1e300"}}) {
        for (auto& server : world) {
            auto command = other;
            command[1] = counter_on(server);
            ASSERT_THAT(server.command({"DEL", command[1]}), testing::AnyOf("0", "1"));
            ASSERT_THAT(server.command(command), testing::AnyOf("OK", "1"));
        }
        auto lock = world.lock(fenced());
        const auto result = lock.acquire();
        EXPECT_THAT(result, FailsWith(Errc::no_quorum));
        EXPECT_THAT(result, HasNoVoteOf(0, Errc::wrong_type));
        EXPECT_THAT(result.message(), HasSubstr("{orders:42}:fence:"));
        EXPECT_EQ(world.keys_of("(nil)"), 3U);
        EXPECT_EQ(lock.fencing_token(), 0U);
    }
}

// D14. Keys of its own, and INFO.
TEST(FencingPermissions, AreTheOnesOfTheReadme) {
    const RedisServer server{
        RedisConfig{}.no_default_user().user("worker on >s3cret resetkeys ~orders:* ~{orders:*}:fence:* "
                                             "-@all +set +get +del +pttl +pexpire +eval +evalsha "
                                             "+info +exists +time")};
    RedisNodes nodes{{server.uri("worker", "s3cret")}, {.node_timeout = 1s}};
    Lock lock{nodes, the_resource, fenced()};
    for (int i = 0; i < 2; ++i) {
        EXPECT_THAT(lock.acquire(), Succeeds());
        EXPECT_THAT(lock.extend(), Succeeds());
        EXPECT_THAT(lock.release(), Succeeds());
    }
}

// Many contenders, each of which shows its token to a resource that remembers the largest: none is refused.
TEST_P(Fencing, IsNeverSmallerThanWhatTheResourceHasSeen) {
    std::atomic<std::uint64_t> seen{0};
    std::atomic<int> holds{0};
    const auto end = boot_clock().now() + 2s;
    const auto contend = [&] {
        auto lock = world.lock({.ttl = 10s, .retry = {.delay = 2ms}, .fencing = true});
        while (boot_clock().now() < end) {
            if (!lock.acquire_for(1s)) continue;
            EXPECT_GT(lock.fencing_token(), seen.exchange(lock.fencing_token()));
            ++holds;
            (void)lock.release();
        }
    };
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 6; ++i) threads.emplace_back(contend);
    }
    EXPECT_GT(holds, 10);
}

}  // namespace
}  // namespace redlock::test
