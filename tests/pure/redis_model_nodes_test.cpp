// Locks on Redis servers in memory: the algorithm, the bytes on the wire and the scripts together.
#include "redis_model_nodes.hpp"
#include "world.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace redlock::test {
namespace {

struct OnRedisModels : testing::Test {
    Lock lock(LockOptions options = {.retry = {.attempts = 1}, .fencing = true}) {
        return Lock{nodes, the_resource, options, stage.clock, stage.entropy};
    }
    std::uint64_t token_of_a_holder() {
        auto holder = lock();
        EXPECT_THAT(holder.acquire(), Succeeds());
        const auto token = holder.fencing_token();
        EXPECT_THAT(holder.extend(), Succeeds());
        EXPECT_THAT(holder.release(), Succeeds());
        return token;
    }
    void count_on(std::size_t node, const std::string& count) {
        const auto key = detail::counter_of(the_resource, nodes[node].run_id());
        EXPECT_FALSE(nodes[node].execute({"SET", key, count}, nodes.now).is_error());
    }

    Stage stage{1};
    RedisModelNodes nodes{5};
};

TEST_F(OnRedisModels, ALockHasAKeyOnEach) {
    auto holder = lock({.ttl = 10s});
    ASSERT_THAT(holder.acquire(), Succeeds());
    for (std::size_t node = 0; node < 5; ++node) EXPECT_EQ(nodes.get(node, the_resource), holder.owner());
    EXPECT_THAT(lock({.ttl = 10s, .retry = {.attempts = 1}}).acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(holder.release(), Succeeds());
    for (std::size_t node = 0; node < 5; ++node) EXPECT_TRUE(nodes[node].keys().empty());
}

TEST_F(OnRedisModels, TokensGrow) {
    std::uint64_t last = 0;
    for (std::size_t holder = 0; holder < 60; ++holder) {
        nodes.down = NodeSet{0b10001U << (holder % 3)};
        if (holder % 7 == 0) nodes[holder % 5].restart("run" + std::to_string(holder), {});
        const auto token = token_of_a_holder();
        EXPECT_GT(token, last);
        last = token;
    }
}

// In Redis Cluster the counter is where its resource is: a hash tag of one's own is kept. It outlives the
// lock by a day, and not for ever.
TEST_F(OnRedisModels, CountersStandBesideTheirResourceForADay) {
    for (const auto& [resource, counter] : {std::pair<std::string, std::string>{"a", "{a}:fence:node0"},
                                            {"{orders}:42", "{orders}:42:fence:node0"}}) {
        Lock holder{nodes, resource, {.fencing = true}, stage.clock, stage.entropy};
        ASSERT_THAT(holder.acquire(), Succeeds());
        EXPECT_NE(nodes.get(0, counter), "(nil)");
        const auto ttl = text_of(nodes[0].execute({"PTTL", counter}, nodes.now));
        EXPECT_NEAR(std::stod(ttl), 24.0 * 3'600'000, 100);
    }
}

// 8.9e15 is a count that the scripts can count on from; nodes that are sane are not raised to it.
TEST_F(OnRedisModels, AnAbsurdCountStaysWhereItIs) {
    ASSERT_GT(token_of_a_holder(), 0U);
    count_on(2, "8900000000000000");
    std::uint64_t last = 0;
    for (std::size_t holder = 0; holder < 20; ++holder) {
        nodes.down = NodeSet{1U << std::array{0U, 1U, 3U, 4U}.at(holder % 4)};
        const auto token = token_of_a_holder();
        EXPECT_GT(token, last);
        EXPECT_LT(token, static_cast<std::uint64_t>(nodes.now.count()));
        last = token;
    }
    EXPECT_EQ(nodes.counter(2, the_resource), "8900000000000020");
}

// One node whose own clock is wrong calls no other node absurd, if a majority finds nothing in it.
TEST_F(OnRedisModels, ACountIsAbsurdOnlyWhereNoMajorityCountsSoFar) {
    nodes.last_is_late = std::chrono::hours{72};
    count_on(0, std::to_string(nodes.now.count() + 10));
    auto holder = lock();
    const auto result = holder.acquire();
    ASSERT_THAT(result, Succeeds());
    EXPECT_EQ(holder.fencing_token(), static_cast<std::uint64_t>(1'760'000'000'000'011));
    EXPECT_EQ(result.nodes()[0].vote, Vote::granted);
    EXPECT_EQ(result.nodes()[4].vote, Vote::refused);
}

}  // namespace
}  // namespace redlock::test
