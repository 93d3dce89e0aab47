// Waiting in the queue, step by step: real nodes, connections and rounds over servers in memory.
#include "waiting_world.hpp"

#include <redlock/waiting.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stop_token>
#include <string>
#include <vector>

namespace redlock::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using testing::Not;
using testing::SizeIs;

// ---- The way of a waiter

// Who subscribed only then could miss the very message that is meant for it.
TEST_F(Waiting, ListensBeforeItEntersTheQueue) {
    bob_holds_for(100ms);
    auto mine = lock(alice, {.delay = 10s});
    EXPECT_TRUE(mine.acquire_for(1s));
    EXPECT_THAT(verbs(0), ElementsAre("SET", "delete", "SUBSCRIBE", "enter", "wake", "leave and set"));
}

TEST_F(Waiting, EndsWithTheRelease) {
    bob_holds_for(100ms);
    auto mine = lock(alice, {.delay = 10s});
    const auto took = time_of([&] { EXPECT_TRUE(mine.acquire_for(1s)); });
    EXPECT_LE(took, 110ms);
    EXPECT_TRUE(mine.valid());
    for (std::size_t node = 0; node < size; ++node) EXPECT_EQ(holder(node), mine.owner());
    EXPECT_THAT(queued(0), IsEmpty());
}

// The others know of no queue.
TEST_F(Waiting, TellsTheHomeAloneThatItLeaves) {
    bob_holds_for(100ms);
    auto mine = lock(alice);
    EXPECT_TRUE(mine.acquire_for(1s));
    EXPECT_THAT(verbs(1), ElementsAre("SET", "delete", "wake", "SET"));
    EXPECT_THAT(verbs(2), ElementsAre("wake", "SET"));
}

// A key of the user's that names what is hashed keeps its queue beside it.
TEST_F(Waiting, KeepsTheQueueBesideTheResource) {
    EXPECT_EQ(detail::key_of(detail::KeyKind::queue, "r").text(), "{r}:queue");
    EXPECT_EQ(detail::key_of(detail::KeyKind::queue, "{user}.r").text(), "{user}.r:queue");
    EXPECT_EQ(detail::key_of(detail::KeyKind::queue, "{r}").text(), "{r}:tag-queue")
        << "{r}:queue is that of r";
    EXPECT_EQ(detail::key_of(detail::KeyKind::queue, "{a}{b}").text(), "{a}{b}:tag-queue")
        << "{a}{b}:queue is that of a}{b";
    EXPECT_EQ(detail::key_of(detail::KeyKind::queue, "{{a}b}").text(), "{{a}b}:queue");
    others_hold();
    (void)lock(alice).acquire_for(100ms);
    const auto words = all(0, "enter").front().words;
    EXPECT_THAT((Words{words.begin() + 2, words.begin() + 5}), ElementsAre("2", "r", "{r}:queue"));
    EXPECT_EQ(argument(words, 2), "100") << "the patience: two node_timeouts, and 100 ms at least";
    EXPECT_EQ(argument(words, 4), "5000");
}

// Step 1 of the page is that of the attempt: neither shorter nor longer for the time in the queue.
TEST_F(Waiting, CountsTheValidityFromTheAttempt) {
    bob_holds_for(8s);
    auto mine = lock(alice);
    const auto result = mine.acquire_for(9s);
    ASSERT_TRUE(result);
    EXPECT_GE(result.validity(), 10s - drift(10s, 0.01) - 5ms);
    EXPECT_LE(result.validity(), 10s - drift(10s, 0.01));
}

TEST_F(Waiting, IsOverOnceTheListenerServesTheNext) {
    bob_holds_for(100ms);
    auto mine = lock(alice);
    EXPECT_TRUE(mine.acquire_for(1s));
    const auto first = arguments(0, "enter", 1).front();
    (void)mine.release();
    bob_holds_for(100ms);
    EXPECT_TRUE(mine.acquire_for(1s));
    EXPECT_THAT(verbs(0), Not(Contains("SUBSCRIBE")));
    EXPECT_NE(arguments(0, "enter", 1).front(), first) << "no ticket is given twice";
}

// Nothing tells that a connection was cut off on which nothing is ever sent.
TEST_F(Waiting, ListensAnewWhereTheListenerWasIdleForLong) {
    for (const auto idle : {9s, 11s}) {
        bob_holds_for(100ms);
        auto mine = lock(alice);
        EXPECT_TRUE(mine.acquire_for(1s));
        (void)mine.release();
        network.pass(idle);
        bob_holds_for(100ms);
        EXPECT_TRUE(mine.acquire_for(1s));
        EXPECT_THAT(all(0, "SUBSCRIBE"), SizeIs(idle > 10s ? 1 : 0));
        (void)mine.release();
    }
}

