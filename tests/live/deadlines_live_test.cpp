// Rules A8, A9, A12 and B6 against real servers: deadlines and cancellation if nodes do not reply. Unless the
// rule itself is a time limit, limits are a multiple of what an idle machine needs.
#include "live_world.hpp"
#include "scheduling_delay.hpp"

#include <stop_token>
#include <thread>

namespace redlock::test::deadlines_live_test {
namespace {

class Deadlines : public InEachRound {};
INSTANTIATE_TEST_SUITE_P(EachRound, Deadlines, each_round(), by_round);

// ---- Dead nodes.

// A9. All nodes are down: acquire_for() returns within the time limit and one node_timeout, with the cause
// for each node.
TEST_P(Deadlines, EndInTimeWithEveryNodeDown) {
    constexpr auto node_timeout = 200ms;
    LiveWorld world{5, {.node_timeout = node_timeout, .round = GetParam()}};
    for (auto& server : world) server.kill();
    auto lock = world.lock();
    Result result{Errc::lost};
    EXPECT_THAT(own_time([&] { result = lock.acquire_for(300ms); }), LastsAtMost(300ms + node_timeout));
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

// A9. The same if all nodes hang, with new connections or with old ones.
TEST_P(Deadlines, EndInTimeWithEveryNodeFrozen) {
    constexpr auto node_timeout = 200ms;
    for (const bool warm : {false, true}) {
        LiveWorld world{5, {.node_timeout = node_timeout, .round = GetParam()}};
        ASSERT_TRUE(!warm || world.warm_up());
        for (auto& server : world) server.freeze();
        auto lock = world.lock();
        Result result{Errc::lost};
        EXPECT_THAT(own_time([&] { result = lock.acquire_for(500ms); }),
                    LastsAtMost(500ms + node_timeout + 50ms));
        EXPECT_FALSE(result);
        EXPECT_THAT(result.nodes(), SizeIs(5));
        for (auto& server : world) server.thaw();
        EXPECT_TRUE(wait_until([&] { return world.clean(); }));
        EXPECT_THAT(lock.acquire_for(10s), Succeeds());
    }
}

// ---- Cancellation.

// A8, B6. A stop request ends a round within one node_timeout, and keys that were set are released.
TEST_P(Deadlines, EndWithinANodeTimeoutIfARoundIsCancelled) {
    constexpr auto node_timeout = 1s;
    LiveWorld world{5, {.node_timeout = node_timeout, .round = GetParam()}};
    ASSERT_TRUE(world.warm_up());
    for (const std::size_t node : {1U, 2U, 3U}) world[node].freeze();
    auto lock = world.lock({.retry = {.attempts = 1000}});
    std::stop_source source;
    const std::jthread stopper{[&] {
        std::this_thread::sleep_for(200ms);
        source.request_stop();
    }};
    Result result{Errc::lost};
    EXPECT_THAT(own_time([&] { result = lock.acquire(source.get_token()); }),
                LastsAtMost(200ms + 2 * node_timeout + 200ms))
        << "the round's one and the release's own";
    EXPECT_THAT(result, FailsWith(Errc::cancelled));
    EXPECT_EQ(holder(world[0]), "(nil)");
    EXPECT_EQ(holder(world[4]), "(nil)");
    for (const std::size_t node : {1U, 2U, 3U}) world[node].thaw();
    EXPECT_TRUE(wait_until([&] { return world.clean(); }));
}

}  // namespace
}  // namespace redlock::test::deadlines_live_test
