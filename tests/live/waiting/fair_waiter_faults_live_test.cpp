// What it costs the others when a waiter, or the holder, dies, is stopped or is cut off. Each delay is a row
// of the table in docs/waiting.md.
#include "waiting_world.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace redlock::test::fair_waiter_faults_live_test {
namespace {

using WaiterFaults = Held;

TEST_F(WaiterFaults, NoFaultIsTheBaseline) {
    expect_no_sleep("no fault", [&] {
        Waiters waiters{world[0], world.uris(), 2};
        const auto released = release();
        const auto held = waiters[0].held_at();
        EXPECT_THAT(holder.acquire_for(50s), Succeeds());
        return held - released;
    });
}

// Nobody hears the message: the next one is woken in the same step.
TEST_F(WaiterFaults, TheFirstIsKilled) {
    expect_no_sleep("first waiter killed", [&] {
        const auto before = listeners(world[0]);  // the holder's own, from the second time on
        Waiters waiters{world[0], world.uris(), 3};
        waiters[0].kill();
        EXPECT_TRUE(wait_until([&] { return listeners(world[0]) == before + 2; }))
            << "the server sees its end";
        const auto released = release();
        const auto held = waiters.first_held_at(1);
        waiters.expect_order(1);
        EXPECT_THAT(holder.acquire_for(50s), Succeeds());
        return held - released;
    });
}

// Its kernel takes the message, and it does not come: its reservation has to end, and somebody to ask. Where
// that lasts for more than two poll intervals, all of them look round, in any order.
TEST_F(WaiterFaults, TheFirstIsStopped) {
    Waiters waiters{world[0], world.uris(), 3};
    waiters[0].freeze();
    const auto released = release();
    expect_delay("first waiter stopped", waiters.first_held_at(1) - released,
                 reservation_ttl() + 2 * poll_interval);
    waiters.expect_one_at_a_time(1);
    waiters[0].thaw();
    expect_delay("first waiter goes on", waiters[0].held_at() - waiters[2].released_at(), 2 * poll_interval);
}

TEST_F(WaiterFaults, TheFirstIsCutOff) {
    std::deque<TcpProxy> links;
    const auto names = names_of(links, world);
    WaitingProcess first{names};
    ASSERT_TRUE(queued(world[0], 1));
    Waiters waiters{world[0], world.uris(), 2};
    for (auto& link : links) link.black_hole();
    const auto released = release();
    expect_delay("first waiter cut off", waiters.first_held_at() - released,
                 reservation_ttl() + 2 * poll_interval);
    waiters.expect_one_at_a_time();
    const auto healed = now();
    for (auto& link : links) link.heal();
    expect_delay("first waiter is back", first.held_at() - healed,
                 4 * poll_interval + timeouts().node_timeout);
}

TEST_F(WaiterFaults, HalfOfThemAreKilled) {
    Waiters waiters{world[0], world.uris(), 8, 1ms};
    for (std::size_t i = 0; i < 8; i += 2) waiters[i].kill();
    const auto released = release();
    auto last = released;
    for (std::size_t i = 1; i < 8; i += 2) last = std::max(last, waiters[i].held_at());
    expect_delay("half of 8 waiters killed: the last of the others", last - released, 4ms);
}

// Its key expires. The waiters ask then, and not a poll interval later.
TEST_F(WaiterFaults, TheHolderIsKilled) {
    EXPECT_THAT(holder.release(), Succeeds());
    WaitingProcess dying{world.uris(), 1min, fair(6s)};
    const auto held = dying.held_at();
    Waiters waiters{world[0], world.uris(), 3};
    dying.kill();
    const auto first = waiters.first_held_at();
    EXPECT_GE(first, held + 5900ms) << "not before it has expired";
    expect_delay("holder killed, after its ttl", first - held - 6s, poll_interval);
    waiters.expect_one_at_a_time();
}

// A release and a question remove 128 of them in one step.
TEST_F(WaiterFaults, AThousandHaveDiedInFront) {
    std::vector<std::string> words{"ZADD", the_queue};
    for (int i = 0; i < 1000; ++i)
        words.insert(words.end(), {std::to_string(i), "redlock:wake:" + std::to_string(i) + "|1"});
    const auto add = [&] { ASSERT_EQ(world[0].command(words), "1000"); };
    expect_delays("1,000 dead in front", add, 4 * poll_interval);
}

// They are heard, each one: whoever waits looks round after two poll intervals without a holder.
TEST_F(WaiterFaults, FiftyAreCutOffInFront) {
    Waiters waiters{world[0], world.uris(), 2};
    auto silent = world[0].connect();
    std::vector<std::string> words{"ZADD", the_queue};
    for (int i = 0; i < 50; ++i) {
        const auto channel = "redlock:wake:" + std::to_string(i);
        silent.send({"SUBSCRIBE", channel});
        (void)silent.read_reply();
        words.insert(words.end(), {std::to_string(i), channel + "|1"});
    }
    ASSERT_EQ(world[0].command(words), "50");
    const auto released = release();
    expect_delay("50 cut off in front", waiters.first_held_at() - released,
                 4 * poll_interval + 4 * poll_interval);
    waiters.expect_one_at_a_time();
}

}  // namespace
}  // namespace redlock::test::fair_waiter_faults_live_test
