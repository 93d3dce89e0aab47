// Fencing and the restart quarantine, in so far as only real servers can show them: their run ids, their
// roles, their data after a restart. What the scripts do is tested in tests/pure and by the simulation.
#include "guarantee_world.hpp"

#include "live/in_threads.hpp"

#include <atomic>

namespace redlock::test {
namespace {

class Guarantees : public InEachRound {};
INSTANTIATE_TEST_SUITE_P(Asking, Guarantees, each_round(), by_round);

// Everything at once, for many resources.
TEST_P(Guarantees, HoldForManyResourcesAsForOne) {
    QuarantineWorld world{3, {}, GetParam()};
    std::vector<std::string> resources{{"a\0\n", 3}};
    while (resources.size() < 500) resources.push_back("resource " + std::to_string(resources.size()));
    const LockOptions options{.ttl = quarantine, .retry = {.attempts = 1}, .fencing = true};
    const auto keys = [&](const std::string& count) {
        return wait_until([&] {
            return std::ranges::all_of(world, [&](auto& it) { return it.command({"DBSIZE"}) == count; });
        });
    };
    Lock lock{world.nodes, resources, options};
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_TRUE(keys("1001")) << "a key and a counter each, and the marker";
    const auto token = lock.fencing_token();
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(keys("501"));
    Lock overlapping{world.nodes, {"resource 7", "another"}, options};
    ASSERT_THAT(overlapping.acquire(), Succeeds());
    EXPECT_GT(overlapping.fencing_token(), token);
}

// ---- Fencing

// A server that comes back with a count from before its last holders does not go on with it.
TEST(Fencing, DoesNotTrustACountFromAnEarlierRun) {
    LiveWorld world{1, {.node_timeout = 1s}, RedisConfig{}.keeps_data()};
    const auto next_token = [&] {
        auto lock = world.lock({.retry = {.attempts = 1}, .fencing = true});
        EXPECT_TRUE(wait_until([&] { return bool{lock.acquire()}; }));
        return lock.fencing_token();
    };
    const auto before = next_token();
    const auto counter = counter_on(world[0]);
    ASSERT_EQ(world[0].command({"SET", counter, "7"}), "OK");  // as an old snapshot has it
    world[0].restart();
    EXPECT_EQ(world[0].command({"GET", counter}), "7");
    EXPECT_GT(next_token(), before);
}

// Contenders that show their tokens to a resource that remembers the largest: none is refused.
TEST_P(Guarantees, TokensAreNeverSmallerThanWhatTheResourceHasSeen) {
    LiveWorld world{3, {.node_timeout = 1s, .round = GetParam()}};
    std::atomic<std::uint64_t> seen{0};
    std::atomic<int> holds{0};
    const auto end = boot_clock().now() + 2s;
    in_threads(6, [&](std::size_t) {
        auto lock = world.lock({.ttl = 10s, .retry = {.delay = 2ms}, .fencing = true});
        while (boot_clock().now() < end) {
            if (!lock.acquire_for(1s)) continue;
            EXPECT_GT(lock.fencing_token(), seen.exchange(lock.fencing_token()));
            ++holds;
            (void)lock.release();
        }
    });
    EXPECT_GT(holds, 10);
}

// ---- S29, S30: a node that may have forgotten the holders does not vote, until the longest ttl is over.

// S30. Two of three nodes are restarted empty while the lock is held: no other client gets it.
TEST_P(Guarantees, AQuarantineKeepsNodesThatWereRestartedEmptyFromGrantingASecondLock) {
    QuarantineWorld world{3, {}, GetParam()};
    auto holder = world.claim();
    ASSERT_THAT(holder.acquire(), Succeeds());
    for (const std::size_t node : {0U, 1U}) world[node].restart_empty();
    auto other = world.claim();
    EXPECT_TRUE(wait_until([&] {  // the connections to the old servers are found broken one by one
        const auto result = other.acquire();
        EXPECT_EQ(count(result, Vote::granted), 0U);
        return result.nodes()[0].cause == Errc::quarantined || result.nodes()[1].cause == Errc::quarantined;
    }));
    EXPECT_TRUE(holder.valid()) << "too slow a machine: the lock is over";
}

// A server that has lost the tail of its log comes back with a marker, but of another run.
TEST(AQuarantine, IsForNodesThatWereRestartedWithOldDataToo) {
    QuarantineWorld world{3, RedisConfig{}.keeps_data()};
    const auto marker = marker_of(world[1]);
    world[1].restart();
    ASSERT_NE(world[1].command({"GET", marker}), "(nil)");
    auto lock = world.claim();
    const auto result = lock.acquire();
    EXPECT_THAT(result, Succeeds());
    EXPECT_THAT(result, Reports(1, Errc::quarantined));
}

// ---- The roles and names of servers

// A replica has no vote, though it takes writes.
TEST(Voters, AreMasters) {
    QuarantineWorld world;
    RedisServer replica{RedisConfig{}.replica_of(world[0].port()).line("replica-read-only no")};
    RedisNodes nodes{std::vector{world[0].uri(), world[1].uri(), replica.uri()},
                     {.node_timeout = 1s, .quarantine = quarantine}};
    Lock lock{nodes, the_resource, no_retry(quarantine)};
    const auto result = lock.acquire();
    EXPECT_THAT(result, Succeeds());
    EXPECT_THAT(result, Reports(2, Errc::read_only));
}

// D8. Nor has one server two votes, under whatever names.
TEST(Voters, AreDifferentServers) {
    QuarantineWorld world;
    const auto port = ":" + std::to_string(world[0].port());
    RedisNodes nodes{
        std::vector<std::string>{"127.0.0.1" + port, support::loopback_name + port, world[1].uri()},
        {.node_timeout = 1s, .quarantine = quarantine}};
    // Until its name is resolved, the votes may decide without the duplicate.
    EXPECT_TRUE(wait_until([&] {
        Lock lock{nodes, the_resource, no_retry(quarantine)};
        const auto result = lock.acquire();
        EXPECT_THAT(result, Succeeds());
        EXPECT_EQ(count(result, Vote::granted), 2U);
        return result.message().find("same server as another node") != std::string::npos;
    }));
}

}  // namespace
}  // namespace redlock::test
