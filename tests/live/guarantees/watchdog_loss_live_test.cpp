// Rules C6, C7 and C10 against real servers, in real time: when a loss is notified, and which locks it
// delays.
#include "watchdog_world.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace redlock::test {
namespace {

struct HangingMajority : testing::TestWithParam<Standstill> {};
INSTANTIATE_TEST_SUITE_P(When, HangingMajority, testing::ValuesIn(standstills()), by_name);

// C6. The notification comes in time though the round that would save the lock hangs.
TEST_P(HangingMajority, DoesNotDelayTheNotification) {
    LiveWorld world{5, {.node_timeout = 1900ms}};
    Watchdog watchdog;
    LossLog losses;
    auto options = watched_by(watchdog, 2s);
    options.on_lost = losses.callback();
    auto lock = world.lock(options);
    ASSERT_TRUE(world.warm_up());
    ASSERT_THAT(lock.acquire(), Succeeds());
    const auto lost = lock.lost();
    for (const std::size_t node : {1U, 2U, 3U}) GetParam().begin(world[node]);
    auto end = end_of(lock);
    while (lock.valid()) end = std::max(end, end_of(lock));  // one more extension may have come through
    EXPECT_TRUE(losses.wait_for(1));
    EXPECT_THAT(losses.last() - end, LastsAtMost(200ms));  // the round would go on for 600 ms
    EXPECT_FALSE(lock.valid());
    EXPECT_THAT(losses.all(), testing::ElementsAre(FailsWith(Errc::lost)));
    for (const std::size_t node : {1U, 2U, 3U}) GetParam().end(world[node]);
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    EXPECT_TRUE(wait_until([&] { return world.clean(); }));
}

// C10. Locks on other nodes are extended all the while, though a round here takes twice their ttl.
TEST_P(HangingMajority, DelaysNoLockOnOtherNodes) {
    LiveWorld world{5, {.node_timeout = 2s}};
    LiveWorld others{3, {.node_timeout = 300ms}};
    Watchdog watchdog;
    std::vector<Lock> hanging;
    for (int i = 0; i < 10; ++i) {
        hanging.push_back(world.lock("resource " + std::to_string(i), watched_by(watchdog, 4s)));
        ASSERT_THAT(hanging.back().acquire(), Succeeds());
    }
    for (const std::size_t node : {1U, 2U, 3U}) GetParam().begin(world[node]);
    auto lock = others.lock(watched_by(watchdog, 1s));
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_TRUE(wait_until([&] {
        return std::ranges::all_of(hanging, [](const Lock& it) { return it.lost().stop_requested(); });
    }));
    EXPECT_TRUE(lock.valid());
    for (const std::size_t node : {1U, 2U, 3U}) GetParam().end(world[node]);
}

TEST(Watchdog, NotifiesAtOnceThatAMajorityHasLostTheKey) {
    LiveWorld world{3, short_timeout};
    Watchdog watchdog;
    LossLog losses;
    auto options = watched_by(watchdog, 3s);
    options.on_lost = losses.callback();
    auto lock = world.lock(options);
    ASSERT_THAT(lock.acquire(), Succeeds());
    const auto end = end_of(lock);
    for (const std::size_t node : {0U, 2U}) ASSERT_EQ(world[node].command({"DEL", the_resource}), "1");
    ASSERT_TRUE(losses.wait_for(1));
    EXPECT_LT(losses.last(), end - 1s);
    EXPECT_FALSE(lock.valid());
    EXPECT_THAT(losses.all()[0].message(), HasSubstr("lost on 2 of 3 nodes"));
}

// C7.
TEST(Watchdog, StopsAtTheHoldLimit) {
    LiveWorld world{3, short_timeout};
    Watchdog watchdog;
    LossLog losses;
    auto options = watched_by(watchdog, 600ms);
    options.max_hold = 1s;
    options.on_lost = losses.callback();
    auto lock = world.lock(options);
    EXPECT_THAT(time_taken([&] {
                    ASSERT_THAT(lock.acquire(), Succeeds());
                    ASSERT_TRUE(losses.wait_for(1));
                }),
                LastsAtLeast(1s));
    EXPECT_THAT(losses.all()[0], FailsWith(Errc::hold_limit));
    EXPECT_FALSE(lock.valid());
    EXPECT_TRUE(wait_until([&] { return world.clean(); })) << "without a release: the keys expire";
}

}  // namespace
}  // namespace redlock::test
