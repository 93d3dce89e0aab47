// The waiters of an event loop over servers in memory: who has a turn, and how messages find the waiters.
#include "waiting_world.hpp"

#include "flow/place_in_queue.hpp"
#include "loop/listeners.hpp"
#include "loop/local_queues.hpp"
#include "loop/loop_waiter.hpp"

#include <deque>
#include <list>
#include <optional>
#include <string>
#include <vector>

namespace redlock::test::loop_waiter_test {
namespace {

using loop::LocalQueues;

class NoLoop final : public EventLoop {
public:
    void watch(int, bool, bool) override {}
    void forget(int) noexcept override {}
    void wake_after(std::chrono::nanoseconds) noexcept override {}
};

/// A task that only counts its calls.
struct Counter final : loop::Task {
    using Task::Task;
    void proceed() override { ++calls; }
    int calls = 0;
};

// ---- Turns

struct TurnsInALoop : testing::Test {
    struct Waiting {
        Waiting(loop::Scheduler& scheduler, LocalQueues& queues) : task(scheduler), place(queues) {}
        Counter task;
        LocalQueues::Place place;
    };

    bool join(Clock::duration since, const std::string& resource = "r") {
        auto& it = waiting.emplace_back(scheduler, queues);
        return it.place.take(it.task, resource, clock.now() + since);
    }
    bool has_turn(std::size_t i) { return waiting_at(i).place.take(waiting_at(i).task, "r", clock.now()); }
    Waiting& waiting_at(std::size_t i) { return *std::next(waiting.begin(), static_cast<std::ptrdiff_t>(i)); }
    void leave(std::size_t i) { waiting.erase(std::next(waiting.begin(), static_cast<std::ptrdiff_t>(i))); }

