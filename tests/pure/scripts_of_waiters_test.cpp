// The scripts that know the queue of waiters, every branch of them, run by Lua on a Redis in memory.
#include "scripts_of_waiters_fixture.hpp"

#include <string>

namespace redlock::test::scripts_of_waiters_test {
namespace {

struct WaitersForAHeldResource : Waiters {
    WaitersForAHeldResource() { hold("a", "you", 1h); }
};

// ---- The release

TEST_F(Waiters, AreLeftAloneByAReleaseWithoutAQueue) {
    hold("a", me);
    EXPECT_EQ(release(me), "1");
    EXPECT_EQ(release(me), "0");
    EXPECT_TRUE(redis.keys().empty());
}

TEST_F(Waiters, AreWokenByTheReleaseFirstComeFirstServed) {
    hold("a", me);
    queue("redlock:wake:x|1", 2us);
    queue("redlock:wake:y|1", 3us);
    EXPECT_EQ(release(me), "3");
    EXPECT_THAT(heard, ElementsAre("redlock:wake:y|1"));
    EXPECT_THAT(queued(), ElementsAre("redlock:wake:x|1"));
    EXPECT_THAT(value_and_ttl("a"), Pair("redlock:wake:y|1", 100ms))
        << "a reservation lasts that long, and no longer";
    now += 101ms;
    EXPECT_EQ(value("a"), "(nil)");
}

TEST_F(Waiters, AreSkippedIfNobodyListensForThem) {
    hold("a", me);
    for (const auto* const dead : {"redlock:wake:d|1", "redlock:wake:d|2"})
        ask({"ZADD", "queue:a", "1", dead});
    queue("redlock:wake:x|1");
    EXPECT_EQ(release(me), "3");
    EXPECT_THAT(heard, ElementsAre("redlock:wake:x|1"));
    EXPECT_THAT(queued(), IsEmpty());
    EXPECT_EQ(value("a"), "redlock:wake:x|1");
}

TEST_F(Waiters, DoNotPreventTheReleaseIfTheyHaveAllDied) {
    hold("a", me);
    for (const auto* const dead : {"redlock:wake:d|1", "redlock:wake:d|2"})
        ask({"ZADD", "queue:a", "1", dead});
    EXPECT_EQ(release(me), "1");
    EXPECT_TRUE(redis.keys().empty());
}

// It bears the name that a queue would have.
TEST_F(Waiters, DoNotChangeTheSortedSetOfAnApplication) {
    for (const auto* const member : {"user:7", "a|b", "|", "order|17", "wake:a|1"}) {
        ask({"DEL", "queue:a"});
        ask({"ZADD", "queue:a", "1", member, "2", "redlock:wake:z|1"});
        const auto expect_untouched = [&] {
            EXPECT_THAT(queued(), ElementsAre(member, "redlock:wake:z|1"));
            EXPECT_EQ(ttl("queue:a"), -1ms) << "it lives for ever, as before";
        };
        living.insert("redlock:wake:x");
        hold("a", me);
        EXPECT_THAT(enter("redlock:wake:x|1"), HasSubstr("WRONGTYPE queue:a holds no queue"));
        EXPECT_THAT(enter("redlock:wake:x|1", 0us, "1", "redlock:wake:z|1"), HasSubstr("WRONGTYPE"));
        expect_untouched();
        EXPECT_EQ(release(me), "1") << "the key goes all the same";
        expect_untouched();
        EXPECT_THAT(enter("redlock:wake:x|1"), HasSubstr("WRONGTYPE"));
        EXPECT_EQ(leave_and_set("redlock:wake:x|1"), "1");
        expect_untouched();
        EXPECT_EQ(withdraw("redlock:wake:x|1"), "0");
        expect_untouched();
        ask({"DEL", "a"});
    }
}

TEST_F(Waiters, DoNotRemoveEntriesOfAnApplicationFromTheQueue) {
    let_scripts_count_listeners();
    hold("a", me);
    queue("redlock:wake:x|1", 9us);
    ask({"ZADD", "queue:a", std::to_string((now - 5us).count()), "user:7"});
    living.insert("redlock:wake:y");
    (void)enter("redlock:wake:y|1");
    EXPECT_THAT(queued(), testing::Contains("user:7"));
    ask({"ZADD", "queue:a", "1", "user:8"});
    EXPECT_EQ(release(me), "1");
    EXPECT_THAT(queued(),
                testing::IsSupersetOf({"user:7", "user:8", "redlock:wake:x|1", "redlock:wake:y|1"}));
}

// A server does nothing else meanwhile.
TEST_F(Waiters, AreRemovedInGroupsOf128IfTheyHaveDied) {
    hold("a", me);
    for (int i = 0; i < 200; ++i) ask({"ZADD", "queue:a", "1", "redlock:wake:d|" + std::to_string(i)});
    queue("redlock:wake:x|1");
    EXPECT_EQ(release(me), "1");
    EXPECT_EQ(value("a"), "(nil)");
    EXPECT_EQ(queued().size(), 201U - 128U);
    living.insert("redlock:wake:y");
    EXPECT_THAT(enter("redlock:wake:y|1"), HasSubstr("0 reservation")) << "whoever asks goes on with it";
    EXPECT_EQ(value("a"), "redlock:wake:x|1");
    EXPECT_THAT(queued(), ElementsAre("redlock:wake:y|1"));
}

// Who may not publish is to retry as without a queue; the others keep their places.
TEST_F(Waiters, StayInTheQueueIfNothingCanBePublished) {
    may_publish = false;
    hold("a", me);
    queue("redlock:wake:x|1", 2us);
    queue("redlock:wake:y|1", 1us);
    EXPECT_EQ(release(me), "1") << "the key goes all the same";
    EXPECT_EQ(value("a"), "(nil)");
    EXPECT_THAT(queued(), ElementsAre("redlock:wake:x|1", "redlock:wake:y|1"));
    may_publish = true;
    EXPECT_EQ(release(me), "2");
    EXPECT_THAT(heard, ElementsAre("redlock:wake:x|1"));
}

// The queue disappears with its last ticket, and so does its expiry.
TEST_F(Waiters, KeepTheExpiryOfTheQueueIfNothingCanBePublished) {
    may_publish = false;
    for (const int waiters : {1, 2}) {
        hold("a", me);
        redis.keys().erase("queue:a");
        for (int i = 0; i < waiters; ++i) queue("redlock:wake:x|" + std::to_string(i));
        now += 2s;
        EXPECT_EQ(release(me), "1");
        EXPECT_EQ(ttl("queue:a"), 3s) << "as before: a release is no sign of life";
    }
    now += 3001ms;
    EXPECT_THAT(queued(), IsEmpty());
}

// It was left by something else.
TEST_F(Waiters, CreateNoQueueWithoutAnExpiryIfNothingCanBePublished) {
    may_publish = false;
    hold("a", me);
    ask({"ZADD", "queue:a", "1", "redlock:wake:x|1"});
    EXPECT_EQ(release(me), "1");
    EXPECT_TRUE(redis.keys().empty());
}

// The user may neither publish nor set an expiry. The last ticket has taken the queue with it.
TEST_F(Waiters, DropATicketIfItsQueueWouldHaveNoExpiry) {
    may_publish = false;
    hold("a", me);
    queue("redlock:wake:x|1");
    redis.forbid_in_scripts("pexpire");
    EXPECT_EQ(release(me), "1");
    EXPECT_TRUE(redis.keys().empty());
}

TEST_F(WaitersForAHeldResource, EnterNoQueueThatWouldHaveNoExpiry) {
    redis.forbid_in_scripts("pexpire");
    EXPECT_THAT(enter("redlock:wake:x|1"), StartsWith("(error)"));
    EXPECT_EQ(redis.keys().size(), 1U);
}

TEST_F(Waiters, AreWokenEvenIfTheKeyIsAlreadyGone) {
    queue("redlock:wake:x|1");
    EXPECT_EQ(release(me), "2");
    EXPECT_EQ(value("a"), "redlock:wake:x|1");
}

// What stands there stays; the one that is woken may get a majority elsewhere.
TEST_F(Waiters, AreWokenEvenIfThereIsAStrayKey) {
    hold("a", "you", 5s);
    queue("redlock:wake:x|1");
    EXPECT_EQ(release(me), "2");
    EXPECT_THAT(heard, ElementsAre("redlock:wake:x|1"));
    EXPECT_THAT(value_and_ttl("a"), Pair("you", 5s));
}

TEST_F(Waiters, AreNotWokenIfOneIsAlreadyWoken) {
    hold("a", "redlock:wake:y|7", 50ms);
    queue("redlock:wake:x|1");
    EXPECT_EQ(release(me), "0");
    EXPECT_THAT(heard, IsEmpty());
    EXPECT_THAT(value_and_ttl("a"), Pair("redlock:wake:y|7", 50ms));
}

TEST_F(Waiters, AreNotWokenTwiceByOneRelease) {
    queue("redlock:wake:x|1");
    EXPECT_EQ(release(me, "", "0"), "0");
    EXPECT_THAT(heard, IsEmpty());
    hold("a", me);
    EXPECT_EQ(release(me, "", "0"), "3") << "the first time did not arrive";
}

TEST_F(Waiters, AreWokenForEachOfSeveralResources) {
    living = {"redlock:wake:x", "redlock:wake:y"};
    for (const auto* const key : {"a", "b", "c"}) hold(key, me);
    ask({"ZADD", "queue:a", "1", "redlock:wake:x|1"});
    ask({"ZADD", "queue:c", "1", "redlock:wake:y|1"});
    EXPECT_EQ(release(me, "", "1", {"a", "b", "c"}), "3");
    EXPECT_THAT(heard, ElementsAre("redlock:wake:x|1", "redlock:wake:y|1"));
    EXPECT_EQ(value("a"), "redlock:wake:x|1");
    EXPECT_EQ(value("b"), "(nil)");
    EXPECT_EQ(value("c"), "redlock:wake:y|1");
}

TEST_F(Waiters, AreWokenEvenIfOneOfSeveralKeysIsForeign) {
    living = {"redlock:wake:x", "redlock:wake:y"};
    hold("a", me);
    hold("b", "you");
    ask({"ZADD", "queue:a", "1", "redlock:wake:x|1"});
    ask({"ZADD", "queue:b", "1", "redlock:wake:y|1"});
    EXPECT_EQ(release(me, "", "1", {"a", "b"}), "2");
    EXPECT_EQ(value("a"), "redlock:wake:x|1");
    EXPECT_EQ(value("b"), "you");
    EXPECT_THAT(heard, ElementsAre("redlock:wake:x|1", "redlock:wake:y|1"));
}

// Whatever stands under the queue's name.
TEST_F(Waiters, DoNotPreventTheReleaseIfTheQueueHasAnotherType) {
    for (const Words& odd : {Words{"SET", "queue:a", "x"}, Words{"RPUSH", "queue:a", "x"}}) {
        redis.keys().clear();
        ask(odd);
        hold("a", me);
        EXPECT_EQ(release(me, "redlock:wake:x|1"), "1");
        EXPECT_EQ(value("a"), "(nil)");
        EXPECT_EQ(redis.keys().size(), 1U);
    }
}

// ---- Leaving without an attempt

TEST_F(WaitersForAHeldResource, LeaveTheQueueIfTheyWithdraw) {
    queue("redlock:wake:x|1");
    queue("redlock:wake:y|1", 1us);
    EXPECT_EQ(withdraw("redlock:wake:y|1"), "0");
    EXPECT_THAT(queued(), ElementsAre("redlock:wake:x|1"));
    EXPECT_THAT(heard, IsEmpty());
    EXPECT_EQ(value("a"), "you");
}

TEST_F(Waiters, PassOnTheirReservationIfTheyWithdraw) {
    hold("a", "redlock:wake:y|1", 100ms);
    queue("redlock:wake:x|1");
    EXPECT_EQ(withdraw("redlock:wake:y|1"), "3");
    EXPECT_THAT(value_and_ttl("a"), Pair("redlock:wake:x|1", 100ms));
}

// A release has woken y, but could not reserve the resource for it, because a key stood there. Nobody else
// was woken, so y must pass the wake-up on.
TEST_F(WaitersForAHeldResource, PassOnAWakeUpWithoutAReservationIfTheyWithdraw) {
    queue("redlock:wake:x|1");
    queue("redlock:wake:y|1", 1us);
    EXPECT_EQ(release("stray"), "2");
    EXPECT_THAT(heard, ElementsAre("redlock:wake:y|1"));
    ask({"DEL", "a"});
    EXPECT_EQ(withdraw("redlock:wake:y|1"), "2");
    EXPECT_THAT(heard, ElementsAre("redlock:wake:y|1", "redlock:wake:x|1"));
    EXPECT_EQ(value("a"), "redlock:wake:x|1");
}

TEST_F(Waiters, KeepTheReservationOfAnotherIfTheyWithdraw) {
    hold("a", "redlock:wake:z|1", 70ms);
    queue("redlock:wake:y|1");
    queue("redlock:wake:x|1");
    EXPECT_EQ(withdraw("redlock:wake:y|1"), "0");
    EXPECT_THAT(value_and_ttl("a"), Pair("redlock:wake:z|1", 70ms));
    EXPECT_THAT(heard, IsEmpty());
}

// ---- Entering

TEST_F(Waiters, LearnWhoHoldsTheResource) {
    hold("a", "you", 1234ms);
    EXPECT_EQ(enter("redlock:wake:x|1"), "WAITING 1234 0 holder");
    EXPECT_EQ(enter("redlock:wake:y|1"), "WAITING 1234 1 holder");
    EXPECT_EQ(enter("redlock:wake:x|1"), "WAITING 1234 0 holder") << "and enter once";
    hold("a", "redlock:wake:z|1", 100ms);
    EXPECT_EQ(enter("redlock:wake:y|1"), "WAITING 100 1 reservation");
    redis.keys().erase("a");
    EXPECT_EQ(enter("redlock:wake:y|1", 0us, "0"), "WAITING -2 1 nothing") << "it may not take";
    ask({"SET", "a", "you"});
    EXPECT_EQ(enter("redlock:wake:y|1"), "WAITING -1 1 holder") << "for ever";
    EXPECT_THAT(heard, IsEmpty());
}

TEST_F(Waiters, ReserveAFreeResourceInTheirTurn) {
    EXPECT_EQ(enter("redlock:wake:x|1"), "RESERVED");
    EXPECT_THAT(value_and_ttl("a"), Pair("redlock:wake:x|1", 100ms));
    EXPECT_THAT(heard, IsEmpty()) << "it need not be told";
    EXPECT_THAT(queued(), IsEmpty());
    EXPECT_EQ(enter("redlock:wake:x|1"), "RESERVED") << "once more";
    EXPECT_EQ(enter("redlock:wake:y|1"), "WAITING 100 0 reservation")
        << "who has it is not in front any more";
}

TEST_F(Waiters, PassAFreeResourceToTheWaitersInFront) {
    queue("redlock:wake:x|1", 1ms);
    EXPECT_EQ(enter("redlock:wake:y|1"), "WAITING 100 0 reservation");
    EXPECT_THAT(heard, ElementsAre("redlock:wake:x|1"));
    EXPECT_EQ(value("a"), "redlock:wake:x|1");
}

TEST_F(WaitersForAHeldResource, KeepTheirAgeAtEachNode) {
    EXPECT_THAT(enter("redlock:wake:x|1", 5s), HasSubstr(" 0 "));
    EXPECT_THAT(enter("redlock:wake:y|1", 7s), HasSubstr(" 0 ")) << "older";
    EXPECT_THAT(enter("redlock:wake:z|1", 6s), HasSubstr(" 1 "));
    now += 4s;
    EXPECT_THAT(enter("redlock:wake:w|1", 10500ms), HasSubstr(" 1 "))
        << "older than z, which has waited 10 s by now";
    EXPECT_THAT(queued(),
                ElementsAre("redlock:wake:y|1", "redlock:wake:w|1", "redlock:wake:z|1", "redlock:wake:x|1"));
}

TEST_F(WaitersForAHeldResource, DoNotGrowOlderByPolling) {
    (void)enter("redlock:wake:x|1", 5s);
    (void)enter("redlock:wake:y|1", 4s);
    (void)enter("redlock:wake:y|1", 9s);
    EXPECT_THAT(queued(), ElementsAre("redlock:wake:x|1", "redlock:wake:y|1"));
}

TEST_F(WaitersForAHeldResource, KeepTheQueueAsLongAsOneOfThemPolls) {
    (void)enter("redlock:wake:x|1");
    EXPECT_EQ(ttl("queue:a"), 5s);
    now += 4s;
    (void)enter("redlock:wake:y|1");
    EXPECT_EQ(ttl("queue:a"), 5s);
    now += 5001ms;
    EXPECT_THAT(queued(), IsEmpty());
}

TEST_F(WaitersForAHeldResource, LearnWhyThereIsNoQueue) {
    ask({"RPUSH", "queue:a", "x"});
    EXPECT_THAT(enter("redlock:wake:x|1"), StartsWith("(error) WRONGTYPE"));
    EXPECT_EQ(ttl("queue:a"), -1ms) << "the list of an application lives for ever, as before";
    EXPECT_EQ(value("a"), "you");
    redis.keys().clear();
    may_publish = false;
    queue("redlock:wake:y|1", 1s);
    EXPECT_THAT(enter("redlock:wake:x|1"), StartsWith("(error) NOPERM"));
    EXPECT_EQ(value("a"), "(nil)") << "nothing is reserved for one that was not told";
    EXPECT_THAT(queued(), ElementsAre("redlock:wake:y|1", "redlock:wake:x|1"));
}

// ---- Waiters that have died

// The sign of life of a ticket is its last question.
TEST_F(WaitersForAHeldResource, LeaveTheQueueAfterFiveSecondsWithoutAPoll) {
    (void)enter("redlock:wake:d|1", 9s);
    (void)enter("redlock:wake:x|1", 8s);
    now += 4s;
    EXPECT_EQ(enter("redlock:wake:x|1"), "WAITING 3596000 1 holder");
    now += 1000ms;
    EXPECT_THAT(enter("redlock:wake:x|1"), HasSubstr(" 1 holder"));
    now += 1ms;
    EXPECT_THAT(enter("redlock:wake:x|1"), HasSubstr(" 0 holder"));
    EXPECT_THAT(queued(), ElementsAre("redlock:wake:x|1"));
}

TEST_F(WaitersForAHeldResource, KeepTheirPlacesAsLongAsTheyPoll) {
    for (int i = 0; i < 20; ++i) {
        EXPECT_THAT(enter("redlock:wake:x|1", 2s), HasSubstr(" 0 holder"));
        EXPECT_THAT(enter("redlock:wake:y|1", 1s), HasSubstr(" 1 holder"));
        now += 1s;
    }
    EXPECT_THAT(queued(), ElementsAre("redlock:wake:x|1", "redlock:wake:y|1"));
}

// It was stopped, and the others kept the queue.
TEST_F(WaitersForAHeldResource, KeepTheirAgeIfTheyPollAgainLater) {
    (void)enter("redlock:wake:x|1", 9s);
    (void)enter("redlock:wake:y|1", 1s);
    now += 4s;
    (void)enter("redlock:wake:y|1", 5s);
    now += 4s;
    EXPECT_THAT(enter("redlock:wake:x|1", 17s), HasSubstr(" 0 holder"));
    EXPECT_THAT(queued(), ElementsAre("redlock:wake:x|1", "redlock:wake:y|1"));
    EXPECT_THAT(enter("redlock:wake:y|1", 9s), HasSubstr(" 1 holder"));
}

TEST_F(WaitersForAHeldResource, LeaveTheQueueAtAnyPlaceIfTheyDoNotPoll) {
    (void)enter("redlock:wake:x|1", 9s);
    (void)enter("redlock:wake:d|1", 5s);
    now += 4s;
    EXPECT_THAT(enter("redlock:wake:x|1"), HasSubstr(" 0 holder"));
    EXPECT_THAT(queued(), ElementsAre("redlock:wake:x|1", "redlock:wake:d|1"));
    now += 1001ms;
    EXPECT_THAT(enter("redlock:wake:x|1"), HasSubstr(" 0 holder"));
    EXPECT_THAT(queued(), ElementsAre("redlock:wake:x|1"));
}

// A server does nothing else meanwhile.
TEST_F(WaitersForAHeldResource, LeaveTheQueueInGroupsOf16IfTheyDoNotPoll) {
    for (int i = 0; i < 40; ++i) (void)enter("redlock:wake:d|" + std::to_string(i), 9s);
    now += 4s;
    EXPECT_THAT(enter("redlock:wake:x|1"), HasSubstr(" 40 holder"));
    now += 1001ms;
    EXPECT_THAT(enter("redlock:wake:x|1"), HasSubstr(" 24 holder"));
    EXPECT_THAT(enter("redlock:wake:x|1"), HasSubstr(" 8 holder"));
    EXPECT_THAT(enter("redlock:wake:x|1"), HasSubstr(" 0 holder"));
}

TEST_F(WaitersForAHeldResource, LeaveNoSignOfLifeBehind) {
    (void)enter("redlock:wake:x|1");
    EXPECT_EQ(ttl("queue:a:signs"), 5s);
    now += 4s;
    (void)enter("redlock:wake:y|1");
    EXPECT_EQ(ttl("queue:a:signs"), 5s);
    now += 5001ms;
    EXPECT_EQ(redis.find("queue:a:signs", now), nullptr);
}

// What stands there is not of the library.
TEST_F(WaitersForAHeldResource, CanQueueIfTheKeyOfTheirSignsOfLifeIsForeign) {
    ask({"SET", "queue:a:signs", "theirs"});
    EXPECT_THAT(enter("redlock:wake:x|1"), HasSubstr(" 0 holder"));
    EXPECT_THAT(value_and_ttl("queue:a:signs"), Pair("theirs", -1ms));
    redis.keys().erase("queue:a:signs");
    ask({"ZADD", "queue:a:signs", "1", "theirs"});
    EXPECT_THAT(enter("redlock:wake:x|1"), HasSubstr(" 0 holder"));
    EXPECT_EQ(ask({"ZCARD", "queue:a:signs"}), "1");
    EXPECT_EQ(ttl("queue:a:signs"), -1ms);
}

// A release could not wake such a waiter.
TEST_F(WaitersForAHeldResource, AreToldIfNobodyIsSubscribedToTheirChannel) {
    let_scripts_count_listeners();
    EXPECT_EQ(enter("redlock:wake:x|1"), "UNSUBSCRIBED");
    EXPECT_THAT(queued(), IsEmpty());
    living.insert("redlock:wake:x");
    EXPECT_THAT(enter("redlock:wake:x|2"), HasSubstr(" 0 holder"));
    living.erase("redlock:wake:x");
    EXPECT_EQ(enter("redlock:wake:x|2"), "UNSUBSCRIBED");
    EXPECT_THAT(queued(), IsEmpty());
    EXPECT_EQ(enter("redlock:wake:x|3", 0us, "1", "redlock:wake:x|2"), "UNSUBSCRIBED");
    EXPECT_EQ(enter("redlock:wake:x|3", 0us, "0"), "UNSUBSCRIBED");
}

TEST_F(Waiters, PassTheReservationOnIfNobodyIsSubscribedToTheirChannel) {
    let_scripts_count_listeners();
    hold("a", "redlock:wake:x|1");
    queue("redlock:wake:y|1");
    EXPECT_EQ(enter("redlock:wake:x|2", 0us, "1", "redlock:wake:x|1"), "UNSUBSCRIBED");
    EXPECT_EQ(value("a"), "redlock:wake:y|1");
    EXPECT_THAT(heard, ElementsAre("redlock:wake:y|1"));
}

// They ask as well, but leave no sign.
TEST_F(WaitersForAHeldResource, OfOlderClientsStayAsLongAsTheirChannelsHaveListeners) {
    let_scripts_count_listeners();
    queue("redlock:wake:x|1", 9s);
    queue_of_an_older_client("redlock:wake:d|1", 8s);
    queue("redlock:wake:y|1", 7s);
    living.insert("redlock:wake:z");
    EXPECT_THAT(enter("redlock:wake:z|1"), HasSubstr(" 2 holder"));
    for (int i = 0; i < 20; ++i) {
        EXPECT_THAT(enter("redlock:wake:z|1"), HasSubstr(" 2 holder"));
        now += 1s;
    }
    EXPECT_THAT(queued(), ElementsAre("redlock:wake:x|1", "redlock:wake:y|1", "redlock:wake:z|1"));
    living.erase("redlock:wake:x");
    EXPECT_THAT(enter("redlock:wake:z|1"), HasSubstr(" 1 holder"));
}

TEST_F(WaitersForAHeldResource, OfOlderClientsStayIfListenersCannotBeCounted) {
    queue_of_an_older_client("redlock:wake:d|1", 8s);
    EXPECT_THAT(enter("redlock:wake:z|1"), HasSubstr(" 1 holder"));
}

// Whoever asks looks at another part of those in front of it each time.
TEST_F(WaitersForAHeldResource, AreAllRemovedInGroupsOf16IfNobodyListensForThem) {
    let_scripts_count_listeners();
    living.insert("redlock:wake:z");
    for (int i = 0; i < 300; ++i)
        queue_of_an_older_client(
            std::string{i % 3 == 0 ? "redlock:wake:z|" : "redlock:wake:d|"} + std::to_string(1000 + i),
            9s - microseconds{i});
    (void)enter("redlock:wake:z|1");
    EXPECT_GE(queued().size(), 301U - 16U);
    for (int i = 0; i < 300; ++i) {
        now += 100'003us;
        (void)enter("redlock:wake:z|1");
    }
    EXPECT_EQ(queued().size(), 101U);
}

// ---- Another ticket for the same waiter

TEST_F(WaitersForAHeldResource, KeepTheirPlaceWithANewTicketAndRemoveTheOldOne) {
    (void)enter("redlock:wake:x|1", 9s);
    (void)enter("redlock:wake:y|1", 8s);
    EXPECT_THAT(enter("redlock:wake:z|1", 9s, "1", "redlock:wake:x|1"), HasSubstr(" 0 holder"));
    EXPECT_THAT(queued(), ElementsAre("redlock:wake:z|1", "redlock:wake:y|1"));
}

TEST_F(Waiters, UseTheReservationOfTheirFormerTicket) {
    hold("a", "redlock:wake:x|1", 70ms);
    queue("redlock:wake:y|1", 8s);
    EXPECT_EQ(enter("redlock:wake:z|1", 9s, "1", "redlock:wake:x|1"), "RESERVED");
    EXPECT_THAT(value_and_ttl("a"), Pair("redlock:wake:z|1", 100ms));
    hold("a", "you", 70ms);
    EXPECT_THAT(enter("redlock:wake:w|1", 9s, "1", "redlock:wake:z|1"), HasSubstr(" 0 holder"));
    EXPECT_EQ(value("a"), "you");
}

// ---- The attempt of one that has waited

TEST_F(Waiters, LeaveTheQueueWithTheirAttempt) {
    queue("redlock:wake:x|1", 1us);
    queue("redlock:wake:y|1");
    EXPECT_EQ(leave_and_set("redlock:wake:x|1"), "1");
    EXPECT_THAT(value_and_ttl("a"), Pair(me, 10s));
    EXPECT_THAT(queued(), ElementsAre("redlock:wake:y|1"));
}

// The whole ttl: what is left of the reservation must not stay.
TEST_F(Waiters, ReplaceTheirReservationForAWholeTtl) {
    hold("a", "redlock:wake:x|1", 100ms);
    EXPECT_EQ(leave_and_set("redlock:wake:x|1"), "1");
    EXPECT_THAT(value_and_ttl("a"), Pair(me, 10s));
}

TEST_F(Waiters, AreRefusedByAHolderAndByTheReservationOfAnother) {
    for (const std::string other : {"you", "redlock:wake:y|1"}) {
        hold("a", other, 70ms);
        queue("redlock:wake:x|1");
        EXPECT_EQ(leave_and_set("redlock:wake:x|1"), "0");
        EXPECT_THAT(value_and_ttl("a"), Pair(other, 70ms));
        EXPECT_THAT(queued(), IsEmpty());
    }
}

TEST_F(Waiters, MakeAnAttemptEvenIfTheQueueHasAnotherType) {
    ask({"RPUSH", "queue:a", "x"});
    EXPECT_EQ(leave_and_set("redlock:wake:x|1"), "1");
    EXPECT_EQ(value("a"), me);
}

// A node that may have lost the key of a holder has no vote: a reservation that it has does not change that.
TEST_F(Waiters, GetNoVoteInAQuarantine) {
    quarantine = 60s;
    hold("a", "redlock:wake:x|1", 100ms);
    EXPECT_EQ(leave_and_set("redlock:wake:x|1"), "QUARANTINED for another 60000 ms");
    EXPECT_EQ(value("a"), "(nil)");
    EXPECT_EQ(leave_and_count("redlock:wake:x|1"), "QUARANTINED for another 60000 ms");
    now += 60s;
    EXPECT_EQ(leave_and_set("redlock:wake:x|1"), "1");
}

TEST_F(Waiters, AreCounted) {
    hold("count:a", "41");
    hold("a", "redlock:wake:x|1", 100ms);
    queue("redlock:wake:x|1");
    EXPECT_EQ(leave_and_count("redlock:wake:x|1"), "42");
    EXPECT_THAT(value_and_ttl("a"), Pair(me, 10s));
    EXPECT_THAT(value_and_ttl("count:a"), Pair("42", keep));
    EXPECT_THAT(queued(), IsEmpty());
    EXPECT_EQ(leave_and_count("redlock:wake:x|1"), "0") << "held";
    EXPECT_EQ(value("count:a"), "42");
}

// The value of a key that another library has set may contain a '|', and is no ticket for that reason.
TEST_F(Waiters, AreWokenDespiteAForeignKeyWhoseValueResemblesATicket) {
    for (const auto* const foreign : {"web1|4711", "wake:x|1", "redlock:wake:|"}) {
        hold("a", foreign);
        queue("redlock:wake:x|1");
        EXPECT_THAT(enter("redlock:wake:x|1"), HasSubstr(" holder")) << foreign;
        EXPECT_EQ(release(me), "2") << foreign;
        EXPECT_EQ(value("a"), foreign);
    }
}

}  // namespace
}  // namespace redlock::test::scripts_of_waiters_test
