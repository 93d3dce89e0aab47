// A worker only while leader: election, the margin before the end of a term, resignation, and the pauses
// between two terms.
#include "watched.hpp"

#include <redlock/leader.hpp>

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace redlock::test {
namespace {

struct Leadership : Watched {
    static constexpr auto ttl = 15s;
    static constexpr auto margin = 3s;

    LeaderOptions options() {
        return {.ttl = ttl,
                .margin = margin,
                .longest_pause = 8s,
                .watchdog = &queue,
                .on_error = [this](const std::exception_ptr& error) { errors.push_back(what(error)); },
                .on_failure = [this](const Result& result) { failures.push_back(result); }};
    }
    Leader candidate(LeaderOptions its) {
        return {world, the_resource, std::move(its), world.clock, world.entropy};
    }

    static std::string what(const std::exception_ptr& error) {
        try {
            std::rethrow_exception(error);
        } catch (const std::exception& caught) {
            return caught.what();
        }
    }

    /// Another leads, and has not resigned in this span.
    void another_leads(milliseconds span) { world.occupy(span, 0, 1, 2, 3, 4); }

    /// When `lost` was stopped, for work that stops at once: what was left of the term then.
    struct Notice {
        Notice(const Term& term, Clock& clock)
            : callback(term.lost(), [this, term, &clock] { left = term.remaining(), at = clock.now(); }) {}
        std::optional<Clock::duration> left{};
        Clock::time_point at{};
        std::stop_callback<std::function<void()>> callback;
    };

    Leader leader{world, the_resource, options(), world.clock, world.entropy};
    std::stop_source stop;
    std::vector<std::string> errors;
    std::vector<Result> failures;
    int terms = 0;
};

// ---- A term

TEST_F(Leadership, WorksAsTheOnlyHolderAndResigns) {
    EXPECT_THAT(leader.run_once([&](const Term& term) {
        ++terms;
        EXPECT_EQ(term.fencing_token(), world.counted_on(0));
        EXPECT_GT(term.fencing_token(), 0U);
        EXPECT_THAT(term.remaining(), Lasts(ttl - 152ms));
        EXPECT_EQ(term.valid_until(), world.clock.now() + term.remaining());
        EXPECT_FALSE(term.lost().stop_requested());
        EXPECT_THAT(world.lock().try_acquire(), FailsWith(Errc::held_by_other));
    }),
                Succeeds());
    EXPECT_EQ(terms, 1);
    EXPECT_TRUE(world.clean());
}

// C7. A leader has no longest hold.
TEST_F(Leadership, LeadsForAsLongAsTheWorkLasts) {
    EXPECT_THAT(leader.run_once([&](const Term& term) {
        pass(5h);
        EXPECT_FALSE(term.lost().stop_requested());
        EXPECT_GT(term.remaining(), margin);
    }),
                Succeeds());
}

TEST_F(Leadership, WaitsWhileAnotherLeads) {
    const auto start = world.clock.now();
    another_leads(10min);
    EXPECT_THAT(leader.run_once([&](const Term&) { ++terms; }), Succeeds());
    EXPECT_EQ(terms, 1);
    EXPECT_GE(world.clock.now() - start, 10min);
    EXPECT_LE(world.clock.now() - start, 10min + 1s) << "the longest pause of the campaign";
}

TEST_F(Leadership, HandsTheLeadershipOverWithALargerToken) {
    auto other = candidate(options());
    std::uint64_t first = 0;
    const auto campaign_in_vain = [&](const Term& term) {
        first = term.fencing_token();
        std::stop_source patience;
        world.after(5s, [&] { patience.request_stop(); });
        EXPECT_THAT(other.run_once([](const Term&) { FAIL() << "there is a leader"; }, patience.get_token()),
                    FailsWith(Errc::cancelled));
    };
    EXPECT_THAT(leader.run_once(campaign_in_vain), Succeeds());
    EXPECT_THAT(other.run_once([&](const Term& term) { EXPECT_GT(term.fencing_token(), first); }),
                Succeeds());
}

TEST_F(Leadership, IsOverWithItsTerm) {
    std::optional<Term> kept;
    EXPECT_THAT(leader.run_once([&](const Term& term) { kept = term; }), Succeeds());
    EXPECT_THAT(leader.run_once([&](const Term& term) {
        EXPECT_THAT(kept->remaining(), Lasts(0s)) << "though there is a term now";
        EXPECT_GT(term.remaining(), 0s);
    }),
                Succeeds());
    EXPECT_LT(kept->valid_until(), world.clock.now());
}

// ---- The margin

/// What keeps a leader from being extended.
struct Outage {
    const char* name;
    void (*begin)(BatchingWorld& world);
};
void PrintTo(const Outage& outage, std::ostream* out) {
    *out << outage.name;
}

struct LeadershipInAnOutage : Leadership, testing::WithParamInterface<Outage> {};

INSTANTIATE_TEST_SUITE_P(
    Of, LeadershipInAnOutage,
    testing::Values(Outage{"AllNodesDown", [](BatchingWorld& world) { world.cut_all(); }},
                    Outage{"AllNodesHang", [](BatchingWorld& world) { world.silence(0, 1, 2, 3, 4); }},
                    Outage{"AMajorityHangs", [](BatchingWorld& world) { world.lose_replies_of(1, 2, 4); }},
                    Outage{"NothingCanBeAsked", [](BatchingWorld& world) { world.throws = true; }}),
    [](const auto& info) { return info.param.name; });

// The work is told while there is the margin left, and until then the leader goes on trying.
TEST_P(LeadershipInAnOutage, IsToldTheMarginBeforeTheEnd) {
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

// Rounds that are under way when the notice is due end then.
TEST_F(Leadership, IsToldInTimeWhereOneNodeMayTakeLongerThanAMargin) {
    BatchingWorld slow{3, 10s};
    detail::RenewalQueue its{slow.clock};
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

TEST_F(Leadership, ResignsWithinTheMargin) {
    EXPECT_THAT(leader.run_once([&](const Term& term) {
        world.cut_all();
        while (!term.lost().stop_requested()) pass(10ms);
        world.heal_all();
    }),
                FailsWith(Errc::lost));
    EXPECT_TRUE(world.clean());
}

// There may be another leader: no margin is to be had.
TEST_F(Leadership, IsToldAtOnceWhereAMajorityHasLostTheKey) {
    EXPECT_THAT(leader.run_once([&](const Term& term) {
        const Notice notice{term, world.clock};
        world.forget(0, 1, 2);
        pass(ttl / 2);
        ASSERT_TRUE(notice.left);
        EXPECT_THAT(*notice.left, Lasts(0s));
    }),
                FailsWith(Errc::lost));
}

TEST_F(Leadership, BeginsNoWorkWithinTheMargin) {
    World slow{3, 5s};
    detail::RenewalQueue its{slow.clock};
    Leader late{
        slow, the_resource, {.ttl = ttl, .margin = margin, .watchdog = &its}, slow.clock, slow.entropy};
    for (const std::size_t node : {0U, 1U, 2U}) slow.slow(node, 4s);
    EXPECT_THAT(late.run_once([&](const Term&) { ++terms; }), FailsWith(Errc::validity_exhausted));
    EXPECT_EQ(terms, 0);
    EXPECT_TRUE(slow.clean());
}

// ---- Stopping

TEST_F(Leadership, GivesACampaignUpWhenStopped) {
    another_leads(1h);
    world.after(10s, [&] { stop.request_stop(); });
    EXPECT_THAT(time_taken(world, [&] { leader.run([&](const Term&) { ++terms; }, stop.get_token()); }),
                Lasts(10s));
    EXPECT_EQ(terms, 0);
    EXPECT_THAT(failures, IsEmpty());
}

TEST_F(Leadership, DoesNothingWhereItIsStoppedAlready) {
    stop.request_stop();
    leader.run([&](const Term&) { ++terms; }, stop.get_token());
    EXPECT_THAT(leader.run_once([&](const Term&) { ++terms; }, stop.get_token()), FailsWith(Errc::cancelled));
    EXPECT_EQ(terms, 0);
    EXPECT_THAT(world.events(), IsEmpty());
}

TEST_F(Leadership, EndsAPauseWhenStopped) {
    world.after(100ms, [&] { stop.request_stop(); });
    EXPECT_THAT(time_taken(world, [&] { leader.run([&](const Term&) { ++terms; }, stop.get_token()); }),
                Lasts(100ms));
    EXPECT_EQ(terms, 1);
}

// The term of work that does not listen ends, too.
TEST_F(Leadership, TellsTheWorkWhenStoppedAndExtendsNoMore) {
    auto beside = world.held("beside", watched(14s));  // which is due a little earlier
    leader.run(
        [&](const Term& term) {
            const Notice notice{term, world.clock};
            world.after(10min, [&] { stop.request_stop(); });
            pass(10min);
            ASSERT_TRUE(notice.left);
            EXPECT_GE(*notice.left, margin);
            const auto end = term.valid_until();
            EXPECT_EQ(world.batches.back(), 2U);
            world.batches.clear();
            pass(1min);
            EXPECT_EQ(term.valid_until(), end);
            EXPECT_THAT(term.remaining(), Lasts(0s));
            EXPECT_THAT(world.batches, Each(1U)) << "the other lock alone";
        },
        stop.get_token());
    EXPECT_TRUE(beside.valid()) << "which shares its rounds with the leader";
    EXPECT_THAT(failures, IsEmpty());
    EXPECT_THAT(losses, IsEmpty());
}

TEST_F(Leadership, SucceedsWhereItWasStopped) {
    EXPECT_THAT(leader.run_once(
                    [&](const Term& term) {
                        stop.request_stop();
                        EXPECT_TRUE(term.lost().stop_requested());
                    },
                    stop.get_token()),
                Succeeds());
    EXPECT_TRUE(world.clean());
}

// ---- Between two terms

TEST_F(Leadership, PausesAfterATermSoThatAnotherMayLead) {
    leader.run(
        [&](const Term&) {
            if (++terms == 20) stop.request_stop();
        },
        stop.get_token());
    ASSERT_THAT(world.clock.pauses(), SizeIs(20));
    for (std::size_t i = 0; i < 19; ++i) {
        EXPECT_GE(world.clock.pauses()[i], 500ms);
        EXPECT_LE(world.clock.pauses()[i], 1s);
    }
}

TEST_F(Leadership, TellsWhatTheWorkThrowsAndBacksOffFurtherEachTime) {
    leader.run(
        [&](const Term&) {
            if (++terms == 12) return stop.request_stop(), void();
            if (terms != 7) throw std::runtime_error("term " + std::to_string(terms));
        },
        stop.get_token());
    ASSERT_THAT(errors, SizeIs(10));
    EXPECT_EQ(errors[1], "term 2");
    const auto& pauses = world.clock.pauses();
    ASSERT_THAT(pauses, SizeIs(12));
    const Clock::duration longest[] = {2s, 4s, 8s, 8s, 8s, 8s, 1s /* a good term */, 2s, 4s, 8s, 8s};
    for (std::size_t i = 0; i < std::size(longest); ++i) {
        EXPECT_GE(pauses[i], longest[i] / 2) << i;
        EXPECT_LE(pauses[i], longest[i]) << i;
    }
    EXPECT_NE(pauses[3], pauses[4]) << "random";
    EXPECT_TRUE(world.clean());
}

TEST_F(Leadership, ThrowsWhatTheWorkThrowsWhereNobodyIsTold) {
    auto its = options();
    its.on_error = {};
    auto one = candidate(its);
    const auto fails = [&](const Term&) {
        if (++terms == 3) stop.request_stop();
        throw std::logic_error("broken");
    };
    EXPECT_THROW(one.run(fails, stop.get_token()), std::logic_error);
    EXPECT_TRUE(world.clean());
    EXPECT_THROW((void)leader.run_once(fails), std::logic_error);
    EXPECT_TRUE(world.clean());
    EXPECT_THAT(errors, IsEmpty());
}

TEST_F(Leadership, TellsThatThereIsNoQuorumAndGoesOn) {
    world.cut(0, 1, 2);
    world.after(30s, [&] { world.heal_all(); });
    leader.run([&](const Term&) { stop.request_stop(); }, stop.get_token());
    ASSERT_THAT(failures, Not(IsEmpty()));
    EXPECT_THAT(failures, Each(FailsWith(Errc::no_quorum)));
    EXPECT_EQ(failures[0].attempts(), 3);
    EXPECT_THAT(leader.run_once([](const Term&) {}), Succeeds());
    world.cut(0, 1, 2);
    EXPECT_THAT(leader.run_once([](const Term&) {}), FailsWith(Errc::no_quorum));
}

TEST_F(Leadership, TellsThatItWasLostAndLeadsAgain) {
    leader.run(
        [&](const Term& term) {
            if (++terms == 2) return stop.request_stop(), void();
            world.cut_all();
            while (!term.lost().stop_requested()) pass(10ms);
            world.heal_all();
        },
        stop.get_token());
    EXPECT_EQ(terms, 2);
    EXPECT_THAT(failures, ElementsAre(FailsWith(Errc::lost)));
}

// Its keys expire.
TEST_F(Leadership, TellsThatItsReleaseWasNotConfirmed) {
    EXPECT_THAT(leader.run_once([&](const Term&) { world.silence(0, 1, 2); }), FailsWith(Errc::no_quorum));
}

// ---- What it is made of

TEST_F(Leadership, RefusesWhatCannotWork) {
    const auto message = [&](auto change) {
        auto its = options();
        change(its);
        return refusal([&] { (void)candidate(its); });
    };
    const auto margin_of = [&](milliseconds span) { return message([&](auto& its) { its.margin = span; }); };
    EXPECT_EQ(margin_of(7500ms),
              "redlock: LeaderOptions::margin is 7500 ms; it must be less than half of the ttl, 15000 ms");
    EXPECT_THAT(margin_of(-1ms), HasSubstr("LeaderOptions::margin"));
    EXPECT_THAT(margin_of(milliseconds::max()), HasSubstr("LeaderOptions::margin"));
    EXPECT_THAT(margin_of(milliseconds::min()), HasSubstr("LeaderOptions::margin"));
    EXPECT_EQ(margin_of(7499ms), "");
    EXPECT_EQ(margin_of(0ms), "");
    EXPECT_THAT(message([](auto& its) { its.drift_factor = 0.9; }), HasSubstr("LeaderOptions::margin"))
        << "nothing but the margin would be left";
    EXPECT_THAT(message([](auto& its) { its.drift_factor = 1; }), HasSubstr("LeaderOptions::drift_factor"));
    EXPECT_THAT(message([](auto& its) { its.ttl = 0ms; }), HasSubstr("LeaderOptions::ttl"));
    EXPECT_THAT(message([](auto& its) { its.retry.delay = 0ms; }), HasSubstr("LeaderOptions::retry.delay"));
    EXPECT_THAT(message([](auto& its) { its.longest_pause = 999ms; }),
                HasSubstr("LeaderOptions::longest_pause"));
    EXPECT_THAT(message([](auto& its) { its.longest_pause = 25h; }),
                HasSubstr("LeaderOptions::longest_pause"));
    EXPECT_THAT(world.events(), IsEmpty());
}

TEST_F(Leadership, HasAWatchdogOfItsOwnWhereNoneIsGiven) {
    auto its = options();
    its.watchdog = nullptr;
    World calm;
    Leader one{calm, the_resource, its};  // by the real clock: there are no waits
    EXPECT_THAT(one.run_once([&](const Term& term) { EXPECT_TRUE(term.lost().stop_possible()); }),
                Succeeds());
}

// ---- The margin of a lock

using Margin = Watched;

TEST_F(Margin, TellsTheLossEarlier) {
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

// C3. It is valid until the end; but it cannot be extended any more.
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

// A holder's own extension that is under way when the loss is told comes too late.
TEST_F(Margin, OutlastsAnExtensionThatIsUnderWay) {
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