    NoLoop no_loop;
    ManualClock clock;
    loop::Scheduler scheduler{no_loop, clock};
    LocalQueues queues;
    std::list<Waiting> waiting;
};

TEST_F(TurnsInALoop, TheFirstFourOfEachResourceHaveOne) {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(join(i * 1ms));
    EXPECT_FALSE(join(4ms));
    EXPECT_TRUE(join(5ms, "another"));
}

TEST_F(TurnsInALoop, PassToTheOldestWaiter) {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(join(i * 1ms));
    EXPECT_FALSE(join(9ms));
    EXPECT_FALSE(join(8ms));
    scheduler.run();
    EXPECT_EQ(waiting_at(5).task.calls, 0);
    leave(0);
    scheduler.run();
    EXPECT_EQ(waiting_at(4).task.calls, 1) << "it is woken";
    EXPECT_TRUE(has_turn(4));
    EXPECT_FALSE(has_turn(3));
}

TEST_F(TurnsInALoop, AreGivenToOlderWaitersThatComeLater) {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(join(20ms + i * 1ms));
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(join(10ms - i * 1ms));
    EXPECT_FALSE(join(1ms)) << "eight have a turn";
    EXPECT_TRUE(has_turn(0)) << "it keeps its turn";
}

// Otherwise nobody would have a turn when eight waiters have left.
TEST_F(TurnsInALoop, PassFromOneWaiterToTheNextWithoutEnd) {
    for (int i = 0; i < 20; ++i) (void)join(i * 1ms);
    for (int left = 0; left < 16; ++left) {
        EXPECT_TRUE(has_turn(3)) << left << " have left";
        EXPECT_FALSE(has_turn(4)) << left << " have left";
        leave(0);
    }
}

TEST_F(TurnsInALoop, LetOthersKnowTheirPlace) {
    for (int i = 0; i < 6; ++i) (void)join(i * 1ms);
    EXPECT_FALSE(waiting_at(5).place.estimate());
    waiting_at(1).place.record({.held = QueuePlace::Held::by_holder, .in_front = 3});
    EXPECT_EQ(waiting_at(5).place.estimate()->in_front, 7U);
    EXPECT_EQ(waiting_at(0).place.estimate()->in_front, 3U);
}

TEST_F(TurnsInALoop, AttemptsWithoutOneAreRare) {
    for (int i = 0; i < 8; ++i) (void)join(i * 1ms);
    std::vector<milliseconds> attempts;
    std::vector<Clock::time_point> due(8, clock.now());
    const auto start = clock.now();
    for (; clock.now() < start + 200ms; clock.advance_to(clock.now() + 1ms))
        for (std::size_t i = 4; i < 8; ++i)
            if (waiting_at(i).place.may_attempt(clock.now(), due[i])) {
                attempts.push_back(std::chrono::duration_cast<milliseconds>(clock.now() - start));
                due[i] = Clock::never();
            }
    EXPECT_THAT(attempts, ElementsAre(1ms, 25ms, 50ms, 75ms));
}

TEST_F(TurnsInALoop, NoAttemptsAreMadeWithoutOneWhileTheQueueMoves) {
    for (int i = 0; i < 6; ++i) (void)join(i * 1ms);
    auto due = clock.now();
    EXPECT_FALSE(waiting_at(5).place.may_attempt(clock.now(), due));
    leave(0);
    EXPECT_FALSE(waiting_at(4).place.may_attempt(clock.now(), due));
    EXPECT_EQ(due, clock.now() + algorithm::poll_interval);
    clock.advance_to(due);
    EXPECT_TRUE(waiting_at(4).place.may_attempt(clock.now(), due));
}

TEST_F(TurnsInALoop, AWaiterThatLeavesWithoutOneDelaysNoAttempts) {
    for (int i = 0; i < 6; ++i) (void)join(i * 1ms);
    leave(5);
    auto due = clock.now();
    EXPECT_FALSE(waiting_at(4).place.may_attempt(clock.now(), due));
    EXPECT_EQ(due, clock.now());
}

// ---- The flow of a waiter without a turn

/// A waiter that fails the test if it is used.
class UnusedWaiter final : public Waiter {
public:
    bool listen(NodeSet, const RoundLimits&) override { return fail(); }
    std::size_t home() const noexcept override { return 0; }
    std::string new_ticket() override { return {}; }
    WakeUp sleep(Clock::time_point, const std::stop_token&) override { return {fail()}; }
    void disconnect(std::error_code, std::string_view) override {}
    void report_refusals(Tally&) const override {}

private:
    static bool fail() {
        ADD_FAILURE() << "without a turn";
        return false;
    }
};

class NodesOfALoop final : public Nodes {
public:
    NodesOfALoop() : Nodes({"a", "b", "c"}) {}
    using Nodes::ask;
    void ask(std::span<const Request>, const RoundLimits&, std::span<Tally>) override { ADD_FAILURE(); }
    std::unique_ptr<Waiter> waiter() override { return std::make_unique<UnusedWaiter>(); }
};

class WaiterWithoutATurn : public testing::Test {
protected:
    /// Its turn comes, and the home node tells it this place.
    void expect_to_wait_at_its_turn(const QueuePlace& told) {
        std::get<flow::AwaitedTurn>(operation.awaited()).turn->has_come = true;
        operation.resume();
        *std::get<flow::AwaitedListen>(operation.awaited()).listens = true;
        operation.resume();
        auto& votes = *std::get<flow::AwaitedRound>(operation.awaited()).tally;
        votes.refuse(0);
        votes[0].place = told;
        operation.resume();
        EXPECT_TRUE(std::holds_alternative<flow::AwaitedMessage>(operation.awaited()));
    }

