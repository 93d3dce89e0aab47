// AsyncLeader in a loop in virtual time: the rules of Leader, without blocking.
#include "in_a_loop.hpp"
#include "leader_reports.hpp"

#include <redlock/async_leader.hpp>

#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test::async_leader_test {
namespace {

struct LeadershipInALoop : testing::Test, LoopWorld, LeaderReports {
    /// Runs the leader. Its work keeps the term until the test ends it.
    void run_leader() {
        leader->run([this](AsyncTerm it) { terms.push_back(std::move(it)); }, report_end());
    }
    AsyncLeader::Done report_end() {
        return [this](const std::exception_ptr& error) { ends.push_back(error ? what(error) : "ended"); };
    }
    AsyncTerm& term() { return terms.back(); }

    std::optional<AsyncLeader> leader{std::in_place, of_loop, the_resource, options()};
    std::vector<AsyncTerm> terms;
    std::vector<std::string> ends;
};

// ---- A term

TEST_F(LeadershipInALoop, ATermThatWasMovedAnswersAsBefore) {
    run_leader();
    pass(1ms);
    ASSERT_THAT(terms, SizeIs(1));
    const auto moved = std::move(term());
    for (const Term* it : {static_cast<const Term*>(&moved), static_cast<const Term*>(&term())}) {
        EXPECT_GT(it->remaining(), ttl - 1s);
        EXPECT_EQ(it->fencing_token(), world.counted_on(0));
        EXPECT_TRUE(it->lost().stop_possible());
    }
}

TEST_F(LeadershipInALoop, EndsATermWhoseObjectIsDestroyedOrReplaced) {
    int led = 0;
    leader->run(
        [&](AsyncTerm it) {
            if (++led == 2) it = AsyncTerm{it, {}};
        },
        report_end());
    pass(1ms);
    EXPECT_TRUE(world.clean());
    pass(10s);
    EXPECT_GT(led, 2);
    EXPECT_THAT(failures, IsEmpty());
}

TEST_F(LeadershipInALoop, AnOldTermDoesNotEndALaterOne) {
    run_leader();
    pass(1ms);
    AsyncTerm first = std::move(term());
    terms.clear();
    first.end();
    pass(2s);
    ASSERT_THAT(terms, SizeIs(1));
    first.end();
    pass(2s);
    EXPECT_GT(term().remaining(), 0s);
    const auto token = term().fencing_token();
    EXPECT_NE(first.fencing_token(), token);
    first = std::move(term());
    pass(2s);
    EXPECT_GT(first.remaining(), 0s);
    EXPECT_EQ(first.fencing_token(), token);
    EXPECT_FALSE(first.lost().stop_requested());
    leader->cancel();
    EXPECT_TRUE(first.lost().stop_requested()) << "it is that of the present term";
}

// The work has thrown, which has ended the first term. Its AsyncTerm does not know that.
TEST_F(LeadershipInALoop, AnOldTermThatWasMovedDoesNotEndALaterOne) {
    bool throws = true;
    leader->run(
        [&](AsyncTerm it) {
            terms.push_back(std::move(it));
            if (std::exchange(throws, false)) throw std::runtime_error("broken");
        },
        report_end());
    pass(10s);
    ASSERT_THAT(terms, SizeIs(2));
    terms[0].end();
    pass(2s);
    ASSERT_THAT(terms, SizeIs(2));
    EXPECT_GT(term().remaining(), 0s);
    EXPECT_THAT(errors, ElementsAre("broken"));
}

// ---- The end of run()

TEST_F(LeadershipInALoop, ATermOutlivesItsLeader) {
    run_leader();
    pass(1ms);
    leader.reset();
    EXPECT_TRUE(term().lost().stop_requested());
    pass(1s);
    EXPECT_EQ(world.held_by(""), 0U);
    EXPECT_THAT(ends, IsEmpty());
    terms.clear();
    pass(1ms);
    EXPECT_TRUE(world.clean());
    EXPECT_THAT(ends, ElementsAre("ended"));
    run();  // returns, because nothing is left to do
}

TEST_F(LeadershipInALoop, LeavesNoKeyIfItIsDestroyedDuringACampaign) {
    world.occupy(1h, 0, 1);
    world.silence(2);
    run_leader();
    leader.reset();
    pass(10s);
    EXPECT_THAT(ends, ElementsAre("ended"));
    EXPECT_THAT(terms, IsEmpty());
    world.heal_all();
    EXPECT_EQ(world.held_by(""), 3U);
}

TEST_F(LeadershipInALoop, RefusesASecondRunAndRunsAgainInItsCompletion) {
    run_leader();
    leader->run([](const AsyncTerm&) { FAIL(); }, report_end());
    pass(1ms);
    ASSERT_THAT(ends, ElementsAre(std::make_error_code(std::errc::operation_in_progress).message()));
    term().end();
    leader->cancel();
    pass(1ms);
    leader->run([](const AsyncTerm& it) { EXPECT_GT(it.remaining(), 0s); },
                [this](const std::exception_ptr& error) {
                    EXPECT_FALSE(error);
                    run_leader();
                });
    pass(100ms);
    leader->cancel();
    pass(10s);
    EXPECT_THAT(terms, SizeIs(2));
    EXPECT_GT(term().remaining(), 0s);
}

TEST_F(LeadershipInALoop, ARunAfterACancelledPauseBeginsAtOnce) {
    world.cut_all();
    run_leader();
    pass(30s);
    leader->cancel();
    pass(1ms);
    ASSERT_THAT(ends, ElementsAre("ended"));
    world.heal_all();
    run_leader();
    pass(1ms);
    EXPECT_THAT(terms, SizeIs(1));
}

TEST_F(LeadershipInALoop, AFunctionOfTheUserMayDestroyIt) {
    leader->run([this](AsyncTerm) { leader.reset(); }, report_end());
    pass(1s);
    EXPECT_THAT(ends, ElementsAre("ended"));
    auto its = options();
    its.on_failure = [this](const Result&) { leader.reset(); };
    leader.emplace(of_loop, the_resource, its);
    world.cut_all();
    run_leader();
    pass(1min);
    EXPECT_THAT(ends, ElementsAre("ended", "ended"));
    world.heal_all();
    leader.emplace(of_loop, the_resource, options());
    leader->run([](const AsyncTerm&) {}, [this](const std::exception_ptr&) { leader.reset(); });
    leader->cancel();
    pass(1s);
    EXPECT_FALSE(leader);
    EXPECT_FALSE(loop.run_once());
    EXPECT_TRUE(world.clean());
}

// ---- Between two terms

TEST_F(LeadershipInALoop, AnExceptionOfTheWorkEndsATermThatWasMoved) {
    leader->run(
        [this](AsyncTerm it) {
            terms.push_back(std::move(it));
            throw std::runtime_error("broken");
        },
        report_end());
    pass(10ms);
    EXPECT_THAT(errors, ElementsAre("broken"));
    EXPECT_TRUE(world.clean());
    term().end();
    pass(10ms);
    EXPECT_THAT(errors, SizeIs(1));
}

// ---- The end of the loop

TEST_F(LeadershipInALoop, TheShutdownStopsTheWorkAndCallsNothing) {
    run_leader();
    pass(1s);
    bool stopped = false;
    const auto lost = term().lost();
    const std::stop_callback on_stop{lost, [&] { stopped = true; }};
    of_loop.shut_down();
    EXPECT_TRUE(stopped);
    EXPECT_FALSE(loop.run_once());
    EXPECT_THAT(ends, IsEmpty());
    leader.reset();
    EXPECT_EQ(world.held_by(""), 0U) << "the work may go on";
    terms.clear();
    EXPECT_TRUE(world.clean());
    EXPECT_THAT(ends, IsEmpty());
}

TEST_F(LeadershipInALoop, TheShutdownEndsCampaignsAndPauses) {
    world.occupy(1h, 0, 1, 2, 3, 4);
    for (const bool campaigns : {true, false}) {
        if (!campaigns) world.pass(1h);
        VirtualLoop other_loop{world.clock};
        AsyncNodes of_other{world, other_loop, world.clock, world.entropy};
        auto owned = std::make_shared<AsyncLeader>(of_other, the_resource, options());
        const std::weak_ptr weak{owned};
        owned->run([owned](const AsyncTerm&) {},
                   [owned, this](const std::exception_ptr&) { ends.emplace_back(); });
        owned.reset();
        (void)other_loop.run_once();
        (void)other_loop.run_once();
        of_other.shut_down();
        EXPECT_TRUE(weak.expired());
    }
    EXPECT_THAT(ends, IsEmpty());
    EXPECT_TRUE(world.clean());
}

TEST_F(LeadershipInALoop, AFunctionOfTheUserMayShutTheLoopDown) {
    auto owned = std::make_shared<int>();
    const std::weak_ptr weak{owned};
    leader->run(
        [this, owned, &weak](const AsyncTerm&) {
            const auto& of_work = weak;
            leader.reset();
            of_loop.shut_down();
            EXPECT_FALSE(of_work.expired()) << "the function exists until it has returned";
        },
        report_end());
    owned.reset();
    pass(1s);
    EXPECT_TRUE(weak.expired());
    EXPECT_THAT(ends, IsEmpty());
    EXPECT_TRUE(world.clean());
}

// When a term is over, only run() still refers to the state of the leader.
TEST_F(LeadershipInALoop, AFunctionThatGetsTheOutcomeMayDestroyItAndShutTheLoopDown) {
    for (const bool work_fails : {false, true}) {
        LoopWorld elsewhere;
        std::optional<AsyncLeader> other;
        auto owned = std::make_shared<int>();
        const std::weak_ptr weak{owned};
        std::optional<bool> exists;
        const auto end_all = [&] {
            other.reset();
            elsewhere.of_loop.shut_down();
            exists = !weak.expired();
        };
        other.emplace(elsewhere.of_loop, the_resource,
                      LeaderOptions{.ttl = ttl,
                                    .on_error = [&end_all, owned](const std::exception_ptr&) { end_all(); },
                                    .on_failure = [&end_all, owned](const Result&) { end_all(); }});
        owned.reset();
        other->run(
            [&](const AsyncTerm&) {
                elsewhere.world.forget(0, 1, 2);
                if (work_fails) throw std::runtime_error("broken");
            },
            report_end());
        elsewhere.run();
        EXPECT_EQ(exists, true) << "the function exists until it has returned";
        EXPECT_TRUE(weak.expired());
    }
    EXPECT_THAT(ends, IsEmpty());
}

// The exception would end run(), and so call the completion, which the shutdown has destroyed.
TEST_F(LeadershipInALoop, AFunctionOfTheUserMayShutTheLoopDownAndThrow) {
    for (const bool work_fails : {false, true}) {
        LoopWorld elsewhere;
        int shutdowns = 0;
        const auto throw_after_shutdown = [&] {
            elsewhere.of_loop.shut_down();
            ++shutdowns;
            throw std::runtime_error("broken");
        };
        LeaderOptions its{.ttl = ttl};
        if (work_fails)
            its.on_error = [&](const std::exception_ptr&) { throw_after_shutdown(); };
        else
            its.on_failure = [&](const Result&) { throw_after_shutdown(); };
        if (!work_fails) elsewhere.world.cut_all();
        AsyncLeader other{elsewhere.of_loop, the_resource, its};
        other.run([](const AsyncTerm&) { throw std::logic_error("broken work"); }, report_end());
        elsewhere.run();
        EXPECT_EQ(shutdowns, 1);
        other.cancel();
        elsewhere.world.heal_all();
        EXPECT_TRUE(elsewhere.world.clean());
    }
    EXPECT_THAT(ends, IsEmpty());
}

// ---- Options

TEST_F(LeadershipInALoop, RejectsImpossibleOptions) {
    const auto message = [&](auto change) {
        auto its = options();
        change(its);
        return refusal([&] { const AsyncLeader it{of_loop, the_resource, its}; });
    };
    EXPECT_EQ(message([](auto& its) { its.watchdog = loop_watchdog(); }), "");
    Watchdog with_threads{world.clock};
    EXPECT_THAT(message([&](auto& its) { its.watchdog = &with_threads; }),
                HasSubstr("LeaderOptions::watchdog is a watchdog with threads; it must be loop_watchdog()"));
}

}  // namespace
}  // namespace redlock::test::async_leader_test
