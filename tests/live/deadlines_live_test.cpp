// Rules A8, A9, A12 and B6 against real servers: deadlines, cancellation, and what dead nodes cost. Limits of
// time are a multiple of what an idle machine needs, where they are not the rule itself.
#include "live_world.hpp"
#include "scheduling_delay.hpp"

#include <stop_token>
#include <thread>

namespace redlock::test {
namespace {

/// Stops a stop_source after a while.
std::jthread stop_after(milliseconds delay, std::stop_source source) {
    return std::jthread{[delay, source]() mutable {
        std::this_thread::sleep_for(delay);
        source.request_stop();
    }};
}

class Deadlines : public InEachRound {};
INSTANTIATE_TEST_SUITE_P(Asking, Deadlines, each_round(), by_round);

// ---- Dead nodes.

// A9. All nodes down: within the time given and one budget, with the reason for each node.
TEST_P(Deadlines, EndInTimeWithEveryNodeDown) {
    constexpr auto budget = 200ms;
    LiveWorld world{5, {.node_timeout = budget, .round = GetParam()}};
    for (auto& server : world) server.kill();
    auto lock = world.lock();
    Result result{Errc::lost};
    EXPECT_THAT(own_time([&] { result = lock.acquire_for(300ms); }), LastsAtMost(300ms + budget));
    EXPECT_THAT(result, FailsWith(Errc::no_quorum));
    EXPECT_GE(result.attempts(), 1);
    ASSERT_THAT(result.nodes(), SizeIs(5));
    EXPECT_THAT(result.message(), HasSubstr("no quorum: granted by 0 of 5 nodes"));
    int refused = 0;
    for (const auto& node : result.nodes()) {
        EXPECT_EQ(node.vote, Vote::unknown);
        EXPECT_FALSE(node.sent);
        refused += node.cause == Errc::connection_failed ? 1 : 0;
        if (node.cause == Errc::backing_off) {
            EXPECT_THAT(node.detail, HasSubstr("connection failed"));
        }
    }
    EXPECT_GE(refused, 3) << result.message();
}

// A9. The same when they all hang, in a connection just made or in an old one.
TEST_P(Deadlines, EndInTimeWithEveryNodeFrozen) {
    constexpr auto budget = 200ms;
    for (const bool warm : {false, true}) {
        LiveWorld world{5, {.node_timeout = budget, .round = GetParam()}};
        ASSERT_TRUE(!warm || world.warm_up());
        for (auto& server : world) server.freeze();
        auto lock = world.lock();
        Result result{Errc::lost};
        EXPECT_THAT(own_time([&] { result = lock.acquire_for(500ms); }), LastsAtMost(500ms + budget + 50ms));
        EXPECT_FALSE(result);
        EXPECT_THAT(result.nodes(), SizeIs(5));
        for (auto& server : world) server.thaw();
        EXPECT_TRUE(wait_until([&] { return world.clean(); }));
        EXPECT_THAT(lock.acquire_for(10s), Succeeds());
    }
}

// A9, D4. One of five frozen: acquire and release within two budgets each; the next does not pay again.
TEST_P(Deadlines, LeaveTheBudgetOfAFrozenNodeToOneRound) {
    constexpr auto budget = 500ms;
    LiveWorld world{5, {.node_timeout = budget, .round = GetParam()}};
    ASSERT_TRUE(world.warm_up());
    world[2].freeze();
    auto lock = world.lock();
    EXPECT_THAT(own_time([&] { EXPECT_THAT(lock.acquire(), Succeeds()); }), LastsAtMost(2 * budget));
    EXPECT_THAT(own_time([&] { EXPECT_THAT(lock.release(), Succeeds()); }), LastsAtMost(2 * budget));
    EXPECT_THAT(own_time([&] {
                    for (int i = 0; i < 10; ++i) {
                        EXPECT_THAT(lock.acquire(), Succeeds());
                        EXPECT_THAT(lock.release(), Succeeds());
                    }
                }),
                LastsAtMost(budget))
        << "ten rounds, while the node is probed without waiting for it";
    world[2].thaw();
    EXPECT_TRUE(wait_until([&] { return world.clean(); }));
}

// ---- Deadlines.

// A8. Held by another for longer than the deadline: tried until then, not beyond.
TEST_P(Deadlines, AreTriedUntilAndNotBeyond) {
    LiveWorld world{3, {.node_timeout = 500ms, .round = GetParam()}};
    for (auto& server : world) ASSERT_EQ(occupy(server), "OK");
    auto lock = world.lock({.retry = {.attempts = 1, .delay = 20ms}});
    Result result{Errc::lost};
    EXPECT_THAT(own_time([&] { result = lock.acquire_for(400ms); }), LastsAtMost(400ms + 500ms));
    EXPECT_THAT(result, FailsWith(Errc::held_by_other));
    EXPECT_GE(result.attempts(), 3) << "whatever retry.attempts says";
    EXPECT_EQ(world.keys_of("another"), 3U);
}

// A8. A round that hangs is cut short by the deadline, and what it had got is given back all the same (B6).
TEST_P(Deadlines, CutARoundShortThatIsThenReleased) {
    LiveWorld world{3, {.node_timeout = 2s, .round = GetParam()}};
    ASSERT_TRUE(world.warm_up());
    keep_from_writing(world[1]);
    keep_from_writing(world[2]);
    auto lock = world.lock();
    Result result{Errc::lost};
    EXPECT_THAT(own_time([&] { result = lock.acquire_for(300ms); }), LastsAtMost(300ms + 2s + 100ms));
    EXPECT_THAT(result, FailsWith(Errc::deadline));
    EXPECT_THAT(result, testing::AnyOf(Reports(1, Errc::deadline), Reports(2, Errc::deadline)));
    EXPECT_EQ(holder(world[0]), "(nil)") << "released although the deadline was over";
    let_write(world[1]);
    let_write(world[2]);
    EXPECT_TRUE(wait_until([&] { return world.clean(); }));
}

// ---- Cancellation.

// A8. A stop during the pause ends it at once.
TEST_P(Deadlines, EndAtOnceWhereAPauseIsCancelled) {
    LiveWorld world{3, {.node_timeout = 2s, .round = GetParam()}};
    for (auto& server : world) ASSERT_EQ(occupy(server), "OK");
    auto lock = world.lock({.retry = {.attempts = 3, .delay = 1h}});
    std::stop_source source;
    const auto stopper = stop_after(200ms, source);
    Result result{Errc::lost};
    EXPECT_THAT(own_time([&] { result = lock.acquire(source.get_token()); }), LastsAtMost(10s));
    EXPECT_THAT(result, FailsWith(Errc::cancelled));
    EXPECT_EQ(result.attempts(), 1);
    EXPECT_THAT(result.nodes(), SizeIs(3)) << "what the attempt before had run into";
}

// A8, B6. A stop during a round ends it within one budget, and what was got is given back all the same.
TEST_P(Deadlines, EndWithinABudgetWhereARoundIsCancelled) {
    constexpr auto budget = 1s;
    LiveWorld world{5, {.node_timeout = budget, .round = GetParam()}};
    ASSERT_TRUE(world.warm_up());
    for (const std::size_t node : {1U, 2U, 3U}) keep_from_writing(world[node]);
    auto lock = world.lock({.retry = {.attempts = 1000}});
    std::stop_source source;
    const auto stopper = stop_after(200ms, source);
    Result result{Errc::lost};
    EXPECT_THAT(own_time([&] { result = lock.acquire(source.get_token()); }),
                LastsAtMost(200ms + 2 * budget + 200ms))
        << "the round's one and the release's own";
    EXPECT_THAT(result, FailsWith(Errc::cancelled));
    EXPECT_EQ(holder(world[0]), "(nil)");
    EXPECT_EQ(holder(world[4]), "(nil)");
    for (const std::size_t node : {1U, 2U, 3U}) let_write(world[node]);
    EXPECT_TRUE(wait_until([&] { return world.clean(); }));
}

}  // namespace
}  // namespace redlock::test
