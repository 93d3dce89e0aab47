// The sequence of a leader's terms: each row of the table in term_sequence.hpp, and the outcomes of terms.
#include "lock/term_sequence.hpp"

#include "leader_reports.hpp"
#include "result_matchers.hpp"
#include "seeded_entropy.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <ostream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace redlock::test::term_sequence_test {
namespace {

using detail::TermSequence;
using State = TermSequence::State;

constexpr auto margin = LeaderReports::margin;
constexpr std::array all_states{State::idle,      State::campaigning, State::leading,
                                State::resigning, State::resigned,    State::pausing};

const Result success{std::error_code{}};
const Result no_quorum{Errc::no_quorum};

std::exception_ptr broken(const char* what = "broken") {
    return std::make_exception_ptr(std::runtime_error{what});
}

struct Sequence : LeaderReports {
    /// Leads to this state from idle. `lost` is stopped if the leadership was lost.
    void go_to(State state) {
        if (state == State::idle) return;
        it.begin(stop.get_token());
        if (state == State::pausing) return;
        it.pause_ended();
        go_on_to(state);
    }
    /// Leads to this state from campaigning.
    void go_on_to(State state) {
        if (state == State::campaigning) return;
        it.campaigned(success, margin + 1ns);
        if (state == State::leading) return;
        it.work_ended(lost.get_token());
        if (state == State::resigning) return;
        it.released(success);
    }
    /// Reports a term that was successful, and goes on to the state leading in the next term.
    Clock::duration report_and_lead() {
        const auto pause = it.report();
        it.pause_ended();
        go_on_to(State::leading);
        return pause;
    }
    /// Lets a term fail with an exception. Begins in the state leading, and ends in the same state of the
    /// next term. Returns the pause in between.
    Clock::duration pause_after(std::exception_ptr failure) {
        it.work_failed(std::move(failure));
        it.released(success);
        return report_and_lead();
    }

