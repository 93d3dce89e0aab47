// Leader: election, resignation, stopping, and the pauses between two terms.
#include "leadership.hpp"

#include <redlock/query.hpp>

#include <optional>
#include <stdexcept>
#include <string>

namespace redlock::test::leader_test {
namespace {

using testing::Field;

INSTANTIATE_TEST_SUITE_P(Each, Leadership, each_front, testing::PrintToStringParamName());

// ---- A term

TEST_P(Leadership, DoesTheWorkAsTheOnlyHolderAndResigns) {
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

// C7. A leader has no max_hold.
TEST_P(Leadership, LastsAsLongAsTheWork) {
    EXPECT_THAT(leader.run_once([&](const Term& term) {
        pass(5h);
        EXPECT_FALSE(term.lost().stop_requested());
        EXPECT_GT(term.remaining(), margin);
    }),
                Succeeds());
}

TEST_P(Leadership, WaitsWhileAnotherLeads) {
    const auto start = world.clock.now();
    another_leads(10min);
    EXPECT_THAT(leader.run_once([&](const Term&) { ++terms; }), Succeeds());
    EXPECT_EQ(terms, 1);
    EXPECT_THAT(world.clock.now() - start, IsBetween(10min, 10min + 1s))
        << "the longest pause of the campaign";
}

TEST_P(Leadership, PassesToAnotherLeaderWithALargerToken) {
    auto other = candidate(options());
    std::uint64_t first = 0;
    const auto campaign_in_vain = [&](const Term& term) {
        first = term.fencing_token();
        std::stop_source give_up;
        world.after(5s, [&] { give_up.request_stop(); });
        EXPECT_THAT(other.run_once([](const Term&) { FAIL() << "there is a leader"; }, give_up.get_token()),
                    FailsWith(Errc::cancelled));
    };
    EXPECT_THAT(leader.run_once(campaign_in_vain), Succeeds());
    EXPECT_THAT(other.run_once([&](const Term& term) { EXPECT_GT(term.fencing_token(), first); }),
                Succeeds());
}

TEST_P(Leadership, IsShownByAQuery) {
    auto its = options();
    its.holder = "web1";
    auto one = candidate(its);
    EXPECT_THAT(one.run_once([&](const Term&) { EXPECT_EQ(query(world, the_resource).holder, "web1"); }),
                Succeeds());
}

TEST_P(Leadership, EndsWithItsTerm) {
    std::optional<Term> kept;
    EXPECT_THAT(leader.run_once([&](const Term& term) { kept = term; }), Succeeds());
    EXPECT_THAT(leader.run_once([&](const Term& term) {
        EXPECT_THAT(kept->remaining(), Lasts(0s)) << "although there is another term now";
        EXPECT_GT(term.remaining(), 0s);
    }),
                Succeeds());
    EXPECT_LT(kept->valid_until(), world.clock.now());
}

// ---- Stopping

TEST_P(Leadership, EndsTheCampaignIfStopped) {
    another_leads(1h);
    world.after(10s, [&] { stop.request_stop(); });
    EXPECT_THAT(time_taken(world, [&] { leader.run([&](const Term&) { ++terms; }, stop.get_token()); }),
                Lasts(10s));
    EXPECT_EQ(terms, 0);
    EXPECT_THAT(failures, IsEmpty());
}

TEST_P(Leadership, DoesNothingIfItIsAlreadyStopped) {
    stop.request_stop();
    leader.run([&](const Term&) { ++terms; }, stop.get_token());
    EXPECT_THAT(leader.run_once([&](const Term&) { ++terms; }, stop.get_token()), FailsWith(Errc::cancelled));
    EXPECT_EQ(terms, 0);
    EXPECT_THAT(world.events(), IsEmpty());
}

// The election succeeds, because a majority has granted its votes before the last node answers.
TEST_P(Leadership, BeginsNoWorkIfItIsStoppedDuringTheElection) {
    world.slow(4, 10ms);
    world.after(5ms, [&] { stop.request_stop(); });
    EXPECT_THAT(leader.run_once([&](const Term&) { ++terms; }, stop.get_token()), FailsWith(Errc::cancelled));
    EXPECT_TRUE(stop.stop_requested());
    EXPECT_EQ(terms, 0);
    EXPECT_TRUE(world.clean());
}

// The program may end right after that, and another process must not have to wait for the ttl.
TEST_F(LeadershipOfAThread, AwaitsTheReleaseIfItsWorkMustNotBegin) {
    world.slow(4, 10ms);
    world.after(5ms, [&] { stop.request_stop(); });
    const auto result = leader.run_once([](const Term&) {}, stop.get_token());
    EXPECT_THAT(result, FailsWith(Errc::cancelled));
    EXPECT_THAT(result.nodes(), SizeIs(5));
    EXPECT_THAT(result.nodes(), Each(Field(&NodeReport::vote, Vote::granted)));
}

TEST_P(Leadership, EndsAPauseIfStopped) {
    world.after(100ms, [&] { stop.request_stop(); });
    EXPECT_THAT(time_taken(world, [&] { leader.run([&](const Term&) { ++terms; }, stop.get_token()); }),
                Lasts(100ms));
    EXPECT_EQ(terms, 1);
}

// The term also ends if the work ignores the stop request.
TEST_P(Leadership, RequestsAStopOfTheWorkAndExtendsNoMoreIfStopped) {
    auto beside = world.held("beside", watched(14s));  // due a little earlier
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

TEST_P(Leadership, SucceedsIfItWasStopped) {
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

TEST_P(Leadership, PausesAfterATermSoThatAnotherClientMayLead) {
    std::vector<Clock::time_point> starts;
    leader.run(
        [&](const Term&) {
            starts.push_back(world.clock.now());
            if (starts.size() == 20) stop.request_stop();
        },
        stop.get_token());
    ASSERT_THAT(starts, SizeIs(20));
    for (std::size_t i = 0; i < 19; ++i) {
        EXPECT_THAT(starts[i + 1] - starts[i], IsBetween(500ms, 1s));
    }
}

// The test of TermSequence has the further pauses.
TEST_P(Leadership, ReportsAnExceptionOfTheWorkAndBacksOff) {
    std::vector<Clock::time_point> starts;
    leader.run(
        [&](const Term&) {
            starts.push_back(world.clock.now());
            if (++terms == 3) return stop.request_stop(), void();
            throw std::runtime_error("term " + std::to_string(terms));
        },
        stop.get_token());
    EXPECT_THAT(errors, ElementsAre("term 1", "term 2"));
    ASSERT_THAT(starts, SizeIs(3));
    EXPECT_THAT(starts[1] - starts[0], IsBetween(1s, 2s));
    EXPECT_THAT(starts[2] - starts[1], IsBetween(2s, 4s));
    EXPECT_TRUE(world.clean());
}

// A Nodes may throw only std::bad_alloc. If it breaks this rule, its answer is unknown.
TEST_F(LeadershipOfAThread, GoesOnAfterAnExceptionOfTheNodes) {
    world.before_round = [throws = true](auto&&...) mutable {
        if (std::exchange(throws, false)) throw std::runtime_error("of the nodes");
    };
    EXPECT_NO_THROW(leader.run(
        [&](const Term&) {
            ++terms;
            stop.request_stop();
        },
        stop.get_token()));
    EXPECT_THAT(failures, ElementsAre(FailsWith(Errc::no_quorum)));
    EXPECT_THAT(errors, IsEmpty());
    EXPECT_EQ(terms, 1);
}

TEST_P(Leadership, RethrowsAnExceptionOfTheWorkWithoutOnError) {
    auto its = options();
    its.on_error = {};
    auto one = candidate(its);
    const auto fails = [&](const Term&) {
        if (++terms == 3) stop.request_stop();
        throw std::logic_error("broken");
    };
    for (int i = 0; i < 2; ++i) {
        EXPECT_THROW(one.run(fails, stop.get_token()), std::logic_error);
        EXPECT_TRUE(world.clean());
    }
    EXPECT_THAT(errors, IsEmpty());
}

TEST_F(LeadershipOfAThread, RethrowsAnExceptionOfTheWorkOfOneTerm) {
    EXPECT_THROW((void)leader.run_once([](const Term&) { throw std::logic_error("broken"); }),
                 std::logic_error);
    EXPECT_TRUE(world.clean());
    EXPECT_THAT(errors, IsEmpty());
}

TEST_P(Leadership, ReportsThatThereIsNoQuorumAndContinues) {
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

TEST_P(Leadership, ReportsItsLossAndLeadsAgain) {
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

// Its keys remain until they expire.
TEST_P(Leadership, ReportsThatItsReleaseWasNotConfirmed) {
    EXPECT_THAT(leader.run_once([&](const Term&) { world.silence(0, 1, 2); }), FailsWith(Errc::no_quorum));
}

// ---- Options

TEST_P(Leadership, RejectsImpossibleOptions) {
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

TEST_F(LeadershipOfAThread, HasItsOwnWatchdogIfNoneIsGiven) {
    auto its = options();
    its.watchdog = nullptr;
    World calm;
    Leader one{calm, the_resource, its};  // uses the real clock, because nothing waits
    EXPECT_THAT(one.run_once([&](const Term& term) { EXPECT_TRUE(term.lost().stop_possible()); }),
                Succeeds());
}

}  // namespace
}  // namespace redlock::test::leader_test