TEST_F(Waiting, IsNotForThoseThatTryOnce) {
    others_hold();
    EXPECT_EQ(lock(alice).try_acquire().error(), Errc::held_by_other);
    EXPECT_EQ(lock(alice, {.attempts = 1}).acquire().error(), Errc::held_by_other);
    EXPECT_THAT(verbs(0), ElementsAre("SET", "delete", "SET", "delete"));
}

TEST_F(Waiting, IsNotForSeveralResources) {
    others_hold();
    Lock both{alice, {"r", "s"}, {.retry = {.delay = 10ms}, .fair = true}, network.clock(), entropy};
    EXPECT_EQ(both.acquire().error(), Errc::held_by_other);
    EXPECT_THAT(verbs(0), Not(Contains("enter")));
    network.server(0).redis->keys().clear();
    network.server(1).redis->keys().clear();
    forget_log();
    EXPECT_TRUE(both.acquire());
    EXPECT_TRUE(both.release());
    EXPECT_THAT(verbs(0), ElementsAre("set all", "wake")) << "their release wakes those that do";
}

// Nothing is handed on before its time, and then it is had at once.
TEST_F(Waiting, OutlastsTheRestThatIsToBeKept) {
    bob_holds_for(100ms, {.at_least = 400ms});
    auto mine = lock(alice, {.delay = 10s});
    const auto took = time_of([&] { EXPECT_TRUE(mine.acquire_for(1s)); });
    EXPECT_GE(took, 395ms);
    EXPECT_LE(took, 410ms);
    EXPECT_THAT(verbs(0), Contains("rest"));
    EXPECT_THAT(verbs(0), Not(Contains("wake")));
}

// ---- How often it asks

TEST_F(Waiting, AsksAfterEachPauseOfTheRetryWhereItIsFirst) {
    others_hold();
    (void)lock(alice, {.delay = 40ms}).acquire_for(200ms);
    EXPECT_GE(intervals().size(), 4U);
    EXPECT_THAT(intervals(), Each(AllOf(Ge(20ms), Le(43ms))));
}

TEST_F(Waiting, AsksMoreRarelyTheMoreAreInFront) {
    for (const auto& [in_front, interval] : {std::pair{1, 265ms}, {16, 500ms}, {48, 1000ms}, {100, 1000ms}}) {
        WaitingWorld another;
        auto& carol = another.client();
        for (std::size_t node = 0; node < 3; ++node) another.hold(node, "other");
        for (int i = 0; i < in_front; ++i)
            another.ask(0, {"ZADD", "{r}:queue", "1", "d|" + std::to_string(i)});
        (void)another.lock(carol).acquire_for(3s);
        const auto questions = another.all(0, "enter");
        ASSERT_GE(questions.size(), 3U);
        EXPECT_GE(questions[1].when - questions[0].when, interval) << in_front;
        EXPECT_LE(questions[1].when - questions[0].when, interval + 3ms) << in_front;
    }
}

TEST_F(Waiting, AsksWhenTheHolderHasDied) {
    for (std::size_t node = 0; node < 3; ++node) ask(node, {"SET", "r", "dead", "PX", "400"});
    auto mine = lock(alice, {.delay = 10s});
    const auto took = time_of([&] { EXPECT_TRUE(mine.acquire_for(9s)); });
    EXPECT_GE(took, 400ms);
    EXPECT_LE(took, 410ms);
}

// ---- What ends it early, and what does not

TEST_F(Waiting, IgnoresAMessageOfAnEarlierTime) {
    others_hold();
    std::string stale;
    after(30ms, [&] {
        const auto ticket = queued(0).front();
        stale = ticket.substr(0, ticket.find('|')) + "|77";
        network.server(0).publish(ticket.substr(0, ticket.find('|')), stale, now());
    });
    after(90ms, [&] {
        EXPECT_THAT(verbs(0), ElementsAre("SET", "delete", "SUBSCRIBE", "enter", "wake", "enter"));
        EXPECT_THAT(arguments(0, "wake", 1), ElementsAre(stale))
            << "what may be reserved for it is of no use";
        EXPECT_THAT(arguments(0, "wake", 4), ElementsAre(stale));
    });
    (void)lock(alice, {.delay = 10s}).acquire_for(100ms);
}

// A stray key there must not hide that the others are free.
TEST_F(Waiting, LooksAroundEachBeatWhereItIsFirst) {
    others_hold();
    after(10ms, [&] {
        for (const std::size_t node : {1U, 2U}) ask(node, {"DEL", "r"});
    });
    auto mine = lock(alice, {.delay = 20ms});
    const auto took = time_of([&] { EXPECT_TRUE(mine.acquire_for(9s)); });
    EXPECT_GE(took, algorithm::beat);
    EXPECT_LE(took, algorithm::beat + 30ms);
}

