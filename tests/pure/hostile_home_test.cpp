// What a waiter does if its home does not tell the truth. One node must neither keep a waiter from making
// attempts, nor make it flood the other nodes with them.
#include "waiting_world.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

namespace redlock::test::hostile_home_test {
namespace {

struct HostileHome : Waiting {
    HostileHome() { others_hold(); }
    // The destructors of the clients wait for replies, and the home publishes meanwhile.
    ~HostileHome() override { destroy_clients(); }

    /// The home answers each question of a waiter with these bytes.
    void home_answers(const std::string& bytes) { network.server(0).answers["enter"] = bytes; }
    /// The others become free after a while, and the key on the home stays.
    void others_release_after(Clock::duration span) {
        after(span, [this] {
            for (const std::size_t node : {1U, 2U}) ask(node, {"DEL", "r"});
        });
    }
    /// Every millisecond, the home publishes to the waiter's channel what `message` makes of its ticket.
    template <class Message>
    void home_publishes(Message message) {
        after(1ms, [this, message] {
            const auto& executed = network.server(0).executed();
            const auto question = std::ranges::find(executed.rbegin(), executed.rend(), "enter",
                                                    [](const auto& it) { return verb_of(it.words); });
            if (question != executed.rend()) {
                const std::string ticket{argument(question->words, 1)};
                network.server(0).publish(ticket.substr(0, ticket.find('|')), message(ticket), now());
            }
            home_publishes(message);
        });
    }
    void home_publishes_ticket_with(const std::string& suffix) {
        home_publishes([suffix](const std::string& ticket) { return ticket + suffix; });
    }
    std::size_t attempts_at_another_node() { return all(1, "SET").size(); }
    void expect_withdrawals_for_an_earlier_ticket(Lock& waiting) {
        forget_log();
        home_publishes([](const std::string& ticket) { return ticket.substr(0, ticket.find('|')) + "|1"; });
        (void)waiting.acquire_for(3s);
        EXPECT_THAT(all(0, "wake").size(), IsBetween(2U, 26U));
    }
};

// The waiter makes an attempt after 7 to 14 s whatever it is told, and asks at least once a second.
TEST_F(HostileHome, CannotKeepAWaiterFromMakingAttemptsAgainAndAgain) {
    home_answers("+WAITING 60000 1000 holder\r\n");
    others_release_after(1min);
    auto mine = lock(alice);
    const auto took = time_of([&] { EXPECT_TRUE(mine.acquire_for(2min)); });
    EXPECT_LE(took, 75s + 50ms);
    EXPECT_THAT(attempts_at_another_node(), IsBetween(60U / 15U, 75U / 7U + 2U));
}

// A stray key stands on the home only, the holder on the other nodes has died, and the first in the queue has
// been killed.
TEST_F(HostileHome, CausesNoLongDelayWithAStrayKey) {
    network.server(0).redis->on_publish([](auto, auto) { return 0; });
    ask(0, {"ZADD", "{r}:queue", "1", "redlock:wake:killed|1"});
    others_release_after(10ms);
    auto mine = lock(alice);
    const auto took = time_of([&] { EXPECT_TRUE(mine.acquire_for(1min)); });
    EXPECT_LE(took, 15s);
}

struct HostileHomeThatWakes : HostileHome {
    /// Waits for three seconds with a `retry.delay` of 200 ms. Returns when the attempts reached another
    /// node.
    std::vector<Clock::duration> attempts() {
        forget_log();
        const auto start = now();
        EXPECT_EQ(lock(alice, {.delay = 200ms}).acquire_for(3s).error(), Errc::held_by_other);
        std::vector<Clock::duration> result;
        for (const auto& it : all(1, "SET")) result.push_back(it.when - start);
        result.pop_back();  // the last one, at the deadline
        return result;
    }

