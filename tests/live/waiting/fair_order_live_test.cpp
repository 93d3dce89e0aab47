// LockOptions::fair: those that wait are served in the order of their age, are woken by the release, and the
// uncontended path costs nothing.
#include "waiting_world.hpp"

#include <algorithm>
#include <deque>
#include <thread>

#include "wire/scripts.hpp"

namespace redlock::test::fair_order_live_test {
namespace {

/// What clients have sent to a server, and not what scripts did there.
class SentCommands {
public:
    explicit SentCommands(const RedisServer& server) : server_(server), monitor_(server.connect()) {
        EXPECT_EQ(monitor_.ask({"MONITOR"}), "OK");
    }

    /// All since it was made, or was asked last.
    std::vector<std::string> take() {
        const auto mark = "mark " + std::to_string(++marks_);
        (void)server_.command({"ECHO", mark});
        std::vector<std::string> result;
        for (auto line = monitor_.read(); line.find(mark) == line.npos; line = monitor_.read())
            if (line.find(" 127.0.0.1:") != line.npos) result.push_back(line);
        return result;
    }

private:
    const RedisServer& server_;
    support::RespConnection monitor_;
    int marks_ = 0;
};

bool is_call_of(const std::string& line, const detail::Script& script) {
    const auto& text = script.text;
    return line.find(script.sha1) != line.npos || line.find(text.substr(text.size() - 60)) != line.npos;
}

using FairOrder = Held;

TEST_F(FairOrder, ServesProcesses) {
    Waiters waiters{world[0], world.uris(), 5, 5ms};
    EXPECT_THAT(holder.release(), Succeeds());
    waiters.expect_order();
    EXPECT_TRUE(wait_until([&] { return world.clean(); })) << "nothing is left, the queue neither";
}

// The one that releases and wants it again stands behind those that wait already.
TEST_F(FairOrder, TheLastHolderGoesBehindTheOthers) {
    Waiters waiters{world[0], world.uris(), 3, 20ms};
    EXPECT_THAT(holder.release(), Succeeds());
    EXPECT_THAT(holder.acquire_for(50s), Succeeds());
    const auto held = now();
    EXPECT_THAT(holder.release(), Succeeds());
    waiters.expect_order();
    EXPECT_TRUE(held >= waiters[2].released_at() || waiters.delayed());
}

// It enters the queue before it makes an attempt, which would succeed: the one that was woken does not come.
TEST_F(FairOrder, TheLastHolderMakesNoAttemptBeforeItsTurn) {
    auto another = world.lock(fair());
    for (auto* const again : {&holder, &another}) {
        Waiters waiters{world[0], world.uris(), 1};
        waiters[0].freeze();
        EXPECT_THAT(holder.release(), Succeeds());
        EXPECT_THAT(time_taken([&] { EXPECT_THAT(again->acquire_for(50s), Succeeds()); }),
                    LastsAtLeast(poll_interval / 2));
        waiters[0].thaw();
        EXPECT_THAT(again->release(), Succeeds());
        (void)waiters[0].released_at();
        ASSERT_THAT(holder.acquire_for(50s), Succeeds());
    }
}

/// Of so many hand-overs to one waiter, how many were made without a question in between: the release woke
/// it.
std::size_t woken_by_release(LiveWorld& world, Lock& holder, int hand_overs) {
    std::size_t woken = 0;
    for (int i = 0; i < hand_overs; ++i) {
        std::jthread waiter{[&] {
            auto lock = world.lock(fair());
            EXPECT_THAT(lock.acquire_for(50s), Succeeds());
        }};
        EXPECT_TRUE(queued(world[0], 1));
        SentCommands sent{world[0]};
        EXPECT_THAT(holder.release(), Succeeds());
        waiter.join();
        const auto commands = sent.take();
        const auto count = [&](const auto& script) {
            return std::ranges::count_if(commands, [&](auto& it) { return is_call_of(it, script); });
        };
        EXPECT_EQ(count(detail::scripts::release), 2);  // the holder's, the waiter's
        EXPECT_EQ(count(detail::scripts::acquire), 1);
        woken += count(detail::scripts::enter_queue) == 0 ? 1U : 0U;
        EXPECT_THAT(holder.acquire_for(50s), Succeeds());
    }
    return woken;
}

// It asks at times while it waits: rarely just then.
TEST_F(FairOrder, TheReleaseWakesTheNextWaiter) {
    EXPECT_GE(woken_by_release(world, holder, 10), 6U);
}

// ---- Costs

struct Costs : testing::TestWithParam<Round> {
    LiveWorld world{5, {.node_timeout = 2s, .round = GetParam()}};
    std::deque<SentCommands> monitors{};

    void monitor() {
        monitors.clear();
        for (auto& server : world) monitors.emplace_back(server);
    }
    std::size_t sent() {
        std::size_t sum = 0;
        for (auto& monitor : monitors) sum += monitor.take().size();
        return sum;
    }
    bool released() {
        return wait_until([&] { return world.clean(); });
    }
    /// Waits in the queue until `holder` releases.
    void hand_over_from(Lock& holder) {
        std::jthread waiter{[&] {
            auto lock = world.lock(fair());
            EXPECT_THAT(lock.acquire_for(50s), Succeeds());
        }};
        EXPECT_TRUE(queued(world[0], 1));
        EXPECT_THAT(holder.release(), Succeeds());
    }
};
INSTANTIATE_TEST_SUITE_P(Fair, Costs, each_round(), by_round);

TEST_P(Costs, AreTenCommandsWithoutContention) {
    for (const bool is_fair : {false, true}) {
        for (int i = 0; i < 3; ++i) {  // the first makes connections, the next scripts known
            monitor();
            auto lock = world.lock({.fair = is_fair});
            ASSERT_THAT(lock.acquire(), Succeeds());
            ASSERT_TRUE(wait_until([&] { return world.keys_of(lock.owner()) == 5; }));
            ASSERT_THAT(lock.release(), Succeeds());
            ASSERT_TRUE(released());
        }
        for (auto& monitor : monitors) EXPECT_THAT(monitor.take(), SizeIs(2)) << "fair: " << is_fair;
    }
}

// Of one that is known to wait: a question more, and a message.
TEST_P(Costs, AreElevenCommandsAndAMessageWithContention) {
    std::size_t least = SIZE_MAX;
    for (int i = 0; i < 10 && least > 11; ++i) {  // it may ask once more meanwhile
        auto holder = world.lock(fair());
        ASSERT_THAT(holder.acquire_for(50s), Succeeds());
        hand_over_from(holder);  // connections, and scripts
        ASSERT_THAT(holder.acquire_for(50s), Succeeds());
        world.nodes.contended().set(the_resource, true);
        const auto messages = calls(world[0], "publish");
        monitor();
        hand_over_from(holder);
        ASSERT_TRUE(released());
        least = std::min(least, sent() - 5);  // less the release of the holder
        EXPECT_EQ(calls(world[0], "publish") - messages, 1U);
    }
    EXPECT_EQ(least, 11U);
    EXPECT_EQ(calls(world[0], "subscribe"), 1U) << "one SUBSCRIBE a connection";
}

}  // namespace
}  // namespace redlock::test::fair_order_live_test