    std::stop_source stop{};
    std::stop_source lost{};
    SeededEntropy entropy{1};
    LeaderOptions options = LeaderReports::options();
    TermSequence it{options, entropy};
};

// ---- The table

/// A call of a function of a TermSequence.
struct Call {
    const char* name;
    void (*make)(Sequence& sequence);
};

constexpr Call begin{"begin", [](Sequence& its) { its.it.begin(its.stop.get_token()); }};
constexpr Call begin_term{"begin_term", [](Sequence& its) { its.it.begin_term(its.stop.get_token()); }};
constexpr Call elected{"elected", [](Sequence& its) { its.it.campaigned(success, margin + 1ns); }};
constexpr Call elected_late{"elected_late", [](Sequence& its) { its.it.campaigned(success, margin); }};
constexpr Call elected_stopped{"elected_stopped", [](Sequence& its) {
                                   its.stop.request_stop();
                                   its.it.campaigned(success, margin + 1ns);
                               }};
constexpr Call not_elected{"not_elected", [](Sequence& its) { its.it.campaigned(no_quorum, 0s); }};
constexpr Call work_ended{"work_ended", [](Sequence& its) { its.it.work_ended(its.lost.get_token()); }};
constexpr Call work_failed{"work_failed", [](Sequence& its) { its.it.work_failed(broken()); }};
constexpr Call released{"released", [](Sequence& its) { its.it.released(success); }};
constexpr Call not_released{"not_released", [](Sequence& its) { its.it.released(no_quorum); }};
constexpr Call report{"report", [](Sequence& its) { (void)its.it.report(); }};
constexpr Call pause_ended{"pause_ended", [](Sequence& its) { its.it.pause_ended(); }};
constexpr Call pause_stopped{"pause_stopped", [](Sequence& its) {
                                 its.stop.request_stop();
                                 its.it.pause_ended();
                             }};
constexpr Call end{"end", [](Sequence& its) { its.it.end(); }};

struct Row {
    State from;
    Call call;
    State to;
};
constexpr Row rows[] = {
    {State::idle, begin, State::pausing},
    {State::idle, begin_term, State::campaigning},
    {State::campaigning, elected, State::leading},
    {State::campaigning, elected_late, State::resigning},
    {State::campaigning, elected_stopped, State::resigning},
    {State::campaigning, not_elected, State::resigned},
    {State::leading, work_ended, State::resigning},
    {State::leading, work_failed, State::resigning},
    {State::resigning, released, State::resigned},
    {State::resigning, not_released, State::resigned},
    {State::resigning, work_failed, State::resigning},
    {State::resigned, report, State::pausing},
    {State::pausing, pause_ended, State::campaigning},
    {State::pausing, pause_stopped, State::idle},
    {State::campaigning, end, State::idle},
    {State::leading, end, State::idle},
    {State::resigning, end, State::idle},
    {State::resigned, end, State::idle},
    {State::pausing, end, State::idle},
};

TEST(TermSequenceTable, EachRowLeadsToItsState) {
    for (const auto& row : rows) {
        Sequence its;
        its.go_to(row.from);
        ASSERT_EQ(its.it.state(), row.from);
        row.call.make(its);
        EXPECT_EQ(its.it.state(), row.to) << row.call.name;
    }
}

TEST(TermSequenceTable, BeginAndWorkFailedDoNothingInAnotherState) {
    for (const auto& row : rows) {
        const std::string_view call{row.call.name};
        if (call != "begin" && call != "begin_term" && call != "work_failed") continue;
        for (const auto state : all_states) {
            const auto is_row = [&](const Row& it) { return it.from == state && it.call.name == call; };
            if (std::ranges::any_of(rows, is_row)) continue;
            Sequence its;
            its.go_to(state);
            row.call.make(its);
            EXPECT_EQ(its.it.state(), state) << row.call.name;
        }
    }
}

TEST(TermSequenceTable, AReportThatThrowsLeadsToIdle) {
    for (const bool has_on_error : {false, true}) {
        Sequence its;
        its.options.on_error = {};
        if (has_on_error)
            its.options.on_error = [](const std::exception_ptr&) { throw std::logic_error{"x"}; };
        its.go_to(State::leading);
        its.it.work_failed(broken());
        its.it.released(success);
        if (has_on_error)
            EXPECT_THROW((void)its.it.report(), std::logic_error);
        else
            EXPECT_THROW((void)its.it.report(), std::runtime_error);
        EXPECT_EQ(its.it.state(), State::idle);
    }
}

// ---- The outcome of a term

/// Returns the outcome of a term whose release has the result `released_with`.
Result outcome_of(Sequence& its, const Result& released_with = success) {
    its.it.released(released_with);
    EXPECT_EQ(its.it.state(), State::resigned);
    return its.it.outcome();
}

TEST(TermSequenceOutcome, IsTheReasonWhyTheWorkMustNotBegin) {
    for (const bool stopped : {false, true})
        for (const auto remaining : {margin - 1ns, margin + 1ns}) {
            Sequence its;
            its.go_to(State::campaigning);
            if (stopped) its.stop.request_stop();
            its.it.campaigned(success, remaining);
            if (its.it.state() == State::leading) {
                EXPECT_TRUE(!stopped && remaining > margin);
                continue;
            }
            const auto reason = remaining <= margin ? Errc::validity_exhausted : Errc::cancelled;
            EXPECT_THAT(outcome_of(its, no_quorum), FailsWith(reason));
        }
}

TEST(TermSequenceOutcome, IsTheResultOfTheReleaseUnlessTheLeadershipWasLost) {
    for (const bool lost : {false, true})
        for (const bool stopped : {false, true}) {
            Sequence its;
            its.go_to(State::leading);
            if (lost) its.lost.request_stop();
            if (stopped) its.stop.request_stop();
            its.it.work_ended(its.lost.get_token());
            const auto error = lost && !stopped ? Errc::lost : Errc::no_quorum;
            EXPECT_THAT(outcome_of(its, no_quorum), FailsWith(error));
        }
}

TEST(TermSequenceOutcome, SucceedsAfterATermThatFailed) {
    Sequence its;
    its.go_to(State::leading);
    its.lost.request_stop();
    its.it.work_ended(its.lost.get_token());
    its.it.released(success);
    its.lost = std::stop_source{};
    (void)its.report_and_lead();
    its.it.work_ended(its.lost.get_token());
    EXPECT_THAT(outcome_of(its), Succeeds());
    EXPECT_THAT(its.failures, ElementsAre(FailsWith(Errc::lost)));
}

// The work has ended its AsyncTerm, which has reported an exception, too, and then throws.
TEST(TermSequenceOutcome, IsTheLastExceptionOfTheWork) {
    Sequence its;
    its.go_to(State::leading);
    its.it.work_failed(broken());
    its.it.work_failed(std::make_exception_ptr(std::logic_error{"later"}));
    EXPECT_THROW((void)outcome_of(its), std::logic_error);
}

// A function of the work may end the sequence, and then throw. The next run() has nothing to do with that.
TEST(TermSequenceOutcome, HasNothingOfATermThatWasEnded) {
    for (const bool fails_before_the_end : {false, true}) {
        Sequence its;
        its.go_to(State::leading);
        its.lost.request_stop();
        if (fails_before_the_end)
            its.it.work_failed(broken());
        else
            its.it.work_ended(its.lost.get_token());
        its.it.end();
        its.it.work_failed(broken());
        its.lost = std::stop_source{};
        its.go_to(State::resigned);
        EXPECT_THAT(its.it.outcome(), Succeeds());
    }
}

// ---- The report

TEST(TermSequenceReport, CallsOnFailureUnlessAStopIsRequested) {
    for (const bool stopped : {false, true}) {
        Sequence its;
        its.go_to(State::campaigning);
        its.it.campaigned(no_quorum, 0s);
        if (stopped) its.stop.request_stop();
        const auto pause = its.it.report();
        EXPECT_THAT(pause, IsBetween(500ms, 1s));
        EXPECT_EQ(its.failures.size(), stopped ? 0U : 1U);
        EXPECT_THAT(its.errors, IsEmpty());
    }
}

TEST(TermSequenceReport, CallsOnErrorEvenIfAStopIsRequested) {
    Sequence its;
    its.go_to(State::leading);
    its.stop.request_stop();
    its.it.work_failed(broken());
    its.it.released(no_quorum);
    (void)its.it.report();
    EXPECT_THAT(its.errors, ElementsAre("broken"));
    EXPECT_THAT(its.failures, IsEmpty());
}

TEST(TermSequenceReport, PassesAnExceptionOfOnFailureToOnError) {
    Sequence its;
    its.options.on_failure = [](const Result&) { throw std::runtime_error{"of on_failure"}; };
    its.go_to(State::campaigning);
    its.it.campaigned(no_quorum, 0s);
    EXPECT_GE(its.it.report(), 1s) << "doubled";
    EXPECT_THAT(its.errors, ElementsAre("of on_failure"));
}

TEST(TermSequenceReport, DoublesThePauseWithEachExceptionSinceTheLastSuccess) {
    Sequence its;
    its.go_to(State::leading);
    for (const auto longest : {2s, 4s, 8s, 8s}) {
        const auto pause = its.pause_after(broken());
        EXPECT_THAT(pause, IsBetween(longest / 2, longest));
    }
    its.it.work_ended({});
    its.it.released(no_quorum);
    EXPECT_LE(its.report_and_lead(), 1s) << "a failure without an exception";
    EXPECT_GE(its.pause_after(broken()), 4s) << "only a success ends the growth";
    its.it.work_ended({});
    its.it.released(success);
    EXPECT_LE(its.report_and_lead(), 1s);
    EXPECT_LE(its.pause_after(broken()), 2s);
}

TEST(TermSequenceReport, ANewRunForgetsTheExceptionsOfTheLastOne) {
    Sequence its;
    its.go_to(State::leading);
    (void)its.pause_after(broken());
    (void)its.pause_after(broken());
    its.it.end();
    its.go_to(State::leading);
    EXPECT_LE(its.pause_after(broken()), 2s);
}

}  // namespace
}  // namespace redlock::test::term_sequence_test
