// LeaderOptions::margin and LockOptions::margin: a loss is reported this long before the validity ends. The
// validity itself continues, and no extension follows the report.
#include "leadership.hpp"

#include <ostream>
#include <tuple>

namespace redlock::test::leader_margin_test {
namespace {

// ---- Of a leader

using LeaderMargin = Leadership;
INSTANTIATE_TEST_SUITE_P(Each, LeaderMargin, each_front, testing::PrintToStringParamName());

/// A fault that prevents the extension of a leader.
struct Outage {
    const char* name;
    void (*begin)(BatchingWorld& world);
};
void PrintTo(const Outage& outage, std::ostream* out) {
    *out << outage.name;
}

struct LeadershipInAnOutage : testing::TestWithParam<std::tuple<Front, Outage>>, LeaderWorld {
    LeadershipInAnOutage() : LeaderWorld(std::get<Front>(GetParam())) {}
};

const Outage outages[] = {
    {"AllNodesDown", [](BatchingWorld& world) { world.cut_all(); }},
    {"AllNodesHang", [](BatchingWorld& world) { world.silence(0, 1, 2, 3, 4); }},
    {"AMajorityHangs", [](BatchingWorld& world) { world.lose_replies_of(1, 2, 4); }},
    {"NothingCanBeAsked", [](BatchingWorld& world) { world.throws = true; }},
};
INSTANTIATE_TEST_SUITE_P(EachOutage, LeadershipInAnOutage,
                         testing::Combine(each_front, testing::ValuesIn(outages)));

// Stop is requested from the work when exactly the margin is left. Until then the watchdog tries to extend.
TEST_P(LeadershipInAnOutage, IsAskedToStopTheMarginBeforeTheEnd) {
    EXPECT_THAT(leader.run_once([&](const Term& term) {
        const Notice notice{term, world.clock};
        pass(1min);
        ASSERT_FALSE(notice.left);
        std::get<Outage>(GetParam()).begin(world);
        const auto end = term.valid_until();
        pass(end - world.clock.now() - margin - 10ms);
        EXPECT_FALSE(notice.left);
        pass(10ms);
        ASSERT_TRUE(notice.left);
        EXPECT_GE(*notice.left, margin);
        EXPECT_THAT(end - notice.at, Lasts(*notice.left)) << "the validity runs on";
        world.heal_all();
        world.throws = false;
        const auto asked = world.batches.size();
        pass(margin - 1s);
        EXPECT_EQ(term.valid_until(), end) << "nothing is extended after the notice";
        EXPECT_EQ(world.batches.size(), asked);
        EXPECT_THAT(term.remaining(), Lasts(end - world.clock.now()));
        EXPECT_THAT(world.lock().try_acquire(), Not(Succeeds()));
        pass(1min);
        EXPECT_THAT(term.remaining(), Lasts(0s));
    }),
                FailsWith(Errc::lost));
}

// Rounds that are under way when the report is due end at that moment.
TEST_F(LeadershipOfAThread, RequestsTheStopInTimeIfANodeTakesLongerThanTheMargin) {
    BatchingWorld slow{3, 10s};
    detail::BlockingRenewals its{slow.clock};
    Leader one{
        slow, the_resource, {.ttl = ttl, .margin = margin, .watchdog = &its}, slow.clock, slow.entropy};
    EXPECT_THAT(one.run_once([&](const Term& term) {
        const Notice notice{term, slow.clock};
        slow.silence(0, 1);
        for (auto next = its.make_pass(); next != Clock::never(); next = its.make_pass())
            slow.clock.advance_to(next);
        ASSERT_TRUE(notice.left);
        EXPECT_THAT(*notice.left, IsBetween(margin, margin + 5ms));
    }),
                FailsWith(Errc::lost));
}

TEST_P(LeaderMargin, LeavesTimeToResign) {
    EXPECT_THAT(leader.run_once([&](const Term& term) {
        world.cut_all();
        while (!term.lost().stop_requested()) pass(10ms);
        world.heal_all();
    }),
                FailsWith(Errc::lost));
    EXPECT_TRUE(world.clean());
}

// There may already be another leader, so no margin remains.
TEST_P(LeaderMargin, RequestsTheStopAtOnceIfAMajorityHasLostTheKey) {
    EXPECT_THAT(leader.run_once([&](const Term& term) {
        const Notice notice{term, world.clock};
        world.forget(0, 1, 2);
        pass(ttl / 2);
        ASSERT_TRUE(notice.left);
        EXPECT_THAT(*notice.left, Lasts(0s));
    }),
                FailsWith(Errc::lost));
}

TEST_P(LeaderMargin, BeginsNoWorkWithinTheMargin) {
    AnyWorld slow{GetParam(), 3U, 5s};
    AnyLeader late{slow, {.ttl = ttl, .margin = margin, .watchdog = slow.watchdog()}};
    for (const std::size_t node : {0U, 1U, 2U}) slow.slow(node, 4s);
    const auto result = late.run_once([&](const Term&) { ++terms; });
    EXPECT_THAT(result, FailsWith(Errc::validity_exhausted));
    EXPECT_THAT(result.nodes(), SizeIs(3)) << "it has awaited the release";
    EXPECT_EQ(terms, 0);
    EXPECT_TRUE(slow.clean());
}

// ---- Of a lock

using Margin = WatchedInEachFront;
INSTANTIATE_TEST_SUITE_P(Each, Margin, each_front, testing::PrintToStringParamName());

TEST_P(Margin, MakesTheLossReportEarlier) {
    auto lock = held([](auto& options) { options.margin = 10s; });
    const auto end = end_of(lock);
    world.cut_all();
    pass(1min);
    ASSERT_THAT(losses, ElementsAre(FailsWith(Errc::lost)));
    EXPECT_THAT(end - told_at, IsBetween(10s, 10s + 5ms));
}

// C3. The lock is valid until the end, but it cannot be extended any more.
TEST_P(Margin, LeavesTheLockValidUntilTheEnd) {
    auto lock = held([](auto& options) { options.margin = 10s; });
    const auto end = end_of(lock);
    world.cut_all();
    while (!lock.lost().stop_requested()) pass(1ms);
    world.heal_all();
    world.forget_events();
    EXPECT_TRUE(lock.valid());
    EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
    EXPECT_THAT(world.events(), IsEmpty());
    EXPECT_TRUE(lock.valid());
    EXPECT_EQ(end_of(lock), end);
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_THAT(losses, SizeIs(1));
}

using MarginOfAThread = Watched;

// An extension by the holder that is under way when the loss is reported comes too late.
TEST_F(MarginOfAThread, EndsTheEffectOfAnExtensionUnderWay) {
    auto lock = held([](auto& options) { options.margin = 10s; });
    const auto end = end_of(lock);
    world.cut_all();
    pass(end - world.clock.now() - 10s - 6ms);
    ASSERT_FALSE(lock.lost().stop_requested());
    world.heal_all();
    for (const std::size_t node : {0U, 1U, 2U}) world.slow(node, 40ms);
    world.after(10ms, [&] { (void)queue.make_pass(); });
    EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
    EXPECT_EQ(end_of(lock), end);
}

}  // namespace
}  // namespace redlock::test::leader_margin_test
