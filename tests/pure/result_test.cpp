// Rule A12: the result of an operation, and its one-line message for a log.
#include "support/answering_node.hpp"
#include "world.hpp"

#include <concepts>
#include <memory>
#include <type_traits>

namespace redlock::test::result_test {
namespace {

struct AResult : testing::Test {
    World world;
};

static_assert(!std::is_convertible_v<Result, bool>, "explicit, or it would add and compare as a number");
static_assert(std::is_copy_constructible_v<Result> && std::is_nothrow_move_constructible_v<Result>);

// A range-for keeps the return value of nodes(), but not the temporary Result.
TEST_F(AResult, ReturnsACopyOfItsReportsIfItIsATemporary) {
    static_assert(std::same_as<decltype(std::declval<Result>().nodes()), std::vector<NodeReport>>);
    static_assert(std::same_as<decltype(std::declval<Result&>().nodes()), std::span<const NodeReport>>);
    World three{3};
    std::size_t granted = 0;
    for (const auto& node : three.lock().acquire().nodes()) granted += node.vote == Vote::granted ? 1 : 0;
    EXPECT_EQ(granted, 3U);
}

// The message names the nodes that refused, and why others did not reply.
TEST_F(AResult, NamesTheNodesThatCausedAFailure) {
    world.occupy(1h, 0, 1, 2);
    world.silence(3);
    EXPECT_EQ(world.lock(no_retry()).acquire().message(),
              "held by another on 3 of 5 nodes; node3 timed out after 50 ms");
}

// If some nodes granted, the message of the success names the causes of the others.
TEST_F(AResult, NamesTheNodesThatFailedInASuccess) {
    World three{3};
    three.lie(Errc::read_only, 1);
    auto lock = three.lock();
    EXPECT_EQ(lock.acquire().message(), "ok: granted by 2 of 3 nodes; node1 read-only replica");
}

TEST_F(AResult, CountsTheAttempts) {
    World three{3};
    three.cut(0, 2);
    auto lock = three.lock({.retry = {.attempts = 2}});
    EXPECT_EQ(
        lock.acquire().message(),
        "no quorum: granted by 1 of 3 nodes, 2 attempts; node0 connection failed; node2 connection failed");
}

// Even if some nodes granted, a failed attempt has no validity.
TEST_F(AResult, HasNoValidityAfterAFailure) {
    auto lock = world.lock({.ttl = 10s, .retry = {.attempts = 1}});
    EXPECT_THAT(lock.acquire().validity(), Lasts(10s - 102ms));
    world.cut(0, 1, 2);
    const auto extended = lock.extend();
    ASSERT_THAT(extended, FailsWith(Errc::no_quorum));
    EXPECT_THAT(extended.validity(), Lasts(0ns));
    world.heal_all();
    EXPECT_THAT(lock.release().validity(), Lasts(0ns)) << "a success, after which nothing is held";
    world.occupy(1h, 0);
    world.silence(1, 2, 3);
    const auto without_quorum = lock.acquire();
    ASSERT_THAT(without_quorum, FailsWith(Errc::no_quorum));
    EXPECT_THAT(without_quorum.validity(), Lasts(0ns));
    world.heal_all();
    world.occupy(1h, 1, 2);
    const auto held = lock.acquire();
    ASSERT_THAT(held, FailsWith(Errc::held_by_other));
    EXPECT_THAT(held.validity(), Lasts(0ns));
}

TEST_F(AResult, HasAShortMessageIfThereWasNoRound) {
    auto lock = world.lock();
    EXPECT_EQ(lock.release().message(), "not held");
    EXPECT_EQ(lock.acquire_for(0s).message(), "deadline reached");
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(lock.acquire().message(), "already held");
}

// The message omits nodes that were not asked or not awaited.
TEST_F(AResult, OmitsNodesThatWereNotAsked) {
    world.silence(0, 1);
    EXPECT_EQ(world.lock().acquire_for(100ms).message(),
              "deadline reached: granted by 0 of 5 nodes; node0 timed out after 50 ms; "
              "node1 timed out after 50 ms");
}

// The validity ended and no node refused, so "lost on 0 of 5 nodes" would be misleading.
TEST_F(AResult, CountsNoNodesInALossByTime) {
    auto lock = world.lock();
    ASSERT_THAT(lock.acquire(), Succeeds());
    world.pass(lock.remaining());
    const auto message = lock.release().message();
    EXPECT_THAT(message, HasSubstr("lost"));
    EXPECT_THAT(message, Not(HasSubstr("on 0 of 5")));
}

TEST_F(AResult, CountsTheNodesThatLostTheKey) {
    auto lock = world.lock();
    ASSERT_THAT(lock.acquire(), Succeeds());
    for (std::size_t node = 0; node < 3; ++node) world.forget(node);
    EXPECT_EQ(lock.extend().message(), "lost on 3 of 5 nodes");
}

TEST_F(AResult, QuotesTheErrorMessageOfTheServer) {
    const auto answer = [](const auto&, Tally& tally) {
        tally.mark_unknown(0, Errc::server_error);
        tally[0].detail = "MOVED 866 10.0.0.2:6379";
    };
    support::AnsweringNode node{answer, {"10.0.0.1:6379"}};
    Lock lock{node, the_resource, {}, world.clock, world.entropy};
    EXPECT_EQ(lock.acquire().message(),
              "no quorum: granted by 0 of 1 nodes; 10.0.0.1:6379 server error (MOVED 866 10.0.0.2:6379)");
}

// The names in a Result live as long as the Result, even if the nodes do not.
TEST_F(AResult, OutlivesTheNodes) {
    auto three = std::make_unique<World>(3U);
    three->cut_all();
    const auto result = three->lock(no_retry()).acquire();
    three.reset();
    const auto copy = result;
    EXPECT_EQ(copy.nodes()[2].name, "node2");
    EXPECT_THAT(copy.message(), HasSubstr("node2 connection failed"));
}

TEST_F(AResult, IsEmptyWithoutARound) {
    const Result result{Errc::not_held};
    EXPECT_FALSE(result);
    EXPECT_EQ(result.error(), Errc::not_held);
    EXPECT_THAT(result.nodes(), IsEmpty());
    EXPECT_EQ(result.attempts(), 0);
    EXPECT_THAT(result.validity(), Lasts(0ns));
}

}  // namespace
}  // namespace redlock::test::result_test
