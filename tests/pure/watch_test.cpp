// Rules C6 and C7: when a lock under watch is extended, and when its loss is told.
#include "world.hpp"

#include <redlock/watch.hpp>

#include <optional>

namespace redlock::test {
namespace {

constexpr Clock::time_point start{std::chrono::hours{100}};
constexpr auto no_limit = Clock::never();

algorithm::Claim claim(milliseconds ttl) {
    return {.resources = {}, .ttl = ttl, .drift_factor = 0.01};
}

Clock::time_point validity_of(milliseconds ttl) {
    return algorithm::valid_until(start, claim(ttl));
}

WatchPlan plan(milliseconds ttl, std::optional<Clock::time_point> failure = {},
               Clock::time_point hold_until = no_limit) {
    return plan_watch(validity_of(ttl), claim(ttl), failure, hold_until);
}

/// From the shortest ttl that works to the longest.
struct Plan : testing::TestWithParam<milliseconds> {
    milliseconds ttl = GetParam();
    WatchPlan plan_now = plan(ttl);
};

INSTANTIATE_TEST_SUITE_P(Ttl, Plan,
                         testing::Values(4ms, 10ms, 53ms, 100ms, 1s, 10s, 30s, 1h, 24h, detail::longest_ttl),
                         [](const auto& info) { return std::to_string(info.param.count()) + "ms"; });

// C6, S61. Of 30 s, after 10 s.
TEST_P(Plan, ExtendsFromAThirdOfTheTtlOn) {
    EXPECT_THAT(plan_now.extend_from - start, Lasts(Clock::duration{ttl} / 3));
}

TEST_P(Plan, WaitsForCompanyButNotUntilHalfOfTheTtl) {
    EXPECT_GT(plan_now.extend_by, plan_now.extend_from);
    EXPECT_LT(plan_now.extend_by - start, Clock::duration{ttl} * 2 / 5);
}

TEST_P(Plan, TellsTheLossBeforeTheValidityEndsButHardlyEarlier) {
    EXPECT_LT(plan_now.tell_at, validity_of(ttl));
    EXPECT_GE(plan_now.tell_at, validity_of(ttl) - 5ms);
    EXPECT_GE(plan_now.tell_at, validity_of(ttl) - Clock::duration{ttl} / 100);
}

// C6. "Goes on trying": several times, and not without a pause.
TEST_P(Plan, TriesAgainAfterAFailure) {
    if (ttl < 53ms) return;  // too short for a second try
    auto failure = plan_now.extend_by;
    int tries = 0;
    for (auto next = plan(ttl, failure); next.extend_from < Clock::never(); next = plan(ttl, failure)) {
        EXPECT_GE(next.extend_from, failure + 1ms);
        EXPECT_LE(next.extend_by, failure + Clock::duration{15s});
        failure = next.extend_by;
        ASSERT_LT(++tries, 1'000'000'000);
        if (tries == 20) break;
    }
    EXPECT_GE(tries, 4);
}

TEST_P(Plan, TriesNoMoreWhenTheLossIsToldBefore) {
    EXPECT_EQ(plan(ttl, plan_now.tell_at).extend_from, Clock::never());
    EXPECT_EQ(plan(ttl, plan_now.tell_at).next(), plan_now.tell_at);
}

// C7.
TEST_P(Plan, ExtendsNoMoreFromTheLimitOn) {
    EXPECT_EQ(plan(ttl, {}, plan_now.extend_from).extend_from, Clock::never());
    EXPECT_EQ(plan(ttl, {}, plan_now.extend_from).next(), plan_now.tell_at);
    EXPECT_EQ(plan(ttl, {}, plan_now.extend_from + 1ns).extend_from, plan_now.extend_from);
}

// Nor for the sake of company.
TEST_P(Plan, WaitsForCompanyNoLongerThanTheLimit) {
    EXPECT_EQ(plan(ttl, {}, plan_now.extend_from + 1ns).extend_by, plan_now.extend_from + 1ns);
}

// An acquisition that took long has less time left, and is extended the earlier.
TEST(WatchPlan, CountsFromTheStartOfTheRound) {
    const auto slow = plan_watch(validity_of(30s) - 5s, claim(30s), {}, no_limit);
    EXPECT_THAT(slow.extend_from - start, Lasts(5s));
}

// A holder who extends by a longer ttl has no need of the watchdog for as long.
TEST(WatchPlan, WaitsWhileTheHolderHasExtendedFurther) {
    const auto longer = plan_watch(validity_of(30s) + 1h, claim(30s), {}, no_limit);
    EXPECT_THAT(longer.extend_from - start, Lasts(1h + 10s));
}

}  // namespace
}  // namespace redlock::test