    ManualClock clock{};
    SeededEntropy entropy{1};
    NodesOfALoop nodes{};
    const std::vector<std::string> resource{"r"};
    flow::BlockingOperation operation{nodes};
    flow::PlaceInQueue place{operation, clock, entropy, resource, 200ms, Clock::never(), {}};
};

TEST_F(WaiterWithoutATurn, AsksNobodyAndMakesAnAttemptInTime) {
    for (int attempts = 0; attempts < 5; ++attempts) {
        const auto start = clock.now();
        const auto flow = place.wait(start + 1min);
        operation.start(flow);
        const auto* const awaited = std::get_if<flow::AwaitedTurn>(&operation.awaited());
        ASSERT_TRUE(awaited);
        EXPECT_EQ(awaited->turn->limits->deadline, start + 1min);
        EXPECT_THAT(awaited->turn->attempt_due, IsBetween(start + 7s, start + 14s));
        clock.advance_to(awaited->turn->attempt_due);
        awaited->turn->place = QueuePlace{.in_front = 17};
        operation.resume();
        ASSERT_TRUE(operation.ended());
        EXPECT_EQ(place.wake(), flow::PlaceInQueue::Wake::attempt);
        EXPECT_EQ(place.terms(), nullptr) << "it has no ticket";
        EXPECT_EQ(place.last()->in_front, 17U);
        auto tally = nodes.blank_tally();
        for (std::size_t node = 0; node < nodes.size(); ++node) tally.refuse(node);
        place.attempted(Errc::held_by_other, tally, 1ms);
    }
}

// Older waiters have made attempts meanwhile. Otherwise a waiter that becomes the first in the queue would
// make one at once.
TEST_F(WaiterWithoutATurn, MakesNoAttemptAsSoonAsItsTurnComes) {
    const auto flow = place.wait(clock.now() + 1min);
    operation.start(flow);
    clock.advance_to(clock.now() + 8 * algorithm::poll_interval);
    expect_to_wait_at_its_turn({.held = QueuePlace::Held::by_holder, .in_front = 0});
}

// Meanwhile the waiters before it have seen the holder, and have made the attempts that were due.
TEST_F(WaiterWithoutATurn, CountsItsTimeFromItsTurnOn) {
    const auto flow = place.wait(Clock::never());
    operation.start(flow);
    clock.advance_to(clock.now() + 1min);
    expect_to_wait_at_its_turn({.held = QueuePlace::Held::by_waiter, .in_front = 3});
}

TEST_F(WaiterWithoutATurn, ItsWaitEndsAtTheLimit) {
    const auto flow = place.wait(clock.now() + 1s);
    operation.start(flow);
    clock.advance_to(clock.now() + 1s);
    operation.resume();
    EXPECT_TRUE(operation.ended());
    EXPECT_EQ(place.wake(), flow::PlaceInQueue::Wake::over);
}

// ---- Messages

/// Makes each round as far as possible at once.
class RoundsOfATest final : public loop::Rounds {
public:
    explicit RoundsOfATest(NodeGroup& group) : group_(group) {}

    std::unique_ptr<loop::RoundInSteps> begin(loop::Task&, std::span<const Request> requests,
                                              const RoundLimits& limits, std::span<Tally> tallies) override {
        for (const auto& report : tallies.front().reports()) EXPECT_NE(report.name, "") << "for an observer";
        return std::make_unique<Round>(group_, requests, limits, tallies);
    }

private:
    class Round final : public loop::RoundInSteps, RoundDriver::Maker {
    public:
        Round(NodeGroup& group, std::span<const Request> requests, const RoundLimits& limits,
              std::span<Tally> tallies)
            : round_(group, *this, requests, limits, tallies) {}
        std::optional<Clock::time_point> advance() override {
            const auto until = round_.advance();
            if (!until) round_.finish();
            return until;
        }

    private:
        void wake() noexcept override {}

        RoundDriver round_;
    };

    NodeGroup& group_;
};

struct WaitersOfALoop : testing::Test, WaitingWorld {
    struct Client {
        explicit Client(WaitersOfALoop& world)
            : task(world.scheduler),
              waiter(world.listeners, world.queues, world.group.listeners(), world.network.clock()) {
            turn.since = world.now();
            turn.attempt_due = Clock::never();
            EXPECT_TRUE(waiter.await_turn(task, turn));
        }
        const std::vector<std::string> resource{"r"};
        const RoundLimits limits{};
        flow::Turn turn{.resource = resource, .since = {}, .limits = &limits};
        Counter task;
        loop::LoopWaiter waiter;
    };

