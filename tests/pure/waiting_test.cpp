// Waiting in the queue, step by step: real nodes, connections and rounds over servers in memory.
#include "waiting_world.hpp"

#include <redlock/algorithm/waiting.hpp>
#include <redlock/detail/renewer.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "lock/lease_state.hpp"

namespace redlock::test::waiting_test {
namespace {

struct WaitingForOthers : Waiting {
    WaitingForOthers() { others_hold(); }
};

// ---- The way of a waiter

// Who subscribed only then could miss the very message that is meant for it. The other nodes know of no
// queue.
TEST_F(Waiting, ListensBeforeItEntersTheQueueAndEndsWithTheRelease) {
    bob_holds_for(100ms);
    auto mine = lock(alice, {.delay = 10s});
    const auto took = time_of([&] { EXPECT_TRUE(mine.acquire_for(1s)); });
    EXPECT_LE(took, 110ms);
    EXPECT_TRUE(mine.valid());
    for (std::size_t node = 0; node < size; ++node) EXPECT_EQ(holder(node), mine.owner());
    EXPECT_THAT(queued(0), IsEmpty());
    EXPECT_THAT(verbs(0), ElementsAre("SET", "delete", "SUBSCRIBE", "enter", "wake", "leave and set"));
    EXPECT_THAT(verbs(1), ElementsAre("SET", "delete", "wake", "SET"));
    EXPECT_THAT(verbs(2), ElementsAre("wake", "SET"));
}

TEST_F(Waiting, KeepsTheQueueBesideTheResource) {
    others_hold();
    (void)lock(alice).acquire_for(100ms);
    const auto words = all(0, "enter").front().words;
    EXPECT_THAT((Words{words.begin() + 2, words.begin() + 5}), ElementsAre("2", "r", "{r}:queue"));
    EXPECT_EQ(argument(words, 2), "100") << "the reservation_ttl: two node_timeouts, and 100 ms at least";
    EXPECT_EQ(argument(words, 4), "5000");
}

// Step 1 of the page is that of the attempt: neither shorter nor longer for the time in the queue.
TEST_F(Waiting, CountsTheValidityFromTheAttempt) {
    bob_holds_for(8s);
    auto mine = lock(alice);
    const auto result = mine.acquire_for(9s);
    ASSERT_TRUE(result);
    EXPECT_THAT(result.validity(), IsBetween(10s - drift(10s, 0.01) - 5ms, 10s - drift(10s, 0.01)));
}

TEST_F(Waiting, EndsOnceTheListenerServesTheNextWaiter) {
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

// It was meant for a wait that is over.
TEST_F(Waiting, IgnoresAMessageFromBetweenTwoWaits) {
    bob_holds_for(100ms);
    auto mine = lock(alice);
    EXPECT_TRUE(mine.acquire_for(1s));
    const auto ticket = arguments(0, "enter", 1).front();
    (void)mine.release();
    EXPECT_EQ(network.server(0).publish(ticket.substr(0, ticket.find('|')), ticket, now()), 1U);
    network.pass(5ms);
    bob_holds_for(100ms);
    EXPECT_TRUE(mine.acquire_for(1s));
    EXPECT_THAT(all(0, "SUBSCRIBE"), IsEmpty()) << "it is the same listener";
    EXPECT_THAT(all(0, "wake"), SizeIs(1)) << "bob's release";
}

// Nothing tells that a connection was cut off on which nothing is ever sent.
TEST_F(Waiting, ReplacesAListenerThatWasIdleForLong) {
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

TEST_F(WaitingForOthers, IsNotUsedForASingleAttempt) {
    EXPECT_EQ(lock(alice).try_acquire().error(), Errc::held_by_other);
    EXPECT_EQ(lock(alice, {.attempts = 1}).acquire().error(), Errc::held_by_other);
    EXPECT_THAT(verbs(0), ElementsAre("SET", "delete", "SET", "delete"));
}

TEST_F(WaitingForOthers, IsNotUsedForSeveralResources) {
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
TEST_F(Waiting, OutlastsTheRemainingMinimumHoldTime) {
    bob_holds_for(100ms, {.min_hold = 400ms});
    auto mine = lock(alice, {.delay = 10s});
    EXPECT_THAT(time_of([&] { EXPECT_TRUE(mine.acquire_for(1s)); }), IsBetween(395ms, 410ms));
    EXPECT_THAT(verbs(0), Contains("rest"));
    EXPECT_THAT(verbs(0), Not(Contains("wake")));
}

// ---- How often it asks

TEST_F(WaitingForOthers, PollsAfterEachRetryPauseIfItIsFirstAndKeepsItsAge) {
    (void)lock(alice, {.delay = 40ms}).acquire_for(200ms);
    EXPECT_GE(intervals().size(), 4U);
    EXPECT_THAT(intervals(), Each(AllOf(Ge(20ms), Le(43ms))));
    const auto questions = all(0, "enter");
    for (const auto& it : questions) {
        const std::chrono::microseconds since{std::stoll(std::string{argument(it.words, 3)})};
        EXPECT_LE(it.when - since - (questions.front().when - 3ms), 1ms);
    }
}

TEST_F(Waiting, PollsWhenTheHolderHasDied) {
    for (std::size_t node = 0; node < 3; ++node) ask(node, {"SET", "r", "dead", "PX", "400"});
    auto mine = lock(alice, {.delay = 10s});
    EXPECT_THAT(time_of([&] { EXPECT_TRUE(mine.acquire_for(9s)); }), IsBetween(400ms, 410ms));
}

// ---- What ends it early, and what does not

TEST_F(WaitingForOthers, IgnoresAMessageForAnEarlierTicket) {
    auto mine = lock(alice, {.delay = 10s});
    (void)mine.acquire_for(10ms);
    forget_log();
    std::string stale;
    after(30ms, [&] {
        const auto ticket = queued(0).front();
        stale = ticket.substr(0, ticket.find('|')) + "|1";
        network.server(0).publish(ticket.substr(0, ticket.find('|')), stale, now());
    });
    after(90ms, [&] {
        // The home node has no such ticket in its queue. So it takes the ticket for that of a woken waiter
        // which gives up, and wakes the next waiter, which is this client.
        EXPECT_THAT(verbs(0), ElementsAre("enter", "wake", "leave and set", "delete", "enter"));
        EXPECT_THAT(arguments(0, "wake", 1), ElementsAre(stale))
            << "a reservation for the earlier ticket is of no use";
        EXPECT_THAT(arguments(0, "wake", 4), ElementsAre(stale));
    });
    (void)mine.acquire_for(100ms);
}

// The texts differ little from a ticket that this client has had.
TEST_F(WaitingForOthers, IgnoresForeignMessages) {
    after(30ms, [&] {
        const auto ticket = queued(0).front();
        const auto channel = ticket.substr(0, ticket.find('|'));
        for (const auto* const text :
             {"", "|", "|0", "|01", "|1x", "|2", "|-1", "1", "|99999999999999999999"})
            network.server(0).publish(channel, channel + text, now());
        network.server(0).publish(channel, "|1", now());
    });
    after(90ms, [&] { EXPECT_THAT(verbs(0), ElementsAre("SET", "delete", "SUBSCRIBE", "enter")); });
    (void)lock(alice, {.delay = 10s}).acquire_for(100ms);
}

// A stray key there must not hide that the others are free.
TEST_F(WaitingForOthers, MakesAnAttemptEachPollIntervalIfItIsFirst) {
    after(10ms, [&] {
        for (const std::size_t node : {1U, 2U}) ask(node, {"DEL", "r"});
    });
    auto mine = lock(alice, {.delay = 20ms});
    EXPECT_THAT(time_of([&] { EXPECT_TRUE(mine.acquire_for(9s)); }),
                IsBetween(algorithm::poll_interval, algorithm::poll_interval + 30ms));
    EXPECT_THAT(all(0, "leave and set"), IsEmpty());
    EXPECT_THAT(queued(0), IsEmpty()) << "it leaves the queue after an attempt that succeeds";
}

// Out of the queue, it would miss a release.
TEST_F(WaitingForOthers, KeepsItsPlaceDuringSuchAnAttempt) {
    auto mine = lock(alice, {.delay = 20ms});
    EXPECT_FALSE(mine.acquire_for(2 * algorithm::poll_interval));
    EXPECT_THAT(all(0, "SET"), SizeIs(3)) << "the first attempt, one that looks around, and the last";
    EXPECT_THAT(all(0, "enter"), SizeIs(Ge(2U)));
    EXPECT_THAT(all(0, "leave and set"), IsEmpty());
    EXPECT_THAT(queued(0), IsEmpty());
}

// Those in front may be unable to come.
TEST_F(WaitingForOthers, MakesAnAttemptAfterTwoPollIntervalsWithoutAHolder) {
    ask(0, {"ZADD", "{r}:queue", "1", "redlock:wake:z|1"});
    after(10ms, [&] {
        hold(0, "redlock:wake:z|1");
        for (const std::size_t node : {1U, 2U}) ask(node, {"DEL", "r"});
    });
    auto mine = lock(alice);
    EXPECT_THAT(time_of([&] { EXPECT_TRUE(mine.acquire_for(9s)); }),
                IsBetween(2 * algorithm::poll_interval, 4 * algorithm::poll_interval));
}

struct WaitingForAContestedHome : Waiting {
    /// Others hold the other nodes. The home's key is released at these instants, which wakes the waiter, and
    /// others have it again before the waiter asks next.
    void release_home_at(const std::vector<Clock::duration>& instants) {
        others_hold();
        network.server(0).before_command = [this](const Words& words) {
            if (verb_of(words) == "enter" && holder(0) == "(nil)") hold(0, "other");
        };
        for (const auto instant : instants) after(instant, [this] { release_at(0, "other"); });
    }
    std::size_t woken_attempts() { return all(0, "leave and set").size(); }
};

// What is reserved for it is kept from everybody else. Its pause only keeps it from taking what is free.
TEST_F(WaitingForOthers, MakesAnAttemptAtOnceIfWokenInItsPause) {
    network.server(1).latency = 10ms;
    after(50ms, [&] { release_at(0, "other"); });
    after(110ms, [&] {
        EXPECT_THAT(all(0, "leave and set"), SizeIs(2)) << "the second one took what was free";
        EXPECT_EQ(arguments(0, "enter", 5).back(), "0") << "this is the pause";
        hold(0, "other");
        release_at(0, "other");
    });
    after(115ms, [&] { EXPECT_THAT(all(0, "leave and set"), SizeIs(3)); });
    (void)lock(alice, {.delay = 200ms}).acquire_for(200ms);
}

TEST_F(WaitingForAContestedHome, MakesAnAttemptAtTheEndOfItsPauseIfWokenAgain) {
    network.server(1).latency = 10ms;
    release_home_at({50ms, 100ms, 140ms});
    after(150ms, [&] {
        EXPECT_EQ(woken_attempts(), 2U);
        EXPECT_THAT(holder(0), HasSubstr("redlock:wake:")) << "it is reserved for it meanwhile";
    });
    after(250ms, [&] { EXPECT_EQ(woken_attempts(), 3U); });
    (void)lock(alice, {.delay = 200ms}).acquire_for(300ms);
}

// What it took is to go to nobody else: who else wants it was refused elsewhere, too.
TEST_F(WaitingForOthers, WakesNobodyWithAFailedAttempt) {
    ask(0, {"ZADD", "{r}:queue", "9e15", "redlock:wake:z|1"});
    after(50ms, [&] { release_at(0, "other"); });
    after(75ms, [&] {
        EXPECT_THAT(verbs(0), Contains("leave and set"));
        EXPECT_THAT(verbs(0), Not(Contains("wake")));
    });
    (void)lock(alice, {.delay = 200ms}).acquire_for(100ms);
    for (const std::size_t node : {1U, 2U}) EXPECT_THAT(verbs(node), Not(Contains("wake")));
}

// ---- Another home

TEST_F(WaitingForOthers, MovesToTheNextNodeAtOnceIfItsConnectionEnds) {
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

// The waiters of a home node that has failed arrive at the next node in any order. A waiter that is the first
// there only because it has arrived first must not overtake the others.
TEST_F(WaitingForOthers, MakesNoAttemptBecauseItIsTheFirstToArriveAtANode) {
    const auto older_waits_at = [&](std::size_t node) {
        ask(node, {"ZADD", "{r}:queue", "1", "redlock:wake:z|1"});
    };
    older_waits_at(0);
    after(400ms, [&] {
        network.server(0).close_connections(now());
        network.server(0).refuses = true;
    });
    after(410ms, [&] {
        EXPECT_THAT(queued(1), SizeIs(1)) << "the younger waiter has arrived";
        older_waits_at(1);
    });
    (void)lock(alice, {.delay = 10s}).acquire_for(1s);
    EXPECT_THAT(all(1, "SET"), SizeIs(2)) << "the first attempt and the last";
}

TEST_F(WaitingForOthers, KeepsItsPlaceIfItsConnectionIsCut) {
    Words former;
    after(400ms, [&] {
        former = queued(0);
        network.server(0).close_connections(now());
    });
    after(410ms, [&] {
        EXPECT_THAT(queued(0), SizeIs(1)) << "and the former ticket is not left behind";
        EXPECT_NE(queued(0), former);
        EXPECT_THAT(queued(1), IsEmpty());
    });
    (void)lock(alice, {.delay = 10s}).acquire_for(500ms);
    ASSERT_THAT(former, SizeIs(1));
    EXPECT_GE(std::stoi(arguments(0, "enter", 3).back()), 390'000) << "it has kept its age";
}

TEST_F(WaitingForOthers, SendsAFormerTicketUntilTheHomeNodeHasAnswered) {
    after(400ms, [&] { network.server(0).close_connections(now()); });
    (void)lock(alice, {.delay = 20ms}).acquire_for(1s);
    const auto tickets = arguments(0, "enter", 1);
    const auto former = arguments(0, "enter", 6);
    const auto changed = std::ranges::find_if(former, [](const auto& it) { return !it.empty(); });
    ASSERT_NE(changed, former.end());
    EXPECT_EQ(*changed, tickets.front());
    EXPECT_GE(former.end() - changed, 3) << "there are further questions";
    EXPECT_THAT(std::vector(changed + 1, former.end()), Each(IsEmpty()));
}

TEST_F(Waiting, LeavesNoTicketBehindAfterManyCutConnections) {
    for (const auto interval : {7ms, 100ms, 300ms}) {
        WaitingWorld another;
        auto& carol = another.client();
        for (std::size_t node = 0; node < 3; ++node) another.hold(node, "other");
        std::size_t most = 0;
        for (int i = 1; i <= 300; ++i)
            another.after(i * interval, [&] {
                for (std::size_t node = 0; node < 3; ++node) {
                    most = std::max(most, another.queued(node).size());
                    another.network.server(node).close_connections(another.now());
                }
            });
        (void)another.lock(carol, {.delay = 10s}).acquire_for(301 * interval);
        EXPECT_EQ(most, 1U) << interval.count();
    }
}

// Each node cuts it off twice within a poll interval.
TEST_F(WaitingForOthers, ListensAgainSoonWhenAllNodesHaveCutItOff) {
    for (int i = 1; i <= 40; ++i)
        after(i * 5ms, [&] {
            for (std::size_t node = 0; node < size; ++node) network.server(node).close_connections(now());
        });
    after(300ms, [&] { forget_log(); });
    after(1s, [&] { EXPECT_THAT(all(0, "enter"), Not(IsEmpty())); });
    (void)lock(alice, {.delay = 1min}).acquire_for(1100ms);
}

// A server that accepts connections and ends them at once.
TEST_F(WaitingForOthers, DoesNotStayAtAHomeNodeThatEndsItsConnections) {
    network.server(0).before_command = [&](const Words& words) {
        if (verb_of(words) == "enter")
            network.clock().after(2ms, [&] { network.server(0).close_connections(now()); });
    };
    (void)lock(alice, {.delay = 10s}).acquire_for(2s);
    EXPECT_LE(all(0, "SUBSCRIBE").size(), 2s / algorithm::poll_interval + 1U);
}

// Its vote was unknown, so that the attempt has not told it whether the waiter still waits there.
TEST_F(WaitingForOthers, LeavesAHomeNodeThatFailedInItsAttempt) {
    network.server(0).refuses_command = [asked = 0](const Words& words) mutable {
        const bool look = words.front() == "SET" && ++asked == 2;
        return std::string{look ? "-OOM command not allowed\r\n" : ""};
    };
    after(2 * algorithm::poll_interval, [&] {
        EXPECT_THAT(queued(0), IsEmpty()) << "it has left the first queue";
        EXPECT_EQ(verbs(0).back(), "wake") << "and what may be reserved for it there goes to the next";
        EXPECT_THAT(queued(1), SizeIs(1)) << "and waits in the next one";
    });
    (void)lock(alice, {.delay = 20ms}).acquire_for(2 * algorithm::poll_interval + 20ms);
    EXPECT_THAT(all(1, "enter"), Not(IsEmpty()));
}

// A release would take it for a waiter that hears the message, while it makes a pause.
TEST_F(Waiting, DisconnectsIfTheHomeNodeMayHaveMissedItsDequeue) {
    bob_holds_for(100ms);
    std::string channel;
    for (std::size_t node = 0; node < size; ++node) {
        for (const auto* const kind : {"leave and set", "SET"})
            network.server(node).answers[kind] = "-OOM command not allowed\r\n";
        network.server(node).before_command = [&](const Words& words) {
            if (verb_of(words) == "leave and set")
                channel = argument(words, 4).substr(0, argument(words, 4).find('|'));
        };
    }
    after(50ms, [&] { EXPECT_THAT(queued(0), SizeIs(1)); });
    after(150ms, [&] {
        ASSERT_FALSE(channel.empty()) << "the attempt was made";
        EXPECT_EQ(network.server(0).publish(channel, "redlock:wake:x|1", now()), 0U);
    });
    alice.contended().set("r", true);
    (void)lock(alice, {.delay = 400ms}).acquire_for(200ms);
}

struct WaitingAllAtOnce : Waiting {
    WaitingAllAtOnce() : Waiting(3, {.node_timeout = 50ms, .round = Round::all_at_once}) {}
};

// Its reply was not needed, but it has the command.
TEST_F(WaitingAllAtOnce, ContinuesAtAHomeNodeWhoseReplyWasNotAwaited) {
    bob_holds_for(100ms);
    after(50ms, [&] {
        for (const std::size_t node : {1U, 2U})
            network.server(node).before_command = [this, node](const Words& words) {
                if (words.front() == "SET") hold(node, "other");  // somebody was faster
            };
    });
    after(99ms, [&] { network.server(0).latency = 10ms; });
    (void)lock(alice, {.delay = 10s}).acquire_for(300ms);
    EXPECT_THAT(verbs(0), Contains("leave and set"));
    EXPECT_THAT(all(0, "SUBSCRIBE"), SizeIs(1));
    EXPECT_THAT(all(1, "enter"), IsEmpty());
}

// Otherwise each acquire() of this process would try in vain to listen there.
TEST_F(WaitingForOthers, LeavesANodeAloneWhereItCannotConnectToListen) {
    (void)lock(alice).try_acquire();  // makes the connections for attempts
    network.server(0).refuses = true;
    after(6ms, [&] {
        EXPECT_THAT(all(1, "SUBSCRIBE"), Not(IsEmpty())) << "it could not listen at the first node";
        const std::vector<std::string> resource{"r"};
        const auto tally = alice.ask({.command = {.verb = Verb::query, .resources = resource}});
        EXPECT_EQ(tally[0].cause, Errc::backing_off);
        EXPECT_EQ(tally[1].vote, Vote::granted);
    });
    (void)lock(alice).acquire_for(20ms);
}

/// The home node does not know the subscription any more, although the connection is not closed. For example,
/// the node is another server since a failover, or it was reset, and the network says nothing of that.
struct WaitingUnheard : Waiting {
    WaitingUnheard() {
        for (std::size_t node = 0; node < size; ++node) network.server(node).counts_listeners = true;
    }
    void forget_subscriptions() {
        for (std::size_t node = 0; node < size; ++node) network.server(node).forget_subscriptions();
    }
    /// Expects that the release wakes Alice at the first node.
    void expect_to_be_woken(Clock::duration limit) {
        auto mine = lock(alice, {.delay = 10s});
        EXPECT_LE(time_of([&] { EXPECT_TRUE(mine.acquire_for(2s)); }), limit);
        EXPECT_THAT(verbs(0), Contains("leave and set"));
        EXPECT_THAT(all(1, "enter"), IsEmpty()) << "it stays at its home node";
        (void)mine.release();
    }
};

TEST_F(WaitingUnheard, SubscribesAnewIfThatHappenedBetweenTwoWaits) {
    bob_holds_for(100ms);
    expect_to_be_woken(110ms);
    forget_subscriptions();
    bob_holds_for(100ms);
    expect_to_be_woken(110ms);
    EXPECT_THAT(all(0, "SUBSCRIBE"), SizeIs(1));
}

TEST_F(WaitingUnheard, SubscribesAnewIfThatHappensDuringTheWait) {
    bob_holds_for(1s);
    after(100ms, [&] { forget_subscriptions(); });
    expect_to_be_woken(1010ms);
    EXPECT_THAT(all(0, "SUBSCRIBE"), SizeIs(2));
}

TEST_F(WaitingUnheard, DropsTheConnectionsOfOtherWaitersAsWell) {
    others_hold();
    {
        std::vector<std::unique_ptr<Waiter>> waiters;
        const RoundLimits limits{.deadline = now() + 10s};
        for (int i = 0; i < 3; ++i) {
            waiters.push_back(alice.waiter());
            EXPECT_TRUE(waiters.back()->listen(NodeSet{}.set(), limits));
        }
    }
    forget_subscriptions();
    forget_log();
    EXPECT_FALSE(lock(alice).acquire_for(100ms));
    EXPECT_THAT(all(0, "SUBSCRIBE"), SizeIs(1));
    EXPECT_THAT(queued(0), IsEmpty());
    EXPECT_THAT(all(1, "enter"), IsEmpty());
}

// Commands and subscriptions reach different servers.
TEST_F(WaitingUnheard, GoesToAnotherNodeIfThatHappensAgain) {
    others_hold();
    auto& home = network.server(0);
    home.before_command = [&](const Words& words) {
        if (verb_of(words) == "enter") home.forget_subscriptions();
    };
    EXPECT_FALSE(lock(alice).acquire_for(1s));
    EXPECT_THAT(all(0, "enter"), SizeIs(2));
    EXPECT_THAT(all(1, "enter"), SizeIs(Ge(3U)));
}

// It is left alone as long as any node that failed, and not as a node that keeps no queue.
TEST_F(WaitingForOthers, ReturnsToAHomeNodeThatOnceDidNotAnswer) {
    auto& home = network.server(0);
    home.before_command = [&](const Words& words) { home.paused = home.paused || verb_of(words) == "enter"; };
    EXPECT_FALSE(lock(alice).acquire_for(300ms));
    EXPECT_THAT(all(1, "enter"), Not(IsEmpty()));
    home.before_command = {};
    network.resume(0);
    network.pass(2s);
    EXPECT_FALSE(lock(alice).try_acquire());
    forget_log();
    EXPECT_FALSE(lock(alice).acquire_for(300ms));
    EXPECT_THAT(all(0, "enter"), Not(IsEmpty()));
    EXPECT_THAT(all(1, "enter"), IsEmpty());
}

// A probe can take node_timeout in vain, so only a waiter that has another home node makes one.
TEST_F(WaitingForOthers, WithoutAHomeNodeDoesNotProbe) {
    network.server(0).paused = true;
    EXPECT_FALSE(lock(alice).acquire_for(300ms));
    network.server(0).paused = false;
    network.server(0).unreachable = true;
    network.pass(2s);
    const RoundLimits limits{.deadline = now() + 10s};
    const auto waiter = alice.waiter();
    EXPECT_LE(time_of([&] { EXPECT_TRUE(waiter->listen(NodeSet{}.set(), limits)); }), 5ms);
    EXPECT_EQ(waiter->home(), 1U);
    network.server(0).unreachable = false;
    network.pass(2s);
    EXPECT_TRUE(waiter->listen(NodeSet{}.set(), limits));
    EXPECT_EQ(waiter->home(), 0U);
    const auto next = alice.waiter();
    EXPECT_TRUE(next->listen(NodeSet{}.set(), limits));
    EXPECT_EQ(next->home(), 0U) << "the node is trusted again";
}

TEST_F(Waiting, UsesASubscriptionThatIsConfirmedWhileTheProcessIsSuspended) {
    network.server(0).before_command = [this](const Words& words) {
        if (words.front() == "SUBSCRIBE") network.clock().after(0ms, [this] { network.pass(100ms); });
    };
    const RoundLimits limits{.deadline = now() + 10s};
    const auto waiter = alice.waiter();
    EXPECT_TRUE(waiter->listen(NodeSet{}.set(), limits));
    EXPECT_EQ(waiter->home(), 0U);
}

/// The home fails once while a client waits there or begins to. Then it is well again.
struct WaitingElsewhere : WaitingForOthers {
    /// The home's answer to the first command of this kind comes after node_timeout.
    void home_is_late_once(const std::string& verb) {
        network.server(0).before_command = [this, verb](const Words& words) {
            if (verb_of(words) != verb) return;
            network.server(0).latency = 100ms;
            after(0ms, [this] {
                network.server(0).before_command = {};
                network.server(0).latency = 1ms;
            });
        };
    }
    void home_refuses_once(const std::string& verb) {
        network.server(0).refuses_command = [verb, refused = false](const Words& words) mutable {
            const bool now = verb_of(words) == verb && !std::exchange(refused, true);
            return std::string{now ? "-NOPERM No permissions to access a channel\r\n" : ""};
        };
    }
    /// Waits in one acquire(), and expects the waiter at the second node first and then at the home.
    void expect_at_home_after(Clock::duration span) {
        after(2s, [&] { EXPECT_THAT(queued(1), SizeIs(1)) << "or this test shows nothing"; });
        after(span, [&] {
            EXPECT_THAT(queued(0), SizeIs(1));
            EXPECT_THAT(queued(1), IsEmpty());
        });
        (void)lock(alice).acquire_for(span + 1s);
        ASSERT_THAT(all(0, "enter"), Not(IsEmpty()));
        EXPECT_GE(std::stoll(arguments(0, "enter", 3).back()), 2'000'000) << "it has kept its age";
    }
};

TEST_F(WaitingElsewhere, ComesBackAfterALateSubscription) {
    home_is_late_once("SUBSCRIBE");
    expect_at_home_after(20s);
}

TEST_F(WaitingElsewhere, ComesBackAfterALateQuestion) {
    home_is_late_once("enter");
    expect_at_home_after(20s);
}

// The connections for attempts exist, so the home refuses only the listener.
TEST_F(WaitingElsewhere, ComesBackAfterTheHomeHadTooManyClients) {
    (void)lock(alice).try_acquire();
    network.server(0).last_words = too_many_clients;
    after(1s, [&] { network.server(0).last_words = ""; });
    expect_at_home_after(20s);
}

/// The nodes accept no new connection. Those that Alice has go on working.
struct WaitingAtFullNodes : Waiting {
    WaitingAtFullNodes() {
        EXPECT_TRUE(held.acquire());
        others_hold();
        for (std::size_t node = 0; node < size; ++node) network.server(node).last_words = too_many_clients;
    }
    Lock held{alice, "held", {.ttl = 10s}, network.clock(), entropy};
};

TEST_F(WaitingAtFullNodes, DoesNotKeepOtherLocksFromBeingExtended) {
    EXPECT_FALSE(lock(alice).acquire_for(1s));
    EXPECT_TRUE(held.extend());
}

TEST_F(WaitingAtFullNodes, GoesOnWithoutAQueue) {
    after(500ms, [&] {
        for (std::size_t node = 0; node < size; ++node) ask(node, {"DEL", "r"});
    });
    EXPECT_TRUE(lock(alice, {.delay = 20ms}).acquire_for(1s));
}

TEST_F(WaitingElsewhere, ComesBackAMinuteAfterARefusedSubscription) {
    home_refuses_once("SUBSCRIBE");
    expect_at_home_after(80s);
}

TEST_F(WaitingElsewhere, ComesBackAMinuteAfterARefusedQuestion) {
    home_refuses_once("enter");
    expect_at_home_after(80s);
}

TEST_F(WaitingElsewhere, ComesBackAMinuteAfterTheQueuesKeyHeldSomethingElse) {
    ask(0, {"SET", "{r}:queue", "no queue"});
    after(3s, [&] { ask(0, {"DEL", "{r}:queue"}); });
    expect_at_home_after(80s);
}

TEST_F(WaitingElsewhere, ComesBackAfterTwoCutsInARow) {
    for (const auto instant : {400ms, 410ms})
        after(instant, [&] { network.server(0).close_connections(now()); });
    expect_at_home_after(20s);
}

// No single wait is long enough to come back.
TEST_F(WaitingElsewhere, ListensAtTheHomeInALaterAcquisition) {
    home_is_late_once("SUBSCRIBE");
    EXPECT_FALSE(lock(alice).acquire_for(300ms));
    EXPECT_THAT(all(1, "enter"), Not(IsEmpty()));
    for (std::size_t node = 0; node < size; ++node) ask(node, {"DEL", "r"});
    for (int i = 0; i < 10; ++i) {
        forget_log();
        bob_holds_for(100ms);
        auto mine = lock(alice);
        EXPECT_TRUE(mine.acquire_for(1s));
        (void)mine.release();
    }
    EXPECT_THAT(all(0, "enter"), Not(IsEmpty()));
    EXPECT_THAT(all(1, "enter"), IsEmpty());
}

// The home votes, but does not let the client subscribe.
TEST_F(WaitingElsewhere, KeepsItsPlaceWhileTheHomeStaysSilent) {
    network.server(0).before_command = [this](const Words& words) {
        network.server(0).latency = words.front() == "SUBSCRIBE" ? 1h : 1ms;
    };
    std::vector<std::string> ticket;
    after(1s, [&] { ticket = queued(1); });
    after(59s, [&] { EXPECT_EQ(queued(1), ticket); });
    (void)lock(alice).acquire_for(1min);
    EXPECT_THAT(ticket, SizeIs(1));
    EXPECT_THAT(all(1, "SUBSCRIBE"), SizeIs(1));
    EXPECT_LE(all(0, "SUBSCRIBE").size(), 13U) << "one in five seconds";
    EXPECT_GE(all(0, "SUBSCRIBE").size(), 5U) << "it tries again";
}

// A release that wakes the waiter meanwhile is not lost.
TEST_F(WaitingElsewhere, HearsAMessageThatComesWhileItTriesTheHome) {
    auto& home = network.server(0);
    home.before_command = [&, tried = 0](const Words& words) mutable {
        home.latency = words.front() == "SUBSCRIBE" ? 1h : 1ms;
        if (words.front() == "SUBSCRIBE" && ++tried == 2)
            after(10ms, [this] {
                for (std::size_t node = 0; node < size; ++node) release_at(node, "other");
            });
    };
    auto mine = lock(alice, {.delay = 10s});
    EXPECT_LE(time_of([&] { EXPECT_TRUE(mine.acquire_for(1min)); }), 10s);
    EXPECT_THAT(verbs(1), Contains("leave and set")) << "the wake-up";
}

/// The rounds of each client share connections. Its listeners do not.
struct WaitingWhileRoundsShare : testing::Test, WaitingWorld {
    WaitingWhileRoundsShare() : WaitingWorld(1, {.node_timeout = 50ms}, 0) {}

    MemoryNodes& alice = client();
    MemoryNodes& bob = client();
};

// The only node refuses one subscription, and all rounds after the outage use other connections than the
// listener.
TEST_F(WaitingWhileRoundsShare, ListensAgainAfterAnOutage) {
    auto bobs = lock(bob);
    ASSERT_TRUE(bobs.acquire());
    auto& server = network.server(0);
    const auto up_again = now() + 1200ms;
    after(1s, [&] {
        server.refuses = true;
        server.close_connections(now());
    });
    after(1200ms, [&] { server.refuses = false; });
    after(5s, [&] { EXPECT_TRUE(bobs.release()); });
    EXPECT_TRUE(lock(alice, {.delay = 100ms}).acquire_for(10s));
    const auto questions = all(0, "enter");
    ASSERT_THAT(questions, SizeIs(Ge(2U)));
    EXPECT_GT(questions.back().when, up_again);
    EXPECT_THAT(all(0, "leave and set"), SizeIs(1)) << "the message wakes the waiter";
}

TEST_F(WaitingForOthers, MovesToTheNextNodeIfItGetsNoReply) {
    after(100ms, [&] { network.server(0).paused = true; });
    (void)lock(alice, {.delay = 20ms}).acquire_for(400ms);
    const auto questions = all(1, "enter");
    ASSERT_FALSE(questions.empty());
    const auto waited = std::stoi(std::string{argument(questions.front().words, 3)});
    EXPECT_THAT(waited, IsBetween(150'000, 200'000)) << "a node_timeout, and a question";
}

// on_lost may destroy the lock, and then the nodes, in the thread of the watchdog (lock.hpp). The waiter,
// which uses the nodes, must not outlive the hand-over to the watchdog. The test shows a fault with
// AddressSanitizer, or ends in a crash.
TEST_F(Waiting, HasEndedWhenTheWatchdogTakesOver) {
    bob_holds_for(300ms);
    /// A watchdog whose thread runs while the caller of add() is suspended.
    struct QuickWatchdog final : detail::Renewer {
        explicit QuickWatchdog(MemoryNetwork& its_network)
            : Renewer(its_network.clock()), memory(its_network) {}
        void add(detail::Acquisition acquisition) override {
            memory.pass(1min);
            acquisition.state->report_loss(acquisition.number);
        }
        MemoryNetwork& memory;
    } watchdog{network};
    std::optional<Lock> mine;
    bool destroyed = false;
    const LockOptions options{
        .ttl = 10s, .queue_timeout = 10s, .watchdog = &watchdog, .on_lost = [&](const Result&) {
            mine.reset();
            bobs.reset();
            destroy_clients();
            destroyed = true;
        }};
    mine.emplace(lock(alice, {.delay = 100ms}, options));
    (void)mine->acquire();
    EXPECT_TRUE(destroyed);
}

}  // namespace
}  // namespace redlock::test::waiting_test
