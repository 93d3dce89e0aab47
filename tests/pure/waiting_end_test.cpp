// How waiting in the queue ends, what is known of it afterwards, and what it comes to where it is not
// allowed.
#include "waiting_world.hpp"

#include <stop_token>
#include <string>

#include "wire/key_names.hpp"

namespace redlock::test::waiting_end_test {
namespace {

struct EndOfWaiting : Waiting {
    /// Expects that an acquisition fails after this time, or up to 10 ms later.
    void expect_refusal_after(Clock::duration span, Retry retry, const LockOptions& options = {}) {
        auto mine = lock(alice, retry, options);
        EXPECT_THAT(time_of([&] { EXPECT_EQ(mine.acquire().error(), Errc::held_by_other); }),
                    IsBetween(span, span + 10ms));
    }
};

struct EndOfWaitingForOthers : EndOfWaiting {
    EndOfWaitingForOthers() { others_hold(); }
};

struct EndOfWaitingWithoutIdle : Waiting {
    EndOfWaitingWithoutIdle() : Waiting(3, {.node_timeout = 50ms, .max_idle = 0}) {}
};

// ---- Its end

TEST_F(EndOfWaitingForOthers, LeavesTheQueueAfterAStop) {
    std::stop_source stop;
    after(50ms, [&] {
        EXPECT_THAT(queued(0), SizeIs(1));
        stop.request_stop();
    });
    auto mine = lock(alice, {.delay = 10s});
    const auto took =
        time_of([&] { EXPECT_EQ(mine.acquire_for(9s, stop.get_token()).error(), Errc::cancelled); });
    EXPECT_LE(took, 60ms);
    EXPECT_THAT(queued(0), IsEmpty());
    EXPECT_EQ(verbs(0).back(), "wake") << "the next one has it, had it been reserved";
}

// The home takes the connection and says nothing. No other node is tried once a stop is requested.
TEST_F(EndOfWaitingForOthers, DoesNotBeginToListenAfterAStop) {
    alice.contended().set("r", true);
    network.server(0).paused = true;
    std::stop_source stop;
    after(10ms, [&] { stop.request_stop(); });
    auto mine = lock(alice, {.delay = 10s});
    const auto took =
        time_of([&] { EXPECT_EQ(mine.acquire_for(9s, stop.get_token()).error(), Errc::cancelled); });
    EXPECT_LE(took, 12ms);
    EXPECT_THAT(verbs(1), IsEmpty());
}

TEST_F(EndOfWaitingForOthers, EndsWithAnAttemptAndThenLeavesTheQueue) {
    const auto took = time_of([&] {
        const auto result = lock(alice).acquire_for(300ms);
        EXPECT_EQ(result.error(), Errc::held_by_other);
        ASSERT_TRUE(result.place());
        EXPECT_EQ(result.place()->held, QueuePlace::Held::by_holder);
        EXPECT_EQ(result.place()->in_front, 0U);
    });
    EXPECT_LE(took, 300ms);
    EXPECT_THAT(queued(0), IsEmpty());
    EXPECT_EQ(verbs(0).back(), "wake");
    EXPECT_THAT(all(0, "leave and set"), IsEmpty());
}

// A release wakes the waiter in the last attempt of that waiter, which other nodes have already refused.
TEST_F(EndOfWaitingForOthers, PassesOnAWakeUpThatComesDuringItsLastAttempt) {
    ask(0, {"ZADD", "{r}:queue", "9e15", "redlock:wake:z|1"});
    after(50ms, [&] {
        network.server(0).before_command = [&](const Words& words) {
            const bool attempt = words.front() == "SET" || verb_of(words) == "leave and set";
            if (attempt && holder(0) == "other") release_at(0, "other");
        };
    });
    EXPECT_EQ(lock(alice).acquire_for(200ms).error(), Errc::held_by_other);
    EXPECT_EQ(holder(0), "(nil)") << "nothing stays reserved for a waiter that has gone";
    EXPECT_THAT(queued(0), IsEmpty()) << "the next one was woken";
}

TEST_F(EndOfWaiting, WakesTheNextWaiterIfItsTimeEndsDuringTheAttempt) {
    bob_holds_for(20ms);
    ask(0, {"ZADD", "{r}:queue", "9e15", "redlock:wake:z|1"});
    network.server(1).paused = network.server(2).paused = true;  // neither is its SET answered there
    EXPECT_EQ(lock(alice).acquire_for(60ms).error(), Errc::deadline);
    EXPECT_EQ(verbs(0).back(), "wake");
}

TEST_F(EndOfWaiting, WakesTheNextWaiterIfStoppedDuringTheAttempt) {
    bob_holds_for(20ms);
    ask(0, {"ZADD", "{r}:queue", "9e15", "redlock:wake:z|1"});
    std::stop_source stop;
    network.server(1).paused = network.server(2).paused = true;  // neither is its SET answered there
    after(100ms, [&] {
        EXPECT_EQ(verbs(0).back(), "leave and set");
        stop.request_stop();
    });
    EXPECT_EQ(lock(alice, {.delay = 10s}).acquire_for(9s, stop.get_token()).error(), Errc::cancelled);
    EXPECT_EQ(verbs(0).back(), "wake");
}

TEST_F(EndOfWaitingForOthers, PassesOnItsReservationIfStoppedBeforeTheAttempt) {
    std::stop_source stop;
    std::string reserved;
    after(50ms, [&] {
        release_at(0, "other");
        reserved = holder(0);
        stop.request_stop();
    });
    EXPECT_EQ(lock(alice, {.delay = 10s}).acquire_for(9s, stop.get_token()).error(), Errc::cancelled);
    EXPECT_THAT(reserved, HasSubstr("redlock:wake:"));
    EXPECT_EQ(holder(0), "(nil)");
    EXPECT_THAT(queued(0), IsEmpty());
    EXPECT_EQ(verbs(0).back(), "wake");
}

// The question would put it back, did the attempt overtake it.
TEST_F(EndOfWaitingForOthers, LeavesNoTicketAtAHangingHomeNode) {
    auto& home = network.server(0);
    home.before_command = [&](const Words& words) {
        home.paused = home.paused || words.front() == "SUBSCRIBE";
    };
    EXPECT_FALSE(lock(alice).acquire_for(30ms));
    network.resume(0);
    EXPECT_THAT(all(0, "enter"), SizeIs(1));
    EXPECT_THAT(queued(0), IsEmpty());
}

TEST_F(EndOfWaitingForOthers, BlamesNoNodeIfTheCallerHasTooLittleTime) {
    auto mine = lock(alice);
    EXPECT_FALSE(mine.try_acquire());
    network.server(0).unreachable = true;
    EXPECT_FALSE(mine.acquire_for(30ms));
    network.server(0).unreachable = false;
    EXPECT_EQ(mine.try_acquire().nodes()[0].vote, Vote::refused);
}

// Its place is not told that it is given up, then: no connection is worth a wait once the time is over.
TEST_F(EndOfWaitingWithoutIdle, TakesNoLongerIfTheHomeNodeIsUnreachable) {
    for (const std::size_t node : {1U, 2U}) hold(node, "other");
    for (const std::size_t node : {0U, 1U}) forbid(node, {"SUBSCRIBE"});
    auto& home = network.server(2);
    home.before_command = [&, asked = 0](const Words& words) mutable {
        if (verb_of(words) == "enter" && ++asked == 1)
            network.server(0).before_command = [&](const Words&) {  // the attempt that looks around
                network.server(1).paused = home.unreachable = true;
            };
    };
    const auto took = time_of(
        [&] { EXPECT_EQ(lock(alice, {.delay = 20ms}).acquire_for(290ms).error(), Errc::held_by_other); });
    EXPECT_THAT(queued(2), SizeIs(1)) << "or this test shows nothing";
    EXPECT_LE(took, 292ms) << "the attempt is undone, and no connection waited for";
}

TEST_F(EndOfWaitingWithoutIdle, KeepsNoListener) {
    others_hold();
    for (std::size_t time = 1; time <= 2; ++time) {
        (void)lock(alice).acquire_for(100ms);
        EXPECT_THAT(all(0, "SUBSCRIBE"), SizeIs(time));
    }
}

TEST_F(EndOfWaiting, ReportsHowLongTheResourceIsHeldAtMost) {
    for (std::size_t node = 0; node < 3; ++node) ask(node, {"SET", "r", "other", "PX", "5000"});
    ask(0, {"ZADD", "{r}:queue", "1", "redlock:wake:z|1"});
    const auto result = lock(alice).acquire_for(100ms);
    ASSERT_TRUE(result.place());
    EXPECT_EQ(result.place()->in_front, 1U);
    EXPECT_THAT(result.place()->held_for, IsBetween(4900ms, 5000ms));
    EXPECT_THAT(result.message(), HasSubstr("for at most "));
    EXPECT_THAT(result.message(), HasSubstr("1 in front"));
}

/// As in the guide.
struct EndOfWaitingAmongFive : Waiting {
    EndOfWaitingAmongFive() : Waiting(5) {
        for (std::size_t node = 0; node < size; ++node) ask(node, {"SET", "r", "other", "PX", "8212"});
        for (const auto* const ticket : {"redlock:wake:x|1", "redlock:wake:y|1", "redlock:wake:z|1"})
            ask(0, {"ZADD", "{r}:queue", "1", ticket});
    }
};

TEST_F(EndOfWaitingAmongFive, ReportsTheHolderAndThePlaceInTheQueue) {
    const auto place = testing::ContainsRegex(
        "^held by another on 3 of 5 nodes, for at most [0-9]+ ms more, "
        "3 in front, 2 attempts$");
    EXPECT_THAT(lock(alice).acquire_for(5s).message(), place);
    // Alice knows now that the resource is contended. A new client does not.
    for (const auto timeout : {100ms, 200ms, 290ms})
        for (auto* const nodes : {&alice, &client()}) {
            const auto result = lock(*nodes).acquire_for(timeout);
            EXPECT_EQ(result.error(), Errc::held_by_other) << timeout.count();
            EXPECT_THAT(result.message(), place);
        }
}

TEST_F(EndOfWaitingAmongFive, IsNotBeforeTheDeadline) {
    alice.contended().set("r", true);
    EXPECT_THAT(time_of([&] { (void)lock(alice).acquire_for(200ms); }), IsBetween(180ms, 205ms));
}

TEST_F(EndOfWaitingForOthers, LastsAsLongAsThePausesOfItsAttempts) {
    expect_refusal_after(300ms, {.attempts = 4, .delay = 100ms});
}

TEST_F(EndOfWaitingForOthers, ComesAtTheTimeoutOfTheQueueWithAnyNumberOfAttempts) {
    for (const int attempts : {1, 4, 1000}) {
        SCOPED_TRACE(attempts);
        expect_refusal_after(700ms, {.attempts = attempts, .delay = 100ms}, {.queue_timeout = 700ms});
    }
}

// The pauses would be longer than the time in the queue.
TEST_F(EndOfWaitingForOthers, LastsForTheTimeoutOfTheQueueIfNoNodeKeepsOne) {
    for (std::size_t node = 0; node < size; ++node) forbid(node, {"SUBSCRIBE"});
    expect_refusal_after(700ms, {.delay = 10s}, {.queue_timeout = 700ms});
}

TEST_F(EndOfWaiting, LastsLongerThanTheTimeoutOfTheQueueForDeadlinesAndMutexes) {
    bob_holds_for(2s, {.ttl = 20s});
    auto mine = lock(alice, {.attempts = 2}, {.queue_timeout = 10ms});
    EXPECT_TRUE(mine.acquire_for(5s));
    (void)mine.release();
    bob_holds_for(2s, {.ttl = 20s});
    mine.lock();
    EXPECT_TRUE(mine.valid());
}

TEST_F(EndOfWaitingForOthers, DoesNotBeginWithATimeoutOfZero) {
    auto mine = lock(alice, {.attempts = 3, .delay = 100ms}, {.queue_timeout = 0ms});
    const auto result = mine.acquire();
    EXPECT_EQ(result.error(), Errc::held_by_other);
    EXPECT_EQ(result.attempts(), 3);
    EXPECT_FALSE(result.place());
    EXPECT_TRUE(all(0, "enter").empty());
}

// ---- What others are known to wait for

TEST_F(EndOfWaiting, IsKnownFromARefusal) {
    bob_holds_for(100ms);
    EXPECT_FALSE(alice.contended().contains("r"));
    auto mine = lock(alice);
    ASSERT_TRUE(mine.acquire_for(1s));
    EXPECT_TRUE(alice.contended().contains("r"));
    (void)mine.release();
    EXPECT_FALSE(alice.contended().contains("r")) << "its release has woken nobody";
}

TEST_F(EndOfWaiting, IsKnownFromAReleaseThatWokeAnother) {
    bob_holds_for(100ms);
    auto mine = lock(alice);
    ASSERT_TRUE(mine.acquire_for(1s));
    EXPECT_TRUE(bob.contended().contains("r"));
    forget_log();
    after(10ms, [&] { (void)mine.release(); });
    EXPECT_TRUE(bobs->acquire_for(1s));
    EXPECT_EQ(verbs(0).front(), "SUBSCRIBE") << "who has just let go queues behind those that wait";
    EXPECT_THAT(all(1, "SET"), SizeIs(1));
}

// The client queues behind the one that this release has woken.
TEST_F(EndOfWaiting, IsKnownFromTheReleaseOfAnEarlierAcquisition) {
    auto mine = lock(alice, {}, {.ttl = 1s, .drift_factor = 0.5});
    ASSERT_TRUE(mine.acquire());
    after(600ms, [&] {
        forget_log();
        (void)mine.acquire_for(20ms);
    });
    auto theirs = lock(bob);
    EXPECT_TRUE(theirs.acquire_for(2s));
    EXPECT_EQ(verbs(0).at(1), "SUBSCRIBE") << "behind the release";
}

// It may be the home.
TEST_F(EndOfWaiting, IsNotForgottenIfANodeDoesNotAnswer) {
    auto mine = lock(alice);
    ASSERT_TRUE(mine.acquire());
    alice.contended().set("r", true);
    network.server(0).paused = true;
    (void)mine.release();
    EXPECT_TRUE(alice.contended().contains("r"));
}

// Its reply does not say whether the release has woken a waiter.
TEST_F(EndOfWaiting, IsNotForgottenIfTheKeyHasAnotherTypeOnANode) {
    auto mine = lock(alice);
    ASSERT_TRUE(mine.acquire());
    alice.contended().set("r", true);
    ask(0, {"DEL", "r"});
    ask(0, {"RPUSH", "r", "x"});
    const auto result = mine.release();
    EXPECT_TRUE(result);
    EXPECT_EQ(result.nodes()[0].cause, Errc::wrong_type);
    EXPECT_NE(result.nodes()[0].detail, "");
    EXPECT_TRUE(alice.contended().contains("r"));
}

// Such a release wakes nobody, and does not learn whether others wait.
TEST_F(EndOfWaiting, IsNotForgottenByAReleaseWithoutAQueue) {
    for (const LockOptions& options : {LockOptions{}, LockOptions{.fair = true, .min_hold = 1s}}) {
        Lock mine{alice, "r", options, network.clock(), entropy};
        ASSERT_TRUE(mine.try_acquire());
        alice.contended().set("r", true);
        ASSERT_TRUE(mine.release());
        EXPECT_TRUE(alice.contended().contains("r")) << (options.fair ? "with min_hold" : "not fair");
        network.pass(2s);
    }
}

TEST_F(EndOfWaiting, IsForgottenAlthoughANodeWasNotAsked) {
    network.server(2).refuses = true;
    auto mine = lock(alice);
    ASSERT_TRUE(mine.acquire());
    alice.contended().set("r", true);
    ASSERT_TRUE(mine.release());
    EXPECT_FALSE(alice.contended().contains("r"));
}

TEST_F(EndOfWaiting, IsFoundWithAnEmptyQueueIfNobodyElseWaits) {
    alice.contended().set("r", true);
    auto mine = lock(alice);
    EXPECT_TRUE(mine.acquire_for(1s));
    EXPECT_THAT(verbs(0), ElementsAre("SUBSCRIBE", "enter", "leave and set"));
}

// ---- The release

// The waiter that the home wakes is to find the others free.
TEST_F(EndOfWaiting, ComesWithAReleaseThatIsSentToTheHomeNodeLast) {
    bob_holds_for(0ms);
    network.pass(1ms);
    const auto at = [&](std::size_t node) { return all(node, "wake").front().number; };
    EXPECT_GT(at(0), at(1));
    EXPECT_GT(at(0), at(2));
}

// The second form of the release, with the whole script, must use the queue like the first.
TEST_F(EndOfWaiting, ComesWithAReleaseWhoseScriptIsForgotten) {
    {
        auto earlier = lock(bob);  // from now on, bob names the script by its digest
        ASSERT_TRUE(earlier.acquire());
        (void)earlier.release();
    }
    bob_holds_for(100ms);
    after(90ms, [&] {
        for (std::size_t node = 0; node < size; ++node) {
            auto& redis = *network.server(node).redis;
            redis.restart(redis.run_id(), redis.keys());
        }
    });
    auto mine = lock(alice, {.delay = 10s});
    EXPECT_LE(time_of([&] { EXPECT_TRUE(mine.acquire_for(10s)); }), 120ms);
    EXPECT_THAT(all(0, "wake"), SizeIs(2)) << "by its digest and in full";
}

TEST_F(EndOfWaiting, ComesForOneWaiterWithARepeatedRelease) {
    for (const auto& resources : {Words{"r"}, Words{"r", "s"}}) {
        WaitingWorld another;
        auto& servers = another.network;
        Lock its{another.client(), resources, {.fair = true}, servers.clock(), another.entropy};
        ASSERT_TRUE(its.acquire());
        for (const std::size_t node : {1U, 2U}) servers.server(node).paused = true;
        EXPECT_EQ(its.release().error(), Errc::no_quorum);
        EXPECT_THAT(another.arguments(0, "wake", 6), ElementsAre("1"));
        (void)its.release();
        EXPECT_THAT(another.arguments(0, "wake", 6), ElementsAre("1", ""));
        EXPECT_EQ(servers.server(0).redis->keys().size(), 0U);
    }
}

TEST_F(EndOfWaiting, ComesForOneWaiterWithAReleaseOverTwoConnections) {
    bob_holds_for(1h);
    network.server(0).instead = "+OK\r\n";
    (void)bobs->release();
    EXPECT_THAT(arguments(0, "wake", 6), ElementsAre("1", ""));
}

// A NAT forgets the connections of the holder, and swallows its release. The ttl is much longer.
TEST_F(EndOfWaiting, ComesSoonAfterAReleaseOverConnectionsThatAreForgotten) {
    bobs.emplace(lock(bob, {.delay = 100ms}, {.ttl = 1min}));
    ASSERT_TRUE(bobs->acquire());
    network.pass(20s);
    for (std::size_t node = 0; node < size; ++node) network.server(node).forget_connections();
    after(5s, [this] { EXPECT_EQ(bobs->release().error(), Errc::no_quorum); });
    auto mine = lock(alice);
    EXPECT_LE(time_of([&] { EXPECT_TRUE(mine.acquire_for(1min)); }), 6s);
}

// ---- Users that may not

TEST_F(EndOfWaiting, IsAPlainRetryWithoutPermissionToListen) {
    for (std::size_t node = 0; node < 3; ++node) forbid(node, {"SUBSCRIBE"});
    bob_holds_for(300ms);
    auto mine = lock(alice);
    EXPECT_TRUE(mine.acquire_for(1s));
    for (std::size_t node = 0; node < 3; ++node)
        EXPECT_THAT(all(node, "SUBSCRIBE"), SizeIs(1)) << "not again";
    EXPECT_THAT(verbs(0), Not(Contains("enter")));
    (void)mine.release();
    network.pass(50s);
    bob_holds_for(50ms);
    EXPECT_TRUE(mine.acquire_for(1s));
    EXPECT_THAT(all(0, "SUBSCRIBE"), IsEmpty()) << "nor for a minute";
}

TEST_F(EndOfWaiting, IsAPlainRetryWithoutPermissionToEnterTheQueue) {
    for (std::size_t node = 0; node < 3; ++node) forbid(node, {"enter"});
    bob_holds_for(300ms);
    auto mine = lock(alice);
    EXPECT_TRUE(mine.acquire_for(1s));
    for (std::size_t node = 0; node < 3; ++node) EXPECT_THAT(all(node, "enter"), SizeIs(1));
    network.pass(1min);
    (void)mine.release();
    bob_holds_for(50ms);
    EXPECT_TRUE(mine.acquire_for(1s));
    EXPECT_THAT(all(0, "enter"), SizeIs(1)) << "a minute later it may be allowed";
}

TEST_F(EndOfWaiting, ContinuesAtTheNodeThatAllowsAQueue) {
    forbid(0, {"enter"});
    bob_holds_for(100ms);
    const auto result = lock(alice, {.delay = 10s}).acquire_for(1s);
    EXPECT_TRUE(result);
    EXPECT_THAT(verbs(1), Contains("leave and set"));
    EXPECT_THAT(result.queue_refusals(), IsEmpty()) << "one node that keeps no queue is not worth a report";
}

TEST_F(EndOfWaiting, ContinuesAtAnotherNodeAfterAnInvalidReply) {
    bob_holds_for(100ms);
    network.server(0).answers["enter"] = "+WAITING soon\r\n";
    auto mine = lock(alice, {.delay = 10s});
    EXPECT_TRUE(mine.acquire_for(1s));
    EXPECT_THAT(all(1, "enter"), SizeIs(1));
}

TEST_F(EndOfWaitingForOthers, ReportsWhyThereIsNoQueue) {
    forbid(0, {"enter"});
    network.server(1).answers["SUBSCRIBE"] = "-NOPERM no\tchannel\r\n";
    forbid(2, {"enter"});
    auto mine = lock(alice);
    for (int i = 0; i < 2; ++i) {  // also while the nodes are left alone for a minute
        const auto result = mine.acquire_for(300ms);
        ASSERT_THAT(result.queue_refusals(), SizeIs(3)) << i;
        EXPECT_EQ(result.queue_refusals()[0].name, "n0");
        EXPECT_EQ(result.queue_refusals()[0].cause, Errc::permission_denied);
        EXPECT_EQ(result.queue_refusals()[1].detail, "NOPERM no?channel");
        EXPECT_THAT(result.message(), HasSubstr("; no queue: n1 "));
        EXPECT_THAT(result.message(), HasSubstr("NOPERM no?channel"));
    }
}

TEST_F(EndOfWaitingForOthers, DoesNotReportNodesWithoutAQueueAfterAWait) {
    for (std::size_t node = 0; node < size; ++node) forbid(node, {"SUBSCRIBE"});
    after(30s, [&] {
        for (std::size_t node = 0; node < size; ++node) network.server(node).answers.clear();
    });
    const auto result = lock(alice).acquire_for(70s);
    EXPECT_THAT(all(0, "enter"), Not(IsEmpty()));
    EXPECT_THAT(result.queue_refusals(), IsEmpty());
}

// A missing permission costs the waiters their message, never the release.
// What stands under the queue's name of one resource is no reason to leave the home with the others.
TEST_F(EndOfWaitingForOthers, ContinuesAtAnotherNodeForOneResourceOnly) {
    ask(0, {"SET", "{r}:queue", "no queue"});
    EXPECT_FALSE(lock(alice).acquire_for(100ms));
    EXPECT_THAT(queued(1), IsEmpty());
    EXPECT_THAT(all(1, "enter"), Not(IsEmpty())) << "the next node is the home";
    for (std::size_t node = 0; node < size; ++node) ask(node, {"SET", "s", "other"});
    forget_log();
    Lock another{alice, "s", {.fair = true}, network.clock(), entropy};
    EXPECT_FALSE(another.acquire_for(100ms));
    EXPECT_THAT(all(0, "enter"), Not(IsEmpty()));
}

TEST_F(EndOfWaitingForOthers, ReportsThatNoNodeHasAQueueOfTheRightType) {
    for (std::size_t node = 0; node < size; ++node) ask(node, {"SET", "{r}:queue", "no queue"});
    const auto result = lock(alice).acquire_for(300ms);
    ASSERT_THAT(result.queue_refusals(), SizeIs(3));
    for (const auto& node : result.queue_refusals()) EXPECT_EQ(node.cause, Errc::wrong_type);
}

TEST_F(EndOfWaiting, DoesNotPreventAReleaseWithoutPublishPermission) {
    for (std::size_t node = 0; node < 3; ++node) forbid(node, {"wake"});
    bob_holds_for(1h);
    EXPECT_TRUE(bobs->release());
    EXPECT_THAT(verbs(0), ElementsAre("wake", "delete"));
    EXPECT_EQ(holder(0), "(nil)");
    ASSERT_TRUE(bobs->acquire());
    forget_log();
    EXPECT_TRUE(bobs->release());
    EXPECT_THAT(verbs(0), ElementsAre("delete")) << "the connection knows";
}

TEST_F(EndOfWaiting, DoesNotPreventAnAttemptThatMayNotLeaveTheQueue) {
    forbid(0, {"leave and set"});
    bob_holds_for(100ms);
    auto mine = lock(alice);
    const auto result = mine.acquire_for(1s);
    EXPECT_TRUE(result);
    EXPECT_THAT(verbs(0), Contains("leave and set"));
    EXPECT_EQ(verbs(0).back(), "SET");
}

// B5. The refusal comes when the round of the release is over.
TEST_F(EndOfWaiting, DoesNotPreventAReleaseThatIsRejectedLate) {
    bob_holds_for(1h);
    forbid(0, {"wake"});
    network.server(0).paused = true;
    EXPECT_TRUE(bobs->release());
    network.resume(0);
    EXPECT_NE(holder(0), "(nil)");
    for (int i = 0; i < 3; ++i) {
        Lock another{bob, "another", {}, network.clock(), entropy};
        (void)another.acquire();
        network.pass(20ms);
    }
    EXPECT_EQ(holder(0), "(nil)");
}

// ---- With the rest

struct WaitingInAQuarantine : Waiting {
    WaitingInAQuarantine() : Waiting(3, {.node_timeout = 50ms, .quarantine = 20s}) {
        for (std::size_t node = 0; node < 3; ++node)
            ask(node, {"SET", marker, network.server(node).redis->data() + "1"});
    }
    const std::string marker{detail::marker_key};
};

// It may have lost the key of a holder: that it has a reservation makes no vote of it.
TEST_F(WaitingInAQuarantine, DoesNotCountTheVoteOfTheHomeNode) {
    bob_holds_for(100ms);
    after(50ms, [&] { ask(0, {"DEL", marker}); });
    auto mine = lock(alice);
    const auto result = mine.acquire_for(1s);
    EXPECT_TRUE(result);
    EXPECT_EQ(result.nodes()[0].cause, Errc::quarantined);
}

// The other nodes get the script that knows nothing of queues, also when it has to be sent again as a whole.
TEST_F(WaitingInAQuarantine, LeavesOnlyTheQueueOfTheHomeNodeIfAScriptIsForgotten) {
    bob_holds_for(100ms);
    network.server(1).answers["EVALSHA"] = "-NOSCRIPT No matching script.\r\n";
    auto mine = lock(alice);
    EXPECT_TRUE(mine.acquire_for(1s));
    EXPECT_EQ(holder(1), mine.owner());
    EXPECT_THAT(verbs(1), Contains("set all"));
    EXPECT_THAT(verbs(1), Not(Contains("leave and set")));
}

/// Three nodes with a count each, of which the first is ahead of the others.
struct SecondRoundOfFencing : Waiting {
    SecondRoundOfFencing() {
        for (std::size_t node = 0; node < size; ++node) network.server(node).latency = 5ms;
        const auto ahead =
            std::chrono::duration_cast<std::chrono::microseconds>(now().time_since_epoch() + 1h);
        ask(0, {"SET", "{r}:fence", network.server(0).redis->data() + std::to_string(ahead.count())});
    }
    /// Two nodes hang from the second round on.
    void hang_when_raised() {
        for (const std::size_t node : {1U, 2U})
            network.server(node).before_command = [this, node](const Words& words) {
                if (verb_of(words) == "raise") network.server(node).latency = 1h;
            };
    }
};

TEST_F(SecondRoundOfFencing, UsesUpTheValidity) {
    hang_when_raised();
    auto mine = lock(alice, {.attempts = 1}, {.ttl = 60ms, .fencing = true});
    EXPECT_EQ(mine.acquire().error(), Errc::validity_exhausted) << "the caller has no deadline";
    EXPECT_FALSE(mine.valid());
}

TEST_F(SecondRoundOfFencing, EndsAtTheCallersDeadline) {
    hang_when_raised();
    auto mine = lock(alice, {.attempts = 1}, {.ttl = 10s, .fencing = true});
    const auto result = mine.acquire_for(75ms);
    EXPECT_EQ(result.error(), Errc::deadline) << result.message();
}

struct WaitingForACount : Waiting {
    WaitingForACount() : Waiting(1) {}
};

TEST_F(WaitingForACount, GetsALargerToken) {
    bob_holds_for(100ms, {.fencing = true});
    const auto token = bobs->fencing_token();
    auto mine = lock(alice, {}, {.fencing = true});
    EXPECT_TRUE(mine.acquire_for(1s));
    EXPECT_THAT(verbs(0), Contains("leave and count"));
    EXPECT_EQ(mine.fencing_token(), token + 1);
}

}  // namespace
}  // namespace redlock::test::waiting_end_test
