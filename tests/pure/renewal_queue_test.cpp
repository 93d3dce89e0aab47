// Rules B7, C6, C7 and C9: what a watchdog extends, when, and until when.
#include "watched.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test::renewal_queue_test {
namespace {

using RenewalQueue = Watched;
using Renewals = WatchedInEachFront;
INSTANTIATE_TEST_SUITE_P(Each, Renewals, each_front, testing::PrintToStringParamName());

// ---- Extending

// C6.
TEST_P(Renewals, ExtendAHeldLock) {
    auto lock = held();
    world.forget_events();
    pass(10s - 1ns);
    EXPECT_THAT(world.events(), IsEmpty());
    pass(2s);
    EXPECT_THAT(world.events(), ElementsAre("expire #1 in 30000 ms"));
    EXPECT_GT(lock.remaining(), 28s);
}

// Two of the five nodes are down.
TEST_P(Renewals, ExtendALockForAsLongAsItIsHeld) {
    world.cut(1);
    world.silence(4);
    auto lock = held();
    const std::string owner{lock.owner()};
    for (int minute = 0; minute < 30; ++minute) {
        pass(1min);
        EXPECT_GE(lock.remaining(), 15s);
        EXPECT_EQ(world.held_by(owner), 3U);
    }
    EXPECT_THAT(losses, IsEmpty());
    EXPECT_FALSE(lock.lost().stop_requested());
}

TEST_P(Renewals, LetLocksThatAreDueTogetherShareARound) {
    std::vector<AnyLock> locks;
    for (int i = 0; i < 100; ++i) {
        locks.push_back(world.held("resource " + std::to_string(i), watched()));
        pass(10ms);
    }
    pass(13s);
    EXPECT_THAT(world.batches, ElementsAre(100U));
}

TEST_P(Renewals, LimitTheNumberOfLocksInARound) {
    std::vector<AnyLock> locks;
    for (int i = 0; i < 600; ++i) locks.push_back(world.held("resource " + std::to_string(i), watched()));
    pass(13s);
    EXPECT_THAT(world.batches, ElementsAre(256U, 256U, 88U));
}

// All locks are overdue. The locks that expire first must be extended first.
TEST_F(RenewalQueue, ExtendsTheMostUrgentLocksFirstIfTheyAreTooMany) {
    std::vector<AnyLock> others;
    std::vector<AnyLock> urgent;
    for (int i = 0; i < 300; ++i) others.push_back(world.held("resource " + std::to_string(i), watched(30s)));
    for (int i = 0; i < 100; ++i) urgent.push_back(world.held("urgent " + std::to_string(i), watched(27s)));
    world.clock.advance(12s);
    queue.make_pass();
    EXPECT_THAT(world.batches, ElementsAre(256U));
    for (const auto& lock : urgent) EXPECT_GT(lock.remaining(), 25s) << lock.resource();
    EXPECT_EQ(std::ranges::count_if(others, [](const auto& it) { return it.remaining() > 25s; }), 156);
}

// C6. If a node hangs in this round, the report must not wait for it.
TEST_F(RenewalQueue, EndsARoundWhenTheLossOfALockThatIsNotExtendedIsDue) {
    auto options = watched(30s);
    options.max_hold = 1s;
    const auto limited = world.held("limited", options);
    const auto other = world.held("other", watched(3s));
    pass(28s);
    const auto due = world.clock.now() + limited.remaining() - 5ms;
    world.clock.advance(1200ms);
    queue.make_pass();
    EXPECT_EQ(world.batches.back(), 1U);
    EXPECT_EQ(world.deadline, due);
}

// This also holds if the holder has extended the lock itself, with another ttl.
TEST_P(Renewals, ExtendTheHolderDescriptionWithTheLock) {
    const auto description = detail::key_of(detail::KeyKind::description, the_resource).text();
    auto lock = held([](auto& options) { options.holder = "host=a"; });
    const auto expect_same_expiry = [&] {
        for (std::size_t node = 0; node < world.size(); ++node) {
            EXPECT_EQ(world.owner_on(node, description), std::string{lock.owner()} + " host=a");
            EXPECT_EQ(world.ttl_on(node, description), world.ttl_on(node));
        }
    };
    for (int i = 0; i < 20; ++i) {
        expect_same_expiry();
        pass(7s);
    }
    EXPECT_THAT(lock.extend(10min), Succeeds());
    EXPECT_GT(world.ttl_on(0), 9min);
    expect_same_expiry();
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_EQ(world.owner_on(0, description), "");
}

TEST_F(RenewalQueue, ExtendsLocksWithManyTtls) {
    std::vector<Lock> locks;
    for (int i = 0; i < 50; ++i) {
        locks.emplace_back(world, "resource " + std::to_string(i), watched(milliseconds{200 << (i % 10)}),
                           world.clock, world.entropy);
        EXPECT_THAT(locks.back().acquire(), Succeeds());
        pass(7ms);
    }
    pass(1min);
    for (const auto& lock : locks) EXPECT_TRUE(lock.valid()) << lock.resource();
    EXPECT_THAT(losses, IsEmpty());
}

// The holder may extend the lock itself. The watchdog then uses the new validity.
TEST_P(Renewals, ExtendLaterIfTheHolderHasExtended) {
    auto lock = held();
    pass(9s);
    EXPECT_THAT(lock.extend(), Succeeds());
    world.forget_events();
    pass(9s);
    EXPECT_THAT(world.events(), IsEmpty());
    pass(3s);
    EXPECT_THAT(world.events(), SizeIs(1));
}

TEST_P(Renewals, ExtendALockThatWasMoved) {
    std::optional<AnyLock> first{world.lock(watched())};
    EXPECT_THAT(first->acquire(), Succeeds());
    auto second = std::move(*first);
    first.reset();
    pass(1min);
    EXPECT_TRUE(second.valid());
    auto third = world.lock("another", watched());
    third = std::move(second);
    pass(1min);
    EXPECT_TRUE(third.valid());
    EXPECT_THAT(third.release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

/// A clock whose reader is stalled right after a reading, on demand.
class StallingClock final : public Clock {
public:
    explicit StallingClock(World& world) : world_(world) {}
    time_point now() noexcept override {
        const auto read = world_.clock.now();
        world_.pass(std::exchange(stall_, duration::zero()));
        return read;
    }
    void sleep_until(time_point until, std::stop_token stop) override {
        world_.clock.sleep_until(until, std::move(stop));
    }
    void stall_at_the_next_look(duration span) { stall_ = span; }

private:
    World& world_;
    duration stall_{};
};

// C3, C4. If a confirmation arrived in time but is applied after the old validity has ended, it is too late,
// because another thread may have seen the end of the validity.
TEST(RenewalQueueWithStalls, NeverMakesALockValidAgain) {
    World world;
    StallingClock stalling{world};
    world.before_round = [&](std::span<const Request> requests, auto&&) {
        if (requests.front().command.verb == Verb::compare_and_expire) stalling.stall_at_the_next_look(20s);
    };
    detail::BlockingRenewals list{stalling};
    Lock lock{world, the_resource, {.ttl = 30s, .watchdog = &list}, stalling, world.entropy};
    EXPECT_THAT(lock.acquire(), Succeeds());
    world.pass(15s);
    (void)list.make_pass();  // ends after the old validity and before the new one
    EXPECT_FALSE(lock.valid());
}

// ---- C7: max_hold

TEST_P(Renewals, StopAtTheHoldLimitAndReportIt) {
    auto lock = held([](auto& options) { options.max_hold = 1min; });
    pass(1min);
    EXPECT_TRUE(lock.valid());
    EXPECT_THAT(losses, IsEmpty());
    const auto end = end_of(lock);
    pass(30s);
    EXPECT_FALSE(lock.valid());
    EXPECT_THAT(losses, ElementsAre(FailsWith(Errc::hold_limit)));
    EXPECT_LE(told_at, end);
}

// This turn is late because a round for other locks hung, or because the thread got no processor.
TEST_F(RenewalQueue, DoesNotExtendAfterTheHoldLimitInALateTurn) {
    auto lock = held([](auto& options) { options.max_hold = 11s; });
    const auto end = end_of(lock);
    world.clock.advance_to(world.clock.now() + 12s);
    queue.make_pass();
    EXPECT_EQ(end_of(lock), end);
}

TEST_P(Renewals, HoldALockForAnHourByDefault) {
    auto lock = held();
    pass(1h);
    EXPECT_TRUE(lock.valid());
    pass(30s);
    EXPECT_FALSE(lock.valid());
}

TEST_P(Renewals, HoldALockForEverIfConfigured) {
    auto lock = held([](auto& options) { options.max_hold = Clock::duration::max(); });
    pass(std::chrono::hours{48});
    EXPECT_TRUE(lock.valid());
}

// The nodes had no time to reply, so the failure says nothing about them.
TEST_F(RenewalQueue, RetriesAShortenedRoundAtOnce) {
    const auto now = world.clock.now();
    detail::LeaseState lease{{world, world.clock, {"a"}, watched()}};
    const auto number = lease.begin(acquired_for(5s), std::stop_source{});
    const Tally silent{std::make_shared<std::vector<std::string>>(5)};
    lease.apply_renewal(number, {silent, now + 30s, now}, {.deadline = now});
    EXPECT_LE(lease.plan(number).extend_from, now);
    lease.apply_renewal(number, {silent, now + 30s, now}, {});
    EXPECT_GT(lease.plan(number).extend_from, now);
}

// ---- B7, C9: the end of the watch

TEST_P(Renewals, DoNotFollowTheRelease) {
    auto lock = held();
    const auto lost = lock.lost();
    pass(15s);
    EXPECT_THAT(lock.release(), Succeeds());
    world.forget_events();
    pass(10min);
    EXPECT_THAT(world.events(), IsEmpty());
    EXPECT_THAT(losses, IsEmpty());
    EXPECT_FALSE(lost.stop_requested()) << "to release is not to lose";
}

// A late release of an earlier acquisition must not remove the next acquisition.
TEST_F(RenewalQueue, DoesNotRemoveALaterAcquisition) {
    const auto state = std::make_shared<detail::LeaseState>(
        detail::LockTerms{world, world.clock, {the_resource}, watched()});
    const auto lease = acquired_for(30s);
    const auto first = state->begin(lease, std::stop_source{});
    queue.add({state, first});
    const auto second = state->begin(lease, std::stop_source{});
    queue.add({state, second});
    queue.remove({state, first});
    EXPECT_FALSE(queue.idle());
    queue.remove({state, second});
    EXPECT_TRUE(queue.idle());
}

TEST_F(RenewalQueue, KeepsNoReferenceToAReleasedLock) {
    std::weak_ptr<int> kept;
    {
        auto options = watched();
        const auto captured = std::make_shared<int>();
        kept = captured;
        options.on_lost = [captured](const Result&) {};
        auto lock = world.lock(options);
        EXPECT_THAT(lock.acquire(), Succeeds());
        EXPECT_FALSE(queue.idle());
        pass(15s);
        EXPECT_THAT(lock.release(), Succeeds());
        EXPECT_TRUE(queue.idle());
    }
    EXPECT_TRUE(kept.expired());
}

TEST_P(Renewals, ReportNothingAfterAFailedRelease) {
    auto lock = held();
    world.cut_all();
    EXPECT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    pass(10min);
    EXPECT_THAT(losses, IsEmpty());
}

TEST_P(Renewals, DoNotExtendADestroyedLock) {
    { (void)held(); }
    world.forget_events();
    pass(10min);
    EXPECT_THAT(world.events(), IsEmpty());
    EXPECT_TRUE(world.queue.idle());
    EXPECT_FALSE(world.loop.run_once());
}

// ---- Incorrect use

TEST_F(RenewalQueue, RejectsImpossibleOptions) {
    World other;
    detail::BlockingRenewals of_another_clock{other.clock};
    const auto refusal_of = [this](const LockOptions& options) {
        return refusal([&] { world.lock(options); });
    };
    for (const auto limit : {Clock::duration{0}, Clock::duration{-1}})
        EXPECT_THAT(refusal_of({.watchdog = &queue, .max_hold = limit}), HasSubstr("LockOptions::max_hold"));
    EXPECT_THAT(refusal_of({.on_lost = [](const Result&) {}}), HasSubstr("LockOptions::on_lost"));
    EXPECT_THAT(refusal_of({.watchdog = &of_another_clock}), HasSubstr("LockOptions::watchdog"));
}

}  // namespace
}  // namespace redlock::test::renewal_queue_test
