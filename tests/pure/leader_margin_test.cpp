// LeaderOptions::margin and LockOptions::margin: a loss is reported this long before the validity ends. The
// validity itself continues, and no extension follows the report.
#include "leadership.hpp"

#include <ostream>

namespace redlock::test {
namespace {

// ---- Of a leader

using LeaderMargin = Leadership;

/// A fault that prevents the extension of a leader.
struct Outage {
    const char* name;
    void (*begin)(BatchingWorld& world);
};
void PrintTo(const Outage& outage, std::ostream* out) {
    *out << outage.name;
}

struct LeadershipInAnOutage : Leadership, testing::WithParamInterface<Outage> {};

INSTANTIATE_TEST_SUITE_P(
    EachOutage, LeadershipInAnOutage,
    testing::Values(Outage{"AllNodesDown", [](BatchingWorld& world) { world.cut_all(); }},
                    Outage{"AllNodesHang", [](BatchingWorld& world) { world.silence(0, 1, 2, 3, 4); }},
                    Outage{"AMajorityHangs", [](BatchingWorld& world) { world.lose_replies_of(1, 2, 4); }},
                    Outage{"NothingCanBeAsked", [](BatchingWorld& world) { world.throws = true; }}),
    [](const auto& info) { return info.param.name; });

// Stop is requested from the work when exactly the margin is left. Until then the watchdog tries to extend.
TEST_P(LeadershipInAnOutage, IsAskedToStopTheMarginBeforeTheEnd) {
    EXPECT_THAT(leader.run_once([&](const Term& term) {
        const Notice notice{term, world.clock};
        pass(1min);
        ASSERT_FALSE(notice.left);
        GetParam().begin(world);
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
TEST_F(LeaderMargin, RequestsTheStopInTimeIfANodeTakesLongerThanTheMargin) {
    BatchingWorld slow{3, 10s};
    detail::BlockingRenewals its{slow.clock};
    Leader one{
        slow, the_resource, {.ttl = ttl, .margin = margin, .watchdog = &its}, slow.clock, slow.entropy};
    EXPECT_THAT(one.run_once([&](const Term& term) {
        const Notice notice{term, slow.clock};
        slow.silence(0, 1);
        for (auto next = its.turn(); next != Clock::never(); next = its.turn()) slow.clock.advance_to(next);
        ASSERT_TRUE(notice.left);
        EXPECT_GE(*notice.left, margin);
        EXPECT_LE(*notice.left, margin + 5ms);
    }),
                FailsWith(Errc::lost));
}

TEST_F(LeaderMargin, LeavesTimeToResign) {
    EXPECT_THAT(leader.run_once([&](const Term& term) {
        world.cut_all();
        while (!term.lost().stop_requested()) pass(10ms);
        world.heal_all();
    }),
                FailsWith(Errc::lost));
    EXPECT_TRUE(world.clean());
}

// There may already be another leader, so no margin remains.
TEST_F(LeaderMargin, RequestsTheStopAtOnceIfAMajorityHasLostTheKey) {
    EXPECT_THAT(leader.run_once([&](const Term& term) {
        const Notice notice{term, world.clock};
        world.forget(0, 1, 2);
        pass(ttl / 2);
        ASSERT_TRUE(notice.left);
        EXPECT_THAT(*notice.left, Lasts(0s));
    }),
                FailsWith(Errc::lost));
}

TEST_F(LeaderMargin, BeginsNoWorkWithinTheMargin) {
    World slow{3, 5s};
    detail::BlockingRenewals its{slow.clock};
    Leader late{
        slow, the_resource, {.ttl = ttl, .margin = margin, .watchdog = &its}, slow.clock, slow.entropy};
    for (const std::size_t node : {0U, 1U, 2U}) slow.slow(node, 4s);
    EXPECT_THAT(late.run_once([&](const Term&) { ++terms; }), FailsWith(Errc::validity_exhausted));
    EXPECT_EQ(terms, 0);
    EXPECT_TRUE(slow.clean());
}

// ---- Of a lock

using Margin = Watched;

TEST_F(Margin, MakesTheLossReportEarlier) {
    auto options = watched();
    options.margin = 10s;
    auto lock = world.held(options);
    const auto end = end_of(lock);
    world.cut_all();
    pass(1min);
    ASSERT_THAT(losses, ElementsAre(FailsWith(Errc::lost)));
    EXPECT_GE(end - told_at, 10s);
    EXPECT_LE(end - told_at, 10s + 5ms);
}

// C3. The lock is valid until the end, but it cannot be extended any more.
TEST_F(Margin, LeavesTheLockValidUntilTheEnd) {
    auto options = watched();
    options.margin = 10s;
    auto lock = world.held(options);
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

// An extension by the holder that is under way when the loss is reported comes too late.
TEST_F(Margin, EndsTheEffectOfAnExtensionUnderWay) {
    auto options = watched();
    options.margin = 10s;
    auto lock = world.held(options);
    const auto end = end_of(lock);
    world.cut_all();
    pass(end - world.clock.now() - 10s - 6ms);
    ASSERT_FALSE(lock.lost().stop_requested());
    world.heal_all();
    for (const std::size_t node : {0U, 1U, 2U}) world.slow(node, 40ms);
    world.after(10ms, [&] { (void)queue.turn(); });
    EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
    EXPECT_EQ(end_of(lock), end);
}

}  // namespace
}  // namespace redlock::test