    /// Lets the loop make its turns for this time.
    void step(Clock::duration span = 5ms) {
        for (const auto end = now() + span; now() < end;) {
            network.pass(1ms);
            listeners.wake();
            scheduler.run();
            entries.clear();
            group.append_poll_entries(entries);
            for (auto& entry : entries) entry.ready = true;
            group.take_ready(entries, now());
            (void)group.write_collected(now());
        }
    }
    bool listen(Client& client, NodeSet homes = NodeSet{}.set()) {
        const RoundLimits limits{.deadline = now() + 10s};
        for (;;) {
            if (const auto listens = client.waiter.listen_in_steps(client.task, homes, limits))
                return *listens;
            step(1ms);
        }
    }
    std::deque<Client> listening(std::size_t count) {
        std::deque<Client> clients;
        for (std::size_t i = 0; i < count; ++i) EXPECT_TRUE(listen(clients.emplace_back(*this)));
        return clients;
    }
    std::optional<Waiter::WakeUp> message(Client& client) {
        return client.waiter.sleep_in_steps(client.task, Clock::never(), never);
    }
    std::size_t publish(const std::string& ticket, std::size_t node = 0) {
        return network.server(node).publish(ticket.substr(0, ticket.find('|')), ticket, now());
    }
    std::size_t subscriptions(std::size_t node = 0) { return all(node, "SUBSCRIBE").size(); }