    /// Once the pauses have grown, each is 100 to 200 ms long. It has one attempt for which the waiter
    /// reserves the resource by itself, and one for which another client wakes it.
    void expect_two_in_a_pause(const std::vector<Clock::duration>& attempts) {
        constexpr auto shortest_pause = 100ms;
        constexpr auto grown = 500ms;
        for (std::size_t i = 2; i < attempts.size(); ++i)
            if (attempts[i - 2] >= grown) {
                EXPECT_GE(attempts[i] - attempts[i - 2], shortest_pause) << "attempt " << i;
            }
        const auto early = std::ranges::count_if(attempts, [&](auto it) { return it < grown; });
        EXPECT_LE(early, 20) << "the pauses double, so they grow fast";
        EXPECT_LE(std::ssize(attempts) - early, 2 * (3s - grown) / shortest_pause);
        EXPECT_LE(all(0, "enter").size(), attempts.size() + 30) << "and one question after a pause";
    }
};

TEST_F(HostileHomeThatWakes, ByTheAnswerReservedCausesTwoAttemptsInAPauseAtMost) {
    home_answers("+RESERVED\r\n");
    expect_two_in_a_pause(attempts());
}

TEST_F(HostileHomeThatWakes, ByMessagesWithoutEndCausesTwoAttemptsInAPauseAtMost) {
    home_publishes_ticket_with("");
    expect_two_in_a_pause(attempts());
}

// The server answers the withdrawal of a ticket that is not in the queue by waking the next waiter. Messages
// of other clients must not cause that, because the woken waiter begins a pause after an attempt in vain.
TEST_F(HostileHome, CausesNeitherPollsNorWithdrawalsByForeignMessages) {
    home_publishes_ticket_with("7");
    (void)lock(alice, {.delay = 10s}).acquire_for(3s);
    EXPECT_LE(all(0, "enter").size(), 26U) << "one after each pause of 125 to 250 ms";
    EXPECT_LE(attempts_at_another_node(), 14U);
    EXPECT_LE(all(0, "wake").size(), 1U) << "the waiter leaves the queue at the end";
}

TEST_F(HostileHome, CausesOneWithdrawalForEachQuestionByAnEarlierTicket) {
    auto mine = lock(alice, {.delay = 10s});
    (void)mine.acquire_for(10ms);
    expect_withdrawals_for_an_earlier_ticket(mine);
}

TEST_F(HostileHome, CausesOneWithdrawalForEachQuestionEvenIfItIgnoresThem) {
    auto mine = lock(alice, {.delay = 10s});
    (void)mine.acquire_for(10ms);
    network.server(0).answers["wake"] = ":0\r\n";
    expect_withdrawals_for_an_earlier_ticket(mine);
}

// The message that wakes the waiter comes in the middle of others, and all are read at once.
TEST_F(HostileHome, CannotHideAWakeUpAmongForeignMessages) {
    auto mine = lock(alice, {.delay = 10s});
    Clock::time_point released{};
    after(40ms, [&] {
        const auto ticket = queued(0).at(0);
        const auto publish_another = [&](const char* suffix) {
            network.server(0).publish(ticket.substr(0, ticket.find('|')), ticket + suffix, now());
        };
        publish_another("7");
        released = now();
        for (std::size_t node = 0; node < size; ++node) release_at(node, "other");
        publish_another("8");
    });
    EXPECT_TRUE(mine.acquire_for(1min));
    EXPECT_LE(now() - released, 10ms);
}

// A flood must not keep the processor of the waiter busy.
TEST_F(HostileHome, IsReadOnceInTenMillisecondsIfItSendsForeignMessages) {
    home_publishes_ticket_with("7");
    std::size_t waits = 0;
    after(500ms, [&] { waits = network.waits(); });
    after(1'500ms, [&] { EXPECT_LE(network.waits() - waits, 2 * 100U + 50U) << "in a second"; });
    EXPECT_FALSE(lock(alice, {.delay = 10s}).acquire_for(2s));
}

TEST_F(HostileHome, CannotDelayTheEndByForeignMessages) {
    home_publishes_ticket_with("7");
    EXPECT_LE(time_of([&] { (void)lock(alice, {.delay = 10s}).acquire_for(300ms); }), 310ms);
}

TEST_F(HostileHome, CausesNoLoopOfPolls) {
    for (const auto* const answer :
         {"+WAITING 0 0 holder\r\n", "+WAITING -2 5 nothing\r\n", "+WAITING 0 3 reservation\r\n",
          "+WAITING 31536000000000 1 holder\r\n", "+WAITING 99999999999999999999 0 holder\r\n",
          "+WAITING -99999999999999999999 0 holder\r\n", "+WAITING 1 99999999999999999999 nothing\r\n"}) {
        forget_log();
        others_hold();
        home_answers(answer);
        (void)lock(alice, {.delay = 200ms}).acquire_for(2s);
        EXPECT_LE(all(0, "enter").size(), 210U) << answer << "one every 10 ms at most";
        EXPECT_LE(attempts_at_another_node(), 12U) << answer;
    }
}

// The end of such a key is further away than the clock can count.
TEST_F(HostileHome, MayReportAHolderWithADistantExpiry) {
    for (std::size_t node = 0; node < size; ++node) ask(node, {"SET", "r", "other", "PX", "31536000000000"});
    const auto result = lock(alice, {.delay = 200ms}).acquire_for(1s);
    EXPECT_EQ(result.error(), Errc::held_by_other);
    EXPECT_LE(all(0, "enter").size(), 12U);
    ASSERT_TRUE(result.place());
    EXPECT_GT(result.place()->held_for, 0ms);
    EXPECT_GT(Clock::duration{result.place()->held_for}, 0ns);
}

}  // namespace
}  // namespace redlock::test::hostile_home_test
