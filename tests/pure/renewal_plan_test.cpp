// Rules C6 and C7: when a watched lock is extended, and when its loss is reported.
#include "world.hpp"

#include <optional>

#include "lock/option_checks.hpp"
#include "lock/renewal_plan.hpp"

namespace redlock::test::renewal_plan_test {
namespace {

constexpr Clock::time_point start{std::chrono::hours{100}};
constexpr auto no_limit = Clock::never();

algorithm::LeaseRequest request(milliseconds ttl) {
    return {.resources = {}, .ttl = ttl, .drift_factor = 0.01};
}

Clock::time_point validity_of(milliseconds ttl) {
    return algorithm::valid_until(start, request(ttl));
}

detail::RenewalPlan plan(milliseconds ttl, std::optional<Clock::time_point> failure = {},
                         Clock::time_point hold_until = no_limit) {
    return detail::plan_renewal(validity_of(ttl), request(ttl), failure, hold_until);
}

/// From the shortest ttl that works to the longest.
struct RenewalPlanOfEachTtl : testing::TestWithParam<milliseconds> {
    milliseconds ttl = GetParam();
    detail::RenewalPlan plan_now = plan(ttl);
};

INSTANTIATE_TEST_SUITE_P(Ttl, RenewalPlanOfEachTtl,
                         testing::Values(4ms, 10ms, 53ms, 100ms, 1s, 10s, 30s, 1h, 24h, detail::longest_ttl),
                         [](const auto& info) { return std::to_string(info.param.count()) + "ms"; });

// C6, S61. With 30 s, after 10 s.
TEST_P(RenewalPlanOfEachTtl, ExtendsAfterAThirdOfTheTtl) {
    const auto validity = validity_of(ttl) - start;
    EXPECT_THAT(plan_now.extend_from - start, Lasts(std::min(Clock::duration{ttl}, 2 * validity) / 3));
}

TEST_P(RenewalPlanOfEachTtl, WaitsToShareARoundForLessThanHalfOfTheTtl) {
    EXPECT_GT(plan_now.extend_by, plan_now.extend_from);
    EXPECT_LT(plan_now.extend_by - start, Clock::duration{ttl} * 2 / 5);
}

TEST_P(RenewalPlanOfEachTtl, ReportsTheLossShortlyBeforeTheValidityEnds) {
    EXPECT_LT(plan_now.notify_at, validity_of(ttl));
    EXPECT_GE(plan_now.notify_at, validity_of(ttl) - 5ms);
    EXPECT_GE(plan_now.notify_at, validity_of(ttl) - Clock::duration{ttl} / 100);
}

// C6. "Goes on trying": several times, and with pauses.
TEST_P(RenewalPlanOfEachTtl, RetriesAfterAFailure) {
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

TEST_P(RenewalPlanOfEachTtl, DoesNotRetryAfterTheLossReport) {
    EXPECT_EQ(plan(ttl, plan_now.notify_at).extend_from, Clock::never());
    EXPECT_EQ(plan(ttl, plan_now.notify_at).next(), plan_now.notify_at);
}

// C7. No extension begins after max_hold.
TEST_P(RenewalPlanOfEachTtl, DoesNotExtendAfterTheHoldLimit) {
    EXPECT_EQ(plan(ttl, {}, plan_now.extend_from).extend_from, Clock::never());
    EXPECT_EQ(plan(ttl, {}, plan_now.extend_from).next(), plan_now.notify_at);
    EXPECT_EQ(plan(ttl, {}, plan_now.extend_from + 1ns).extend_from, plan_now.extend_from);
}

// A lock does not wait beyond max_hold to share a round either.
TEST_P(RenewalPlanOfEachTtl, WaitsToShareARoundNoLongerThanTheHoldLimit) {
    EXPECT_EQ(plan(ttl, {}, plan_now.extend_from + 1ns).extend_by, plan_now.extend_from + 1ns);
}

// An acquisition that took long has less validity left, so it is extended earlier.
TEST(RenewalPlan, CountsFromTheStartOfTheRound) {
    const auto slow = detail::plan_renewal(validity_of(30s) - 5s, request(30s), {}, no_limit);
    EXPECT_THAT(slow.extend_from - start, Lasts(5s));
}

// If the holder extends with a longer ttl, the watchdog need not extend for as long.
TEST(RenewalPlan, WaitsLongerIfTheHolderExtendedWithALongerTtl) {
    const auto longer = detail::plan_renewal(validity_of(30s) + 1h, request(30s), {}, no_limit);
    EXPECT_THAT(longer.extend_from - start, Lasts(1h + 10s));
}

// C6. Extensions begin when they would without a margin, as long as there is time to win one before the
// report.
TEST_P(RenewalPlanOfEachTtl, ReportsTheLossEarlierByTheMargin) {
    const auto validity = validity_of(ttl) - start;
    for (const auto margin : {validity / 100, validity / 5, validity / 2 - 1ns}) {
        const auto plan = detail::plan_renewal(validity_of(ttl), request(ttl), {}, no_limit, margin);
        EXPECT_LT(plan.notify_at, validity_of(ttl) - margin);
        EXPECT_GE(plan.notify_at, validity_of(ttl) - margin - 5ms);
        EXPECT_LE(plan.extend_from, plan_now.extend_from);
        EXPECT_LE(plan.extend_by - start, (validity - margin) / 5 * 4);
    }
}

TEST(RenewalPlan, DoesNotExtendEarlierIfTheMarginLeavesTime) {
    const auto plan_now = detail::plan_renewal(validity_of(15s), request(15s), {}, no_limit, 3s);
    EXPECT_EQ(plan_now.extend_from, plan(15s).extend_from);
}

// The drift may take nearly all of the ttl. The extension begins while there is time to win it.
TEST(RenewalPlan, LeavesTimeToExtendWithAnyDrift) {
    for (const double factor : {0.0, 0.3, 0.5, 0.6, 2.0 / 3, 0.8, 0.9, 0.99}) {
        const algorithm::LeaseRequest drifting{.resources = {}, .ttl = 10s, .drift_factor = factor};
        const auto valid_until = algorithm::valid_until(start, drifting);
        const auto plan = detail::plan_renewal(valid_until, drifting, {}, no_limit);
        EXPECT_GT(plan.extend_from, start) << factor;
        EXPECT_LE(plan.extend_by - start, (valid_until - start) * 4 / 5) << factor;
        EXPECT_LT(plan.extend_by, plan.notify_at) << factor;
        EXPECT_LT(plan.notify_at, valid_until) << factor;
    }
}

}  // namespace
}  // namespace redlock::test::renewal_plan_test