    NodeGroup group{network.configs(), {.node_timeout = 50ms}, network};
    NoLoop no_loop;
    loop::Scheduler scheduler{no_loop, network.clock()};
    RoundsOfATest rounds{group};
    Counter last{scheduler};
    loop::Listeners listeners{scheduler, rounds, last, group.listeners(), 50ms};
    LocalQueues queues;
    std::stop_token never;
    std::vector<PollEntry> entries;
};

TEST_F(WaitersOfALoop, GetANewConnectionIfTheNodeDoesNotKnowTheSubscription) {
    auto clients = listening(2);
    clients[0].waiter.lose_subscription();
    const auto woken = message(clients[1]);
    ASSERT_TRUE(woken);
    EXPECT_FALSE(woken->connected);
    for (auto& it : clients) ASSERT_TRUE(listen(it));
    EXPECT_EQ(subscriptions(), 2U);
}

// The node has answered a question of a waiter that has not noticed yet that the connection was replaced.
TEST_F(WaitersOfALoop, KeepANewConnectionIfTheNodeDoesNotKnowTheFormerSubscription) {
    auto clients = listening(2);
    clients[0].waiter.lose_subscription();
    ASSERT_TRUE(listen(clients[0]));
    clients[1].waiter.lose_subscription();
    EXPECT_FALSE(message(clients[0])) << "it still listens";
    ASSERT_TRUE(listen(clients[1]));
    EXPECT_EQ(subscriptions(), 2U);
}

TEST_F(WaitersOfALoop, ShareOneConnectionToTheirHomeNode) {
    auto clients = listening(3);
    EXPECT_EQ(clients[2].waiter.home(), 0U);
    EXPECT_EQ(subscriptions(), 1U);
    EXPECT_NE(clients[0].waiter.new_ticket(), clients[1].waiter.new_ticket());
}

TEST_F(WaitersOfALoop, EachGetsItsOwnMessages) {
    auto clients = listening(4);
    for (const std::size_t woken : {2U, 0U, 3U, 1U}) {
        const auto ticket = clients[woken].waiter.new_ticket();
        for (auto& it : clients) EXPECT_FALSE(message(it));
        EXPECT_EQ(publish(ticket), 1U);
        step();
        for (std::size_t i = 0; i < clients.size(); ++i) {
            const auto it = message(clients[i]);
            EXPECT_EQ(it.has_value(), i == woken) << i;
            EXPECT_EQ(it ? it->ticket : ticket, ticket);
        }
    }
}

TEST_F(WaitersOfALoop, MessagesThatComeTogetherAreAllDelivered) {
    auto clients = listening(2);
    for (auto& it : clients) (void)publish(it.waiter.new_ticket());
    step();
    for (auto& it : clients) EXPECT_TRUE(message(it));
}

TEST_F(WaitersOfALoop, TheMessageOfAWaiterThatIsGoneIsGivenBackOnce) {
    Client stays{*this};
    ASSERT_TRUE(listen(stays));
    std::string ticket;
    {
        Client goes{*this};
        ASSERT_TRUE(listen(goes));
        ticket = goes.waiter.new_ticket();
    }
    ask(0, {"ZADD", "{r}:queue", "1", stays.waiter.new_ticket()});
    ask(0, {"PEXPIRE", "{r}:queue", "5000"});
    ask(0, {"SET", "r", ticket, "PX", "100"});  // reserved
    EXPECT_EQ(publish(ticket), 1U);
    step(20ms);
    EXPECT_THAT(arguments(0, "wake", 1), ElementsAre(ticket));
    EXPECT_THAT(arguments(0, "wake", 6), ElementsAre("")) << "marked as repeated";
    EXPECT_EQ(holder(0), stays.waiter.new_ticket()) << "the next waiter is woken";
    EXPECT_TRUE(message(stays));
    (void)publish(ticket);
    step(20ms);
    EXPECT_EQ(all(0, "wake").size(), 1U);
}

TEST_F(WaitersOfALoop, TheNewestThousandTicketsThatAreGoneAreGivenBack) {
    struct NoWaiter final : loop::Listeners::User {
        void on_listener() noexcept override {}
        bool on_message() noexcept override { return true; }
    } gone;
    Client stays{*this};
    ASSERT_TRUE(listen(stays));
    std::vector<std::string> tickets;
    for (int i = 0; i <= 1000; ++i) {
        tickets.push_back(listeners.new_ticket(0, gone, "r"));
        listeners.forget(0, tickets.back());
    }
    (void)publish(tickets[0]);
    step(20ms);
    EXPECT_THAT(all(0, "wake"), IsEmpty());
    (void)publish(tickets[1]);
    step(20ms);
    EXPECT_THAT(arguments(0, "wake", 1), ElementsAre(tickets[1]));
}

TEST_F(WaitersOfALoop, AForeignMessageDelaysTheirOwnByTenMilliseconds) {
    Client client{*this};
    ASSERT_TRUE(listen(client));
    const auto ticket = client.waiter.new_ticket();
    (void)publish(ticket + "0");
    step(2ms);
    EXPECT_FALSE(message(client));
    EXPECT_THAT(all(0, "wake"), IsEmpty());
    (void)publish(ticket);
    step(5ms);
    EXPECT_FALSE(message(client));
    step(10ms);
    EXPECT_TRUE(message(client));
}

// They are more than the loop reads at a time.
TEST_F(WaitersOfALoop, ManyForeignMessagesDelayTheirOwnByTenMillisecondsOnly) {
    Client client{*this};
    ASSERT_TRUE(listen(client));
    const auto ticket = client.waiter.new_ticket();
    for (int i = 0; i < 1000; ++i) (void)publish(ticket + "0");
    (void)publish(ticket);
    step(15ms);
    EXPECT_TRUE(message(client));
}

TEST_F(WaitersOfALoop, ConnectToNoNodeAfterTheEndOfTheirTime) {
    Client client{*this};
    const RoundLimits limits{.deadline = now()};
    EXPECT_EQ(client.waiter.listen_in_steps(client.task, NodeSet{}.set(), limits), std::optional{false});
    EXPECT_EQ(network.server(0).connections(), 0U);
}

TEST_F(WaitersOfALoop, AreAllToldThatTheirSubscriptionIsConfirmed) {
    std::deque<Client> clients;
    for (int i = 0; i < 2; ++i) {
        auto& it = clients.emplace_back(*this);
        EXPECT_FALSE(it.waiter.listen_in_steps(it.task, NodeSet{}.set(), {.deadline = now() + 10s}));
    }
    scheduler.run();
    for (auto& it : clients) it.task.calls = 0;
    step();
    for (auto& it : clients) {
        EXPECT_GT(it.task.calls, 0) << "it is woken";
        EXPECT_TRUE(it.waiter.listen_in_steps(it.task, NodeSet{}.set(), {.deadline = now() + 10s}));
    }
}

TEST_F(WaitersOfALoop, AreToldThatTheirConnectionIsCut) {
    auto clients = listening(2);
    step();
    const int calls = clients[0].task.calls;
    network.server(0).close_connections(now());
    step();
    EXPECT_GT(clients[0].task.calls, calls) << "it is woken";
    for (auto& it : clients) {
        const auto cut = message(it);
        ASSERT_TRUE(cut);
        EXPECT_FALSE(cut->connected);
        EXPECT_TRUE(listen(it)) << "the same node again";
    }
    EXPECT_EQ(subscriptions(), 2U);
}

TEST_F(WaitersOfALoop, GoToTheNextNodeTogether) {
    network.server(0).paused = true;
    Client first{*this};
    Client second{*this};
    const auto start = now();
    ASSERT_TRUE(listen(first));
    EXPECT_EQ(first.waiter.home(), 1U);
    EXPECT_LE(now() - start, 60ms);
    const auto then = now();
    ASSERT_TRUE(listen(second));
    EXPECT_LE(now() - then, 5ms) << "the node is known to have failed";
    EXPECT_EQ(subscriptions(1), 1U);
}

// Otherwise waiters that come one after the other would keep a connection that is silent.
TEST_F(WaitersOfALoop, DoNotExtendTheTimeOfASubscriptionThatAnotherHasBegun) {
    network.server(0).paused = true;
    std::deque<Client> clients;
    const auto start = now();
    for (int i = 0; i < 2; ++i) {
        auto& it = clients.emplace_back(*this);
        EXPECT_FALSE(it.waiter.listen_in_steps(it.task, NodeSet{}.set(), {.deadline = now() + 10s}));
        step(25ms);
    }
    ASSERT_TRUE(listen(clients.front()));
    EXPECT_EQ(clients.front().waiter.home(), 1U);
    EXPECT_LE(now() - start, 60ms);
}

// The server accepts the connection and then sends nothing, so only a timer can end the subscription.
TEST_F(WaitersOfALoop, AreToldThatANodeHasNotConfirmedTheirSubscriptionInTime) {
    network.server(0).paused = true;
    Client client{*this};
    EXPECT_FALSE(client.waiter.listen_in_steps(client.task, NodeSet{}.set(), {.deadline = now() + 10s}));
    step();
    client.task.calls = 0;
    network.pass(44ms);
    scheduler.run();
    EXPECT_EQ(client.task.calls, 0) << "the node_timeout is not over";
    network.pass(1ms);
    scheduler.run();
    scheduler.run();
    EXPECT_EQ(client.task.calls, 1);
    EXPECT_TRUE(listen(client));
    EXPECT_EQ(client.waiter.home(), 1U);
}

TEST_F(WaitersOfALoop, OneWithAHomeNodeFindsThatAnEarlierNodeAnswersAgain) {
    network.server(0).paused = true;
    std::optional<Client> first{*this};
    ASSERT_TRUE(listen(*first));
    network.server(0).paused = false;
    network.pass(1s);
    {
        Client without_home{*this};
        ASSERT_TRUE(listen(without_home));
        EXPECT_EQ(without_home.waiter.home(), 1U) << "it does not probe";
    }
    ASSERT_TRUE(listen(*first));
    EXPECT_EQ(first->waiter.home(), 0U);
    first.reset();
    Client later{*this};
    ASSERT_TRUE(listen(later));
    EXPECT_EQ(later.waiter.home(), 0U) << "the node is trusted again";
}

TEST_F(WaitersOfALoop, AMessageOfTheFormerHomeNodeDoesNotWakeAtTheNextOne) {
    network.server(0).paused = true;
    Client client{*this};
    ASSERT_TRUE(listen(client));
    network.server(0).paused = false;
    network.pass(1s);
    EXPECT_EQ(publish(client.waiter.new_ticket(), 1), 1U);
    step();
    ASSERT_TRUE(listen(client));
    EXPECT_EQ(client.waiter.home(), 0U);
    EXPECT_FALSE(message(client));
}

TEST_F(WaitersOfALoop, LeaveAHomeNodeThatMayNotBeTheirHome) {
    Client client{*this};
    ASSERT_TRUE(listen(client));
    ASSERT_TRUE(listen(client, NodeSet{0b110}));
    EXPECT_EQ(client.waiter.home(), 1U);
    EXPECT_EQ(network.server(0).open_connections(), 0U);
}

TEST_F(WaitersOfALoop, AreWokenAtTheEndOfTheirTime) {
    network.server(0).paused = true;
    Client client{*this};
    step();
    const RoundLimits limits{.deadline = now() + 10ms};
    EXPECT_FALSE(client.waiter.listen_in_steps(client.task, NodeSet{}.set(), limits));
    client.task.calls = 0;
    step(9ms);
    EXPECT_EQ(client.task.calls, 0);
    step(1ms);
    EXPECT_EQ(client.task.calls, 1);
    EXPECT_EQ(client.waiter.listen_in_steps(client.task, NodeSet{}.set(), limits), std::optional{false});
    network.server(0).paused = false;
    ASSERT_TRUE(listen(client));
    step();
    EXPECT_FALSE(client.waiter.sleep_in_steps(client.task, now() + 10ms, never));
    client.task.calls = 0;
    step(9ms);
    EXPECT_EQ(client.task.calls, 0);
    step(1ms);
    EXPECT_EQ(client.task.calls, 1);
}

TEST_F(WaitersOfALoop, OneWithoutATurnWaitsForTheEndOfItsTimeOrAStop) {
    std::deque<Client> with_turn;
    for (int i = 0; i < 4; ++i) with_turn.emplace_back(*this);
    with_turn[0].turn.place = QueuePlace{.in_front = 3};
    EXPECT_TRUE(with_turn[0].waiter.await_turn(with_turn[0].task, with_turn[0].turn));
    const std::vector<std::string> resource{"r"};
    Counter task{scheduler};
    loop::LoopWaiter waiter{listeners, queues, group.listeners(), network.clock()};
    std::stop_source stop;
    RoundLimits limits{.deadline = now() + 10ms, .stop = stop.get_token()};
    flow::Turn turn{.resource = resource, .since = now(), .limits = &limits, .attempt_due = Clock::never()};
    EXPECT_FALSE(waiter.await_turn(task, turn));
    step(9ms);
    EXPECT_EQ(task.calls, 0);
    step(1ms);
    EXPECT_EQ(task.calls, 1);
    EXPECT_TRUE(waiter.await_turn(task, turn));
    EXPECT_EQ(turn.place->in_front, 7U);
    limits.deadline = Clock::never();
    EXPECT_FALSE(waiter.await_turn(task, turn));
    stop.request_stop();
    EXPECT_TRUE(waiter.await_turn(task, turn));
    EXPECT_FALSE(turn.has_come);
}

TEST_F(WaitersOfALoop, TheLastOneLeavesTheConnectionToTheNext) {
    {
        Client first{*this};
        ASSERT_TRUE(listen(first));
    }
    Client next{*this};
    ASSERT_TRUE(listen(next));
    EXPECT_EQ(subscriptions(), 1U);
    EXPECT_EQ(publish(next.waiter.new_ticket()), 1U);
    step();
    EXPECT_TRUE(message(next));
}

TEST_F(WaitersOfALoop, AWaiterThatIsDestroyedWhileItTriesToListenLeavesNothing) {
    {
        Client first{*this};
        EXPECT_FALSE(first.waiter.listen_in_steps(first.task, NodeSet{}.set(), {.deadline = now() + 10s}));
    }
    step();
    EXPECT_EQ(network.server(0).open_connections(), 0U);
    Client next{*this};
    EXPECT_TRUE(listen(next));
}

TEST_F(WaitersOfALoop, ANodeThatRefusesSubscriptionsIsNotAskedForAMinute) {
    forbid(0, {"SUBSCRIBE"});
    auto clients = listening(2);
    EXPECT_EQ(clients[1].waiter.home(), 1U);
    EXPECT_EQ(subscriptions(), 1U);
    Tally reasons{names_of(3)};
    clients[1].waiter.report_refusals(reasons);
    EXPECT_EQ(reasons[0].cause, Errc::permission_denied);
    EXPECT_FALSE(group.nodes()[0]->server().last_failure().cause) << "the node has not failed";
}

// It has failed as a node that does not answer, and does not refuse to keep queues.
TEST_F(WaitersOfALoop, ANodeWithTooManyClientsIsAskedAgainSoon) {
    network.server(0).last_words = too_many_clients;
    Client client{*this};
    ASSERT_TRUE(listen(client));
    EXPECT_EQ(client.waiter.home(), 1U);
    EXPECT_FALSE(group.nodes()[0]->server().last_failure().cause)
        << "it answers over the connections that it has";
    network.server(0).last_words = "";
    network.pass(2s);
    ASSERT_TRUE(listen(client));
    EXPECT_EQ(client.waiter.home(), 0U);
}

}  // namespace
}  // namespace redlock::test::loop_waiter_test
