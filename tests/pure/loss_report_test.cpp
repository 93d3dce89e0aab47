// Rules C7 to C9: when the loss of a lock is reported, to whom, and what its callback may do.
#include "watched.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace redlock::test::loss_report_test {
namespace {

using LossReport = WatchedInEachFront;
INSTANTIATE_TEST_SUITE_P(Each, LossReport, each_front, testing::PrintToStringParamName());
using LossReportOfAThread = Watched;

// ---- Losing

// C6. "At valid_until declares the loss." C8. "One loss, one notice": the token first, then the callback.
TEST_P(LossReport, IsMadeWhenTheValidityEnds) {
    std::stop_token lost;
    auto options = watched();
    options.on_lost = [&, note = options.on_lost](const Result& loss) {
        note(loss);
        EXPECT_TRUE(lost.stop_requested());
    };
    auto lock = world.held(options);
    const auto end = end_of(lock);
    lost = lock.lost();
    world.cut_all();
    pass(30s - 400ms);
    EXPECT_THAT(losses, IsEmpty());
    EXPECT_TRUE(lock.valid());
    pass(400ms);
    EXPECT_THAT(losses, ElementsAre(FailsWith(Errc::lost)));
    EXPECT_TRUE(lost.stop_requested());
    EXPECT_FALSE(lock.valid());
    EXPECT_THAT(told_at, IsBetween(end - 5ms, end));
    pass(10min);
    EXPECT_THAT(losses, SizeIs(1));
}

// A12. The report has the cause for each node.
TEST_P(LossReport, HasTheCauseForEachNode) {
    auto lock = held();
    world.silence(0, 1);
    world.lie(Errc::quarantined, 3);
    pass(30s);
    ASSERT_THAT(losses, SizeIs(1));
    ASSERT_THAT(losses[0].nodes(), SizeIs(5));
    EXPECT_EQ(losses[0].nodes()[1].cause, Errc::timed_out);
    EXPECT_EQ(losses[0].nodes()[2].vote, Vote::granted);
    EXPECT_EQ(losses[0].nodes()[3].cause, Errc::quarantined);
}

// C6. "Goes on trying until valid_until."
TEST_P(LossReport, IsNotMadeIfTheNodesReturnAtTheLastMoment) {
    auto lock = held();
    world.cut_all();
    pass(27s);
    world.heal_all();
    pass(3s);
    EXPECT_THAT(lock.remaining(), testing::Gt(20s));
    EXPECT_THAT(losses, IsEmpty());
}

// C6. A hanging round for other locks on other nodes does not delay the report.
TEST_F(LossReportOfAThread, IsMadeInTimeWhileOtherNodesHang) {
    ScriptedNodes hanging{3, 1h, world.clock, world.log};
    Lock other{hanging, "other", watched(10h), world.clock, world.entropy};
    EXPECT_THAT(other.acquire(), Succeeds());
    pass(10h / 3 - 10s);
    auto lock = held();
    const auto end = end_of(lock);
    world.cut_all();
    hanging.silence(0, 1, 2);
    pass(26min);  // into the round of `other`, which takes as long as possible
    EXPECT_THAT(losses, SizeIs(1));
    EXPECT_LE(told_at, end);
    EXPECT_TRUE(other.valid());
}

// The same with the nodes of the lock itself: node_timeout is longer than the remaining validity.
TEST_F(LossReportOfAThread, IsMadeInTimeWhileItsOwnNodesHang) {
    World slow{5, 20s};
    detail::BlockingRenewals list{slow.clock};
    Clock::time_point told{};
    auto lock = slow.lock(
        {.ttl = 30s, .watchdog = &list, .on_lost = [&](const Result&) { told = slow.clock.now(); }});
    EXPECT_THAT(lock.acquire(), Succeeds());
    const auto end = slow.clock.now() + lock.remaining();
    slow.silence(0, 1, 2);
    while (lock.valid()) slow.clock.advance_to(list.make_pass());
    EXPECT_THAT(told, IsBetween(end - 5ms, end));
}

// Another client may hold the resource now, so the report must not wait for the end of the validity.
TEST_P(LossReport, IsMadeAtOnceIfAMajorityHasLostTheKey) {
    auto lock = held();
    world.forget(0, 1, 2);
    pass(13s);
    EXPECT_THAT(losses, ElementsAre(FailsWith(Errc::lost)));
    EXPECT_TRUE(lock.lost().stop_requested());
    EXPECT_FALSE(lock.valid());
    EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
}

// Each acquisition has its own report.
TEST_P(LossReport, IsMadeForEachAcquisition) {
    auto lock = held();
    const auto first = lock.lost();
    world.cut_all();
    pass(1min);
    world.heal_all();
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_TRUE(first.stop_requested());
    EXPECT_FALSE(lock.lost().stop_requested());
    pass(1min);
    EXPECT_TRUE(lock.valid());
    world.cut_all();
    pass(1min);
    EXPECT_TRUE(lock.lost().stop_requested());
    EXPECT_THAT(losses, SizeIs(2));
}

TEST_P(LossReport, HasItsOwnReasonForEachAcquisition) {
    auto lock = held([](auto& options) { options.max_hold = 1min; });
    world.forget(0, 1, 2);
    pass(13s);
    EXPECT_THAT(lock.acquire(), Succeeds());
    pass(2min);
    EXPECT_THAT(losses, ElementsAre(FailsWith(Errc::lost), FailsWith(Errc::hold_limit)));
}

/// The report of a loss after two events, in each order.
struct LossReportAfterTwoEvents : Watched {
    /// Returns a lock that the watchdog extends for a minute.
    AnyLock held_for_a_minute() {
        return held([](auto& options) { options.max_hold = 1min; });
    }
    void expect_one_loss(Errc error, std::size_t nodes) {
        ASSERT_THAT(losses, ElementsAre(FailsWith(error)));
        EXPECT_THAT(losses[0].nodes(), SizeIs(nodes));
    }
};

TEST_F(LossReportAfterTwoEvents, HasNoFailureThatWasFollowedByASuccess) {
    auto lock = held_for_a_minute();
    world.silence(0, 1, 2);
    pass(13s);
    world.heal_all();
    pass(2min);
    expect_one_loss(Errc::hold_limit, 0);
}

TEST_F(LossReportAfterTwoEvents, HasTheFailureThatFollowedASuccess) {
    auto lock = held_for_a_minute();
    pass(20s);
    world.silence(0, 1, 2);
    pass(1min);
    ASSERT_THAT(losses, SizeIs(1));
    ASSERT_THAT(losses[0].nodes(), SizeIs(5));
    EXPECT_EQ(losses[0].nodes()[1].cause, Errc::timed_out);
}

TEST_F(LossReportAfterTwoEvents, HasTheLossThatAnExtensionFoundBeforeTheLimit) {
    auto lock = held_for_a_minute();
    pass(50s);
    world.forget(0, 1, 2);
    EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
    world.clock.advance(30s);
    pass(0s);
    expect_one_loss(Errc::lost, 5);
}

TEST_F(LossReportAfterTwoEvents, HasTheLossThatAnExtensionFoundAfterTheLimit) {
    auto lock = held_for_a_minute();
    pass(70s);
    world.forget(0, 1, 2);
    EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
    pass(0s);
    expect_one_loss(Errc::lost, 5);
}

// The watchdog reports the loss a little later than it has found it, so the limit can pass in between.
TEST_F(LossReportAfterTwoEvents, HasTheLossThatARenewalFoundBeforeTheLimit) {
    auto options = watched();
    options.max_hold = 1min;
    detail::LeaseState lease{{world, world.clock, {"a"}, options}};
    auto held = acquired_for(2min);
    held.may_hold_key.reset();  // so a renewal without a vote finds the loss
    const auto number = lease.begin(held, std::stop_source{});
    lease.apply_renewal(number, {world.blank_tally(), held.valid_until, world.clock.now()}, {});
    world.clock.advance(2min);
    lease.report_loss(number);
    expect_one_loss(Errc::lost, 5);
}

TEST_F(LossReportAfterTwoEvents, HasTheLimitIfTheHolderExtendedTheLockAfterIt) {
    auto lock = held_for_a_minute();
    pass(70s);
    EXPECT_THAT(lock.extend(), Succeeds());
    pass(25s);
    EXPECT_THAT(losses, IsEmpty());
    pass(5s);
    expect_one_loss(Errc::hold_limit, 0);
}

// The first acquisition ends before its max_hold. The failures during it must not appear in the report of the
// next one.
TEST_F(LossReportAfterTwoEvents, HasNoFailureOfAnEarlierAcquisition) {
    auto lock = held_for_a_minute();
    world.silence(0, 1, 2);
    pass(20s);
    EXPECT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    world.heal_all();
    EXPECT_THAT(lock.acquire(), Succeeds());
    world.clock.advance(2min);  // no extension, because a success would also forget the failure
    pass(0s);
    expect_one_loss(Errc::hold_limit, 0);
}

// A holder can be stopped although its lock is not lost, but not after its release has begun.
TEST_F(LossReportOfAThread, IsNotReplacedByAStopThatIsRequestedAfterTheRelease) {
    for (const bool released : {false, true}) {
        detail::LeaseState lease{{world, world.clock, {"a"}, watched()}};
        const auto number = lease.begin(acquired_for(5s), std::stop_source{});
        const auto lost = lease.lost();
        if (released) (void)lease.begin_release(number);
        lease.request_stop(number);
        EXPECT_EQ(lost.stop_requested(), !released);
    }
}

// A round that was cut short says less than the failure before it, and more than nothing.
TEST_F(LossReportAfterTwoEvents, HasAShortenedRoundOnlyIfNothingElseFailed) {
    const auto cause_after = [&](std::initializer_list<Errc> rounds) {
        losses.clear();
        detail::LeaseState lease{{world, world.clock, {"a"}, watched()}};
        const auto now = world.clock.now();
        const auto number = lease.begin(acquired_for(5s), std::stop_source{});
        for (const auto cause : rounds) {
            auto tally = world.blank_tally();
            for (std::size_t node = 0; node < world.size(); ++node) tally.mark_unknown(node, cause);
            lease.apply_renewal(number, {tally, now + 30s, now}, {});
        }
        lease.report_loss(number);
        return losses.at(0).nodes().empty() ? std::error_code{} : losses[0].nodes()[0].cause;
    };
    EXPECT_EQ(cause_after({Errc::timed_out, Errc::deadline}), Errc::timed_out);
    EXPECT_EQ(cause_after({Errc::deadline, Errc::timed_out}), Errc::timed_out);
    EXPECT_EQ(cause_after({Errc::timed_out, Errc::loading}), Errc::loading);
    EXPECT_EQ(cause_after({Errc::deadline}), Errc::deadline);
}

// The pause after a failure, and the shorter time for sharing a round, end with the next success and with the
// acquisition.
TEST_F(LossReportAfterTwoEvents, LeavesThePlanAsBeforeTheFailure) {
    const auto now = world.clock.now();
    detail::LeaseState lease{{world, world.clock, {"a"}, watched()}};
    const auto held = acquired_for(5s);
    Tally granted = world.blank_tally();
    for (std::size_t node = 0; node < world.size(); ++node) granted.grant(node);
    const auto number = lease.begin(held, std::stop_source{});
    const auto wait_of = [&](std::uint64_t acquisition) {
        const auto plan = lease.plan(acquisition);
        return plan.extend_by - plan.extend_from;
    };
    const auto before = wait_of(number);
    lease.apply_renewal(number, {world.blank_tally(), now + 30s, now}, {});
    EXPECT_LT(wait_of(number), before);
    lease.apply_renewal(number, {granted, now + 5s, now}, {});
    EXPECT_EQ(wait_of(number), before);
    lease.apply_renewal(number, {world.blank_tally(), now + 30s, now}, {});
    EXPECT_EQ(wait_of(lease.begin(held, std::stop_source{})), before);
}

TEST_P(LossReport, IsMadeForAllLostLocksAtOnce) {
    std::vector<AnyLock> locks;
    for (int i = 0; i < 300; ++i) locks.push_back(world.held("resource " + std::to_string(i), watched()));
    const auto end = end_of(locks.front());
    world.cut_all();
    pass(30s);
    EXPECT_THAT(losses, SizeIs(300));
    EXPECT_LE(told_at, end);
}

// ---- C8: callbacks

// A loss is reported during the turn of a queue. The context of the turn is restored afterwards.
TEST(RenewalScope, RestoresTheFormerContext) {
    const int queue = 0;
    const detail::RenewalScope turn{{.renewals = &queue}};
    {
        const detail::RenewalScope report{{.renewals = &queue, .number = 7}};
        EXPECT_EQ(detail::renewal_context().number, 7U);
    }
    EXPECT_EQ(detail::renewal_context().renewals, &queue);
    EXPECT_EQ(detail::renewal_context().number, 0U);
}

/// A lock whose callback records the loss and then performs an action on the lock.
struct LossReportCallback : Watched {
    void hold_until_lost(std::function<void()> action) {
        auto options = watched();
        options.on_lost = [note = options.on_lost, action = std::move(action)](const Result& loss) {
            note(loss);
            action();
        };
        lock.emplace(world.held(options));
    }
    std::optional<AnyLock> lock;
};

TEST_F(LossReportCallback, MayRelease) {
    hold_until_lost([this] { EXPECT_THAT(lock->release(), FailsWith(Errc::lost)); });
    world.forget(0, 1, 2);
    pass(1min);
    EXPECT_THAT(losses, SizeIs(1));
    EXPECT_TRUE(world.clean());
}

TEST_F(LossReportCallback, MayDestroyTheLock) {
    hold_until_lost([this] { lock.reset(); });
    world.cut_all();
    pass(1min);
    EXPECT_THAT(losses, SizeIs(1));
    EXPECT_FALSE(lock);
}

TEST_F(LossReportCallback, MayAcquireAgain) {
    hold_until_lost([this] { EXPECT_THAT(lock->acquire(), Succeeds()); });
    world.forget(0, 1, 2);
    pass(1min);
    EXPECT_THAT(losses, SizeIs(1));
    EXPECT_TRUE(lock->valid());
}

// C8. A release() in the callback ends the lost acquisition, and no later one of any thread.
TEST_F(LossReportCallback, ReleasesOnlyTheLostAcquisition) {
    hold_until_lost([this] {
        world.heal_all();
        std::thread{[this] { EXPECT_THAT(lock->acquire(), Succeeds()); }}.join();
        EXPECT_THAT(lock->release(), FailsWith(Errc::not_held));
        lock->blocking().unlock();
    });
    world.cut_all();
    pass(5min);
    EXPECT_THAT(losses, SizeIs(1));
    EXPECT_TRUE(lock->valid()) << "and extended";
    EXPECT_THAT(lock->release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

TEST_F(LossReportCallback, MayThrow) {
    hold_until_lost([] { throw std::runtime_error("of the user's own"); });
    world.cut_all();
    pass(1min);
    EXPECT_TRUE(lock->lost().stop_requested());
}

/// Two locks. If one is lost, its callback performs an action on both.
struct LossReportOfTwoLocks : Watched {
    void hold_until_lost(const std::function<void(AnyLock&)>& action) {
        auto options = watched();
        options.on_lost = [this, action](const Result& loss) {
            losses.push_back(loss);
            for (auto& lock : locks) action(*lock);
        };
        for (auto& lock : locks)
            lock.emplace(world.held("resource " + std::to_string(&lock - locks.data()), options));
    }
    std::array<std::optional<AnyLock>, 2> locks;
};

// If a lock is released before its own report is due, its loss is not reported.
TEST_F(LossReportOfTwoLocks, LetsTheCallbackOfOneLockReleaseAnother) {
    hold_until_lost([](AnyLock& lock) { (void)lock.release(); });
    world.cut_all();
    pass(1min);
    EXPECT_THAT(losses, SizeIs(1));
}

// C8. While one loss is reported, another lock, which was lost as well, is acquired again.
TEST_F(LossReportOfTwoLocks, IsNotMadeForALaterAcquisition) {
    hold_until_lost([this](AnyLock& lock) {
        world.heal_all();
        if (lock.valid() || lock.lost().stop_requested()) return;
        (void)lock.release();
        EXPECT_THAT(lock.acquire(), Succeeds());
    });
    world.cut_all();
    world.clock.advance(31s);
    pass(1min);
    EXPECT_THAT(losses, SizeIs(1));
    EXPECT_EQ(std::ranges::count_if(locks, [](const auto& lock) { return lock->valid(); }), 1);
}

// C8. While one loss is reported, the holder of another lock extends it.
TEST_F(LossReportOfAThread, IsNotMadeForALeaseThatWasExtendedMeanwhile) {
    auto kept = world.lock("kept", watched());
    auto options = watched();
    options.on_lost = [&](const Result&) {
        world.heal_all();
        EXPECT_THAT(kept.extend(), Succeeds());
        world.clock.advance(20s);
    };
    auto lost = world.held("lost", options);
    world.clock.advance(5s);
    EXPECT_THAT(kept.acquire(), Succeeds());
    world.cut_all();
    pass(50s);
    EXPECT_TRUE(lost.lost().stop_requested());
    EXPECT_THAT(losses, IsEmpty());
    EXPECT_TRUE(kept.valid());
}

// C2, C8. If the holder's own extension finds the loss, it is reported at once, and only once.
TEST_P(LossReport, IsMadeIfTheHolderFindsTheLoss) {
    auto lock = held();
    const auto lost = lock.lost();
    pass(1s);
    world.forget(0, 1, 2);
    EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
    EXPECT_FALSE(lock.valid());
    EXPECT_TRUE(lost.stop_requested());
    if (GetParam() == Front::thread) {
        EXPECT_THAT(losses, IsEmpty()) << "in the watchdog's thread";
    }
    pass(0s);
    ASSERT_THAT(losses, ElementsAre(FailsWith(Errc::lost)));
    EXPECT_EQ(losses[0].nodes()[1].vote, Vote::refused);
    pass(1min);
    EXPECT_THAT(losses, SizeIs(1));
}

// ---- C9: a release() while the loss is reported

struct LossReportDuringARelease : Watched {
    enum class FoundBy : bool { watchdog, holder };

    /// Lets a lock be lost, and does this in a callback of lost(). If the holder's own extension finds the
    /// loss, the callback runs in the thread of the holder. Expects that on_lost is not called.
    void lose(FoundBy finder, const std::function<void()>& action) {
        lock.emplace(held());
        const std::stop_callback on_stop{lock->lost(), action};
        world.forget(0, 1, 2);
        if (finder == FoundBy::holder) {
            EXPECT_THAT(lock->extend(), FailsWith(Errc::lost));
        }
        pass(10min);
        EXPECT_THAT(losses, IsEmpty());
    }
    /// Blocks until the release() in another thread has returned.
    auto release_in_another_thread() {
        return [this] {
            std::thread{[this] {
                EXPECT_THAT(lock->release(), FailsWith(Errc::lost));
                released = true;
            }}.join();
        };
    }
    std::optional<AnyLock> lock;
    bool released = false;
};

TEST_F(LossReportDuringARelease, BeginsNoCallbackAfterReleaseHasReturned) {
    for (const auto finder : {FoundBy::watchdog, FoundBy::holder}) {
        released = false;
        lose(finder, release_in_another_thread());
        EXPECT_TRUE(released);
        EXPECT_TRUE(queue.idle()) << "the watchdog keeps nothing of a lock that was released";
    }
}

// The callback destroys the lock in the thread that is inside extend().
TEST_F(LossReportDuringARelease, LetsACallbackDestroyTheLockIfTheHolderFoundTheLoss) {
    lose(FoundBy::holder, [&] { lock.reset(); });
    EXPECT_TRUE(queue.idle());
}

TEST_F(LossReportDuringARelease, LetsACallbackOfLostReleaseTheLock) {
    lose(FoundBy::watchdog, [&] { EXPECT_THAT(lock->release(), FailsWith(Errc::lost)); });
    EXPECT_TRUE(world.clean());
}

// The next acquisition has its own report.
TEST_F(LossReportDuringARelease, IsNotMadeForTheNextAcquisition) {
    lose(FoundBy::watchdog, [&] {
        EXPECT_THAT(lock->release(), FailsWith(Errc::lost));
        EXPECT_THAT(lock->acquire(), Succeeds());
    });
    EXPECT_TRUE(lock->valid());
    EXPECT_FALSE(lock->lost().stop_requested());
}

// An Observer is called in the thread of the round, so a release() there must not wait for the end of the
// round.
TEST_F(LossReportOfAThread, LetsAnObserverReleaseTheLock) {
    auto lock = held();
    world.round_ended = [&] { EXPECT_THAT(lock.release(), Succeeds()); };
    pass(1min);
    EXPECT_FALSE(lock.valid());
    EXPECT_TRUE(world.clean());
    EXPECT_TRUE(queue.idle());
    EXPECT_THAT(losses, IsEmpty());
}

TEST_F(LossReportOfAThread, LetsAnObserverAcquireTheLockAgain) {
    auto lock = held();
    world.round_ended = [&] {
        EXPECT_THAT(lock.release(), Succeeds());
        EXPECT_THAT(lock.acquire(), Succeeds());
    };
    pass(5min);
    EXPECT_TRUE(lock.valid());
    EXPECT_THAT(losses, IsEmpty());
}

// A user's Nodes may run out of memory or break its contract. The loss is still reported.
TEST_P(LossReport, IsMadeEvenIfTheNodesThrow) {
    auto lock = held();
    const auto end = end_of(lock);
    world.throws = true;
    pass(1min);
    EXPECT_THAT(losses, ElementsAre(FailsWith(Errc::lost)));
    EXPECT_LE(told_at, end);
    EXPECT_LT(world.batches.size(), 100U);
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost)) << "nothing is under way that it would wait for";
}

TEST_P(LossReport, IsNotMadeIfTheNodesThrowForAWhile) {
    auto lock = held();
    world.throws = true;
    pass(20s);
    EXPECT_THAT(world.batches, SizeIs(testing::Ge(2U)));
    world.throws = false;
    pass(20s);
    EXPECT_TRUE(lock.valid());
    EXPECT_THAT(losses, IsEmpty());
}

// ---- Without a watchdog

TEST(AnUnwatchedLock, HasNoStopTokenForItsLoss) {
    World world;
    auto lock = world.lock();
    EXPECT_FALSE(lock.lost().stop_possible());
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_FALSE(lock.lost().stop_possible());
}

}  // namespace
}  // namespace redlock::test::loss_report_test
