// What it costs the others when a waiter, or the holder, dies, is stopped or is cut off. Each delay is a row
// of the table in docs/waiting.md.
#include "waiting_world.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <deque>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace redlock::test {
namespace {

struct WaiterFaults : testing::Test {
    LiveWorld world{5, timeouts()};
    Lock holder = world.lock(fair());

    void SetUp() override {
        ASSERT_TRUE(world.warm_up());
        ASSERT_THAT(holder.acquire(), Succeeds());
    }

    Clock::time_point release() {
        const auto released = now();
        EXPECT_THAT(holder.release(), Succeeds());
        return released;
    }
};

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
    std::vector<std::string> names;
    for (auto& server : world) names.push_back(links.emplace_back(server.port()).name());
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

/// So many tickets of waiters that have died, in front of all others.
void add_dead(const RedisServer& home, std::size_t count) {
    std::vector<std::string> words{"ZADD", the_queue};
    for (std::size_t i = 0; i < count; ++i) {
        words.push_back(std::to_string(i));
        words.push_back("redlock:wake:" + std::to_string(i) + "|1");
    }
    ASSERT_EQ(home.command(words), std::to_string(count));
}

// A release and a question remove 128 of them in one step.
TEST_F(WaiterFaults, AThousandHaveDiedInFront) {
    Waiters waiters{world[0], world.uris(), 3};
    add_dead(world[0], 1000);
    const auto released = release();
    expect_delay("1,000 dead in front", waiters.first_held_at() - released, 4 * poll_interval);
    waiters.expect_one_at_a_time();
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

// Those behind them would be told of a place that is too far behind.
TEST_F(WaiterFaults, SomeAreKilledWhileItIsHeld) {
    Waiters waiters{world[0], world.uris(), 8};
    for (std::size_t i = 0; i < 7; ++i) waiters[i].kill();
    EXPECT_TRUE(queued(world[0], 1));
    (void)release();
    (void)waiters[7].held_at();
}

// It is still connected, and asks no more.
TEST_F(WaiterFaults, OneIsStoppedWhileItIsHeld) {
    Waiters waiters{world[0], world.uris(), 2};
    waiters[0].freeze();
    EXPECT_TRUE(queued(world[0], 1));
    (void)release();
    (void)waiters[1].held_at();
    waiters[0].thaw();
    (void)waiters[0].held_at();
}

/// Cuts the only waiter off if it listens at this server and has a ticket in its queue. Returns the channel
/// of the cut connection, or an empty text. Each connection has a channel of its own.
std::string cut_off(const RedisServer& server) {
    const auto channel = server.command({"PUBSUB", "CHANNELS", "redlock:wake:*"});
    const auto tickets = server.command({"ZRANGE", the_queue, "0", "-1"});
    const bool waits = !channel.empty() && tickets.find(channel + "|") != tickets.npos;
    return waits && server.command({"CLIENT", "KILL", "TYPE", "pubsub"}) == "1" ? channel : "";
}

TEST_F(WaiterFaults, OneIsCutOffThreeHundredTimesWhileItIsHeld) {
    RedisNodes nodes{world.uris(), timeouts()};
    Lock lock{nodes, the_resource, fair()};
    std::jthread waiter{
        [&](const std::stop_token& stop) { EXPECT_THAT(lock.acquire_for(1h, stop), Succeeds()); }};
    std::set<std::string> cut;
    while (cut.size() < 300) {
        ASSERT_TRUE(wait_until([&] {
            return std::ranges::any_of(world, [&](auto& server) {
                const auto channel = cut_off(server);
                return !channel.empty() && cut.insert(channel).second;
            });
        })) << cut.size();
        for (auto& server : world) ASSERT_LE(queue_length(server), 1U) << "after cut " << cut.size();
        ASSERT_THAT(holder.extend(), Succeeds());
    }
    (void)release();
    waiter.join();
}

/// Publishes a foreign message on the channel of the only waiter each millisecond.
class Flood {
public:
    explicit Flood(RedisServer& home)
        : channel_(home.command({"PUBSUB", "CHANNELS", "redlock:wake:*"})),
          thread_(
              [connection = home.connect(), channel = channel_, this](const std::stop_token& stop) mutable {
                  for (; !stop.stop_requested(); ++published_) {
                      (void)connection.ask({"PUBLISH", channel, channel + "|foreign"});
                      boot_clock().sleep_until(now() + 1ms, stop);
                  }
              }) {}
    std::size_t published() const { return published_; }

private:
    std::string channel_;
    std::atomic<std::size_t> published_{0};
    std::jthread thread_;
};

/// Returns how often this thread of the process has gone to sleep. A busy machine does not change this
/// number, and neither does a sanitizer, while both change the thread's processor time.
std::size_t sleeps_of(pid_t thread) {
    std::ifstream status{"/proc/self/task/" + std::to_string(thread) + "/status"};
    std::string word;
    while (status >> word && word != "voluntary_ctxt_switches:") {
    }
    std::size_t sleeps = 0;
    EXPECT_TRUE(status >> sleeps);
    return sleeps;
}

// Foreign messages do not keep the waiter busy, and do not delay its own message. A waiter that reads once in
// 10 ms sleeps twice in this time: until it may read, and until there is something to read.
TEST_F(WaiterFaults, SomebodyFloodsItsChannel) {
    RedisNodes nodes{world.uris(), timeouts()};
    Lock lock{nodes, the_resource, fair()};
    std::atomic<pid_t> thread{};
    Clock::time_point held{};
    std::jthread waiter{[&] {
        thread = ::gettid();
        EXPECT_THAT(lock.acquire_for(50s), Succeeds());
        held = now();
    }};
    ASSERT_TRUE(queued(world[0], 1));
    const Flood flood{world[0]};
    ASSERT_TRUE(wait_until([&] { return flood.published() > 0; }));
    const auto before = sleeps_of(thread);
    const auto from = now();
    ASSERT_TRUE(wait_until([&] { return flood.published() > 500 && now() - from > 1s; }));
    EXPECT_LE(sleeps_of(thread) - before, 3 * static_cast<std::size_t>((now() - from) / 10ms));
    const auto released = release();
    waiter.join();
    expect_delay("flood", held - released, 10ms);
}

// Entries that nobody of ours has written.
TEST_F(WaiterFaults, TheQueueContainsForeignEntries) {
    Waiters waiters{world[0], world.uris(), 2};
    ASSERT_EQ(world[0].command({"ZADD", the_queue, "1", "", "2", "|", "3", "no bar", "4", "||"}), "4");
    const auto released = release();
    expect_delay("rubbish in front", waiters.first_held_at() - released, 0ms);
    waiters.expect_order();
}

}  // namespace
}  // namespace redlock::test
