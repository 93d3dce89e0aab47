// When a waiter asks its home node, and when it makes an attempt although nobody has woken it.
#include "seeded_entropy.hpp"

#include <redlock/algorithm/waiting.hpp>

#include <gmock/gmock.h>

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "flow/waiter_timing.hpp"

namespace redlock::flow::waiter_timing_test {
namespace {

using namespace std::chrono_literals;
using Held = QueuePlace::Held;

struct WaiterTimingTest : testing::Test {
    bool begins_attempt(Held held, std::size_t in_front) {
        return timing.begins_attempt({.held = held, .in_front = in_front}, now);
    }
    Clock::duration until_next_question(const QueuePlace& place) {
        return timing.next_question(place, now) - now;
    }

    test::ConstantEntropy entropy{0xFF};  // gives the longest pauses
    Clock::time_point now{1h};
    WaiterTiming timing{now, 100ms, entropy};
};

// ---- Attempts

struct AttemptRow {
    std::string situation;
    Held held;
    std::size_t in_front;
    Clock::duration waited;
    bool attempts;
};

const AttemptRow attempt_rows[] = {{"the first, too early", Held::by_holder, 0, 249ms, false},
                                   {"the first", Held::by_holder, 0, 250ms, true},
                                   {"the first, reserved for another", Held::by_waiter, 0, 499ms, false},
                                   {"the second", Held::by_holder, 1, 499ms, false},
                                   {"no holder, too early", Held::by_nobody, 2, 511ms, false},
                                   {"no holder", Held::by_nobody, 2, 512ms, true},
                                   {"no holder, reserved", Held::by_waiter, 0, 500ms, true},
                                   {"many in front, too early", Held::by_nobody, 1'000'000, 6499ms, false},
                                   {"many in front", Held::by_nobody, 1'000'000, 6500ms, true},
                                   {"a holder, too early", Held::by_holder, 1, 13'999ms, false},
                                   {"a holder", Held::by_holder, 1, 14s, true}};

TEST_F(WaiterTimingTest, BeginsAttemptsAsTheTableSays) {
    for (const auto& [situation, held, in_front, waited, attempts] : attempt_rows) {
        WaiterTiming its{now, 100ms, entropy};
        EXPECT_EQ(its.begins_attempt({.held = held, .in_front = in_front}, now + waited), attempts)
            << situation;
    }
}

TEST_F(WaiterTimingTest, MakesOneAttemptUntilTheNextHolderIfNobodyComes) {
    now += 1s;
    EXPECT_TRUE(begins_attempt(Held::by_nobody, 1));
    now += 1s;
    EXPECT_FALSE(begins_attempt(Held::by_nobody, 1));
    EXPECT_FALSE(begins_attempt(Held::by_holder, 1));
    now += 1s;
    EXPECT_TRUE(begins_attempt(Held::by_nobody, 1));
}

TEST_F(WaiterTimingTest, CountsFromTheTurnAndTheArrivalAndTheLastAttempt) {
    const std::vector<void (*)(WaiterTiming&, Clock::time_point)> events{
        [](auto& it, auto at) { it.begin_turn(at); },
        [](auto& it, auto at) { it.arrive(at); },
        [](auto& it, auto at) { it.end_attempt(at); },
    };
    for (const auto report : events) {
        report(timing, now += 1s);
        EXPECT_FALSE(begins_attempt(Held::by_holder, 0));
        now += 250ms;
        EXPECT_TRUE(begins_attempt(Held::by_holder, 0));
    }
    timing.begin_turn(now += 1s);
    EXPECT_FALSE(begins_attempt(Held::by_nobody, 1)) << "the time without a holder begins with the turn";
}

TEST_F(WaiterTimingTest, PostponesAnAttemptThatWasDueBeforeTheTurn) {
    const auto due = timing.attempt_due();
    EXPECT_EQ(due, now + 14s);
    timing.begin_turn(due - 1ms);
    EXPECT_EQ(timing.attempt_due(), due);
    timing.begin_turn(due);
    EXPECT_EQ(timing.attempt_due(), due + 14s);
    timing.end_attempt(due);
    EXPECT_EQ(timing.attempt_due(), due + 14s);
}

// ---- Questions

struct QuestionRow {
    std::string situation;
    QueuePlace place;
    Clock::duration pause;
};

const QuestionRow question_rows[] = {{"the first", {Held::by_holder, -1ms, 0}, 100ms},
                                     {"16 in front", {Held::by_holder, -1ms, 16}, 500ms},
                                     {"48 in front", {Held::by_holder, -1ms, 48}, 1s},
                                     {"many in front", {Held::by_holder, -1ms, 1'000'000}, 1s},
                                     {"the key of the fourth expires", {Held::by_holder, 50ms, 3}, 51ms},
                                     {"the key of the fifth expires", {Held::by_holder, 50ms, 4}, 312'500us},
                                     {"the key has expired", {Held::by_holder, 0ms, 0}, 10ms},
                                     {"the resource is free", {Held::by_nobody, -1ms, 20}, 10ms}};

TEST_F(WaiterTimingTest, AsksAsTheTableSays) {
    for (const auto& [situation, place, pause] : question_rows) {
        WaiterTiming its{now, 100ms, entropy};
        EXPECT_EQ(its.next_question(place, now) - now, pause) << situation;
    }
}

TEST_F(WaiterTimingTest, AsksSixteenTimesAtOnceIfTheResourceIsFree) {
    const QueuePlace free{.held = Held::by_nobody, .in_front = 16};
    for (int i = 0; i < 16; ++i) EXPECT_EQ(until_next_question(free), 10ms) << i;
    EXPECT_EQ(until_next_question(free), 500ms);
    EXPECT_EQ(until_next_question({.held = Held::by_holder, .in_front = 16}), 500ms);
    EXPECT_EQ(until_next_question(free), 10ms);
}

// ---- Pauses

TEST_F(WaiterTimingTest, PausesAfterTheSecondCollision) {
    WaiterTiming with_long_pauses{now, 10min, entropy};
    with_long_pauses.end_attempt(now);
    with_long_pauses.failed_when_reserved(ReservedBy::its_question, 3ms);
    EXPECT_TRUE(with_long_pauses.may_reserve(now));
    for (const auto pause : {12ms, 24ms, 48ms}) {
        with_long_pauses.failed_when_reserved(ReservedBy::its_question, 3ms);
        EXPECT_FALSE(with_long_pauses.may_reserve(now + pause - 1ns));
        EXPECT_TRUE(with_long_pauses.may_reserve(now + pause));
    }
    EXPECT_LE(with_long_pauses.may_come_from(), now) << "only the question has to wait";
    for (int i = 0; i < 20; ++i) with_long_pauses.failed_when_reserved(ReservedBy::another_client, 3ms);
    EXPECT_EQ(with_long_pauses.may_come_from(), now + 10s);
    EXPECT_TRUE(with_long_pauses.may_reserve(now + 10s));
}

TEST_F(WaiterTimingTest, ComesInAPauseIfAnAttemptIsDue) {
    timing.end_attempt(now);
    timing.failed_when_reserved(ReservedBy::another_client, 1h);
    timing.failed_when_reserved(ReservedBy::another_client, 1h);
    EXPECT_EQ(timing.may_come_from(), now + 100ms);
    timing.end_attempt(now - 13'990ms);
    EXPECT_EQ(timing.may_come_from(), now + 10ms);
}

}  // namespace
}  // namespace redlock::flow::waiter_timing_test