// Out of the queue, it would miss a release.
TEST_F(Waiting, KeepsItsPlaceWhileItLooksAround) {
    others_hold();
    auto mine = lock(alice, {.delay = 20ms});
    EXPECT_FALSE(mine.acquire_for(2 * algorithm::beat));
    EXPECT_THAT(all(0, "SET"), SizeIs(2)) << "the first attempt, and one that looks around";
    EXPECT_THAT(all(0, "leave and set"), SizeIs(1)) << "the last attempt";
    EXPECT_THAT(queued(0), IsEmpty());
}

TEST_F(Waiting, GivesUpItsPlaceWhereItLooksAroundWithSuccess) {
    others_hold();
    after(10ms, [&] {
        for (const std::size_t node : {1U, 2U}) ask(node, {"DEL", "r"});
    });
    auto mine = lock(alice, {.delay = 20ms});
    EXPECT_TRUE(mine.acquire_for(9s));
    EXPECT_THAT(all(0, "leave and set"), IsEmpty());
    EXPECT_THAT(queued(0), IsEmpty());
}

// Those in front may be unable to come.
TEST_F(Waiting, LooksAroundAtAnyPlaceAfterTwoBeatsWithoutAHolder) {
    others_hold();
    ask(0, {"ZADD", "{r}:queue", "1", "z|1"});
    after(10ms, [&] {
        hold(0, "z|1");
        for (const std::size_t node : {1U, 2U}) ask(node, {"DEL", "r"});
    });
    auto mine = lock(alice);
    const auto took = time_of([&] { EXPECT_TRUE(mine.acquire_for(9s)); });
    EXPECT_GE(took, 2 * algorithm::beat);
    EXPECT_LE(took, 4 * algorithm::beat);
}

TEST_F(Waiting, LooksAroundBehindAHolderOnlyWhereItIsFirst) {
    others_hold();
    ask(0, {"ZADD", "{r}:queue", "1", "z|1"});
    (void)lock(alice).acquire_for(3s);
    EXPECT_THAT(all(1, "SET"), SizeIs(2)) << "the first attempt and the last";
}

// Two that collide for the first time are told apart by the queue.
TEST_F(Waiting, BacksOffAfterTheSecondFailedAttemptInARow) {
    others_hold();
    after(50ms, [&] { release_at(0, "other"); });
    (void)lock(alice, {.delay = 200ms}).acquire_for(150ms);
    const auto may_take = arguments(0, "enter", 5);
    ASSERT_GE(may_take.size(), 3U);
    EXPECT_EQ(may_take[0], "1");
    EXPECT_EQ(may_take[1], "1") << "at once after the first";
    EXPECT_EQ(may_take[2], "0");
}

// What it took is to go to nobody else: who else wants it was refused elsewhere, too.
TEST_F(Waiting, WakesNobodyWithAFailedAttempt) {
    others_hold();
    ask(0, {"ZADD", "{r}:queue", "9e15", "z|1"});
    after(50ms, [&] { release_at(0, "other"); });
    (void)lock(alice, {.delay = 200ms}).acquire_for(75ms);
    EXPECT_THAT(verbs(0), Contains("leave and set"));
    EXPECT_THAT(verbs(0), Not(Contains("wake")));
    for (const std::size_t node : {1U, 2U}) EXPECT_THAT(verbs(node), Not(Contains("wake")));
}

// ---- Another home

TEST_F(Waiting, GoesToTheNextNodeAtOnceWhenItsConnectionEnds) {
    others_hold();
    Words former;
    after(100ms, [&] {
        former = queued(0);
        network.server(0).close_connections(now());
        network.server(0).refuses = true;
    });
    after(110ms, [&] {
        EXPECT_THAT(queued(1), SizeIs(1));
        EXPECT_NE(queued(1), former) << "of the other nobody is to believe that it is heard";
    });
    (void)lock(alice, {.delay = 10s}).acquire_for(200ms);
    ASSERT_THAT(former, SizeIs(1));
    EXPECT_GE(std::stoi(arguments(1, "enter", 3).front()), 90'000) << "it has kept its age";
}

TEST_F(Waiting, GoesToTheNextNodeWhenItIsNotAnswered) {
    others_hold();
    after(100ms, [&] { network.server(0).paused = true; });
    (void)lock(alice, {.delay = 20ms}).acquire_for(400ms);
    const auto questions = all(1, "enter");
    ASSERT_FALSE(questions.empty());
    EXPECT_GE(std::stoi(argument(questions.front().words, 3)), 150'000);
    EXPECT_LE(std::stoi(argument(questions.front().words, 3)), 200'000) << "a budget, and a question";
}

TEST_F(Waiting, KeepsItsAgeFromQuestionToQuestion) {
    others_hold();
    (void)lock(alice, {.delay = 20ms}).acquire_for(200ms);
    const auto questions = all(0, "enter");
    ASSERT_GE(questions.size(), 5U);
    for (const auto& it : questions) {
        const std::chrono::microseconds since{std::stoll(argument(it.words, 3))};
        EXPECT_LE(it.when - since - (questions.front().when - 3ms), 1ms);
    }
}

}  // namespace
}  // namespace redlock::test
