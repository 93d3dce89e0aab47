// redlock run --fair: those that wait stand in a queue, say so, and are woken.
#include "tool_world.hpp"

#include <deque>
#include <string>
#include <vector>

namespace redlock::test::fair_live_test {
namespace {

using testing::ContainsRegex;
using testing::MatchesRegex;

class Fair : public testing::Test {
protected:
    std::vector<std::string> arguments(const std::string& script, std::vector<std::string> options = {}) {
        options.emplace_back("--fair");
        return world.job(script, options);
    }
    Tool start(const std::string& script, const std::vector<std::string>& options = {}) {
        return world.start(arguments(script, options));
    }

    /// The first of the nodes keeps it.
    bool queue_has(int waiters) {
        return wait_until([&] {
            return world[0].command({"ZCARD", "{job}:queue"}) == std::to_string(waiters);
        });
    }

    ToolWorld world{3};
};

TEST_F(Fair, RunsCommandsInTheOrderOfArrival) {
    auto holder = start(until_go);
    ASSERT_TRUE(world.comes("begun"));
    std::deque<Tool> waiters;
    for (int i = 1; i <= 3; ++i) {
        waiters.emplace_back(arguments("echo " + std::to_string(i) + " >>$DIR/log"), world.environment());
        ASSERT_TRUE(queue_has(i));
    }
    world.touch("go");
    for (auto& waiter : waiters) EXPECT_EQ(waiter.wait().status, 0);
    EXPECT_EQ(holder.wait().status, 0);
    EXPECT_EQ(world.in("log"), "1\n2\n3\n");
}

// acquire() gives up its place after two pauses.
TEST_F(Fair, KeepsItsPlaceForAsLongAsItWaits) {
    world.occupy();
    auto waiter = start("true", {"--retry-delay", "20ms"});
    ASSERT_TRUE(queue_has(1));
    const auto asks = [&, before = calls(world[0], "zadd")](std::size_t more) {
        return wait_until([&] { return calls(world[0], "zadd") >= before + more; });
    };
    const auto score = [&] {
        const auto entry = world[0].command({"ZRANGE", "{job}:queue", "0", "-1", "WITHSCORES"});
        return entry.find('\n') == entry.npos ? 0 : std::stod(entry.substr(entry.find('\n') + 1));
    };
    ASSERT_TRUE(asks(20));
    const auto time = world[0].command({"TIME"});
    const auto later = std::stod(time) * 1e6 + std::stod(time.substr(time.find('\n') + 1));
    ASSERT_TRUE(asks(60));
    EXPECT_TRUE(wait_until([&] { return score() > 0; }));
    EXPECT_LT(score(), later);
    world.steal();
    EXPECT_EQ(waiter.wait().status, 0);
}

TEST_F(Fair, ReportsItsPlaceIfVerbose) {
    auto holder = start(until_go);
    ASSERT_TRUE(world.comes("begun"));
    auto first = start("true", {"-v"});
    ASSERT_TRUE(queue_has(1));
    auto second = start("true", {"-v"});
    ASSERT_TRUE(queue_has(2));
    auto silent = start("true");
    ASSERT_TRUE(queue_has(3));
    world.touch("go");
    EXPECT_THAT(
        first.wait().err,
        ContainsRegex("redlock: waiting for job: held for at most [23]?[0-9] s more, nobody in front\n"));
    EXPECT_THAT(second.wait().err, HasSubstr("s more, 1 in front\n"));
    EXPECT_EQ(silent.wait().err, "");
    EXPECT_EQ(holder.wait().status, 0);
}

TEST_F(Fair, ReportsItsLastPlaceIfRefusedAfterAWait) {
    world.occupy();
    const auto outcome = world.run(world.job("true", {"--fair", "--wait", "3s"}));
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err,
                MatchesRegex("redlock: job: held by another on . of 3 nodes, for at most [0-9]+ ms "
                             "more, 0 in front, [0-9]+ attempts; now held by \"another\"[^\n]*\n"));
}

// `timeout 5 redlock acquire --fair job`: the next holder need not find out that this waiter has gone.
TEST_F(Fair, AcquireLeavesTheQueueOnASignal) {
    world.occupy();
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
        auto waiter = world.start({"acquire", "--fair", "--json", "job"});
        ASSERT_TRUE(queue_has(1));
        waiter.signal(signal);
        const auto outcome = waiter.wait();
        EXPECT_EQ(outcome.status, 128 + signal);
        EXPECT_EQ(outcome.out, "");
        EXPECT_EQ(world[0].command({"EXISTS", "{job}:queue"}), "0") << signal;
    }
}

TEST_F(Fair, WaitsForNodesThatAreDownAndReportsIt) {
    world[2].kill();
    for (const auto& words : {arguments("true"), {"acquire", "--fair", "job"}}) {
        world[1].kill();
        auto tool = world.start(words);
        ASSERT_TRUE(wait_until([&] { return tool.err().find("; waiting") != std::string::npos; }));
        world[1].restart();
        EXPECT_EQ(tool.wait().status, 0);
    }
}

TEST_F(Fair, DoesNotReportThatItWaitsWithNonblock) {
    for (auto& node : world) ASSERT_EQ(node.command({"CONFIG", "SET", "maxmemory", "1"}), "OK");
    for (const auto& words : {arguments("true", {"-n"}),
                              arguments("true", {"--wait", "0"}),
                              {"acquire", "-n", "--fair", "job"}}) {
        const auto outcome = world.run(words);
        EXPECT_EQ(outcome.status, 69) << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr("out of memory"));
        EXPECT_THAT(outcome.err, testing::Not(HasSubstr("waiting")));
    }
}

// From script to script: the one waits, the other wakes it.
TEST_F(Fair, LetsAcquireWaitAndReleaseWakeIt) {
    const auto lease = world.run({"acquire", "--fair", "job"}).out;
    auto waiter = world.start({"acquire", "--fair", "--retry-delay", "1m", "job"});
    ASSERT_TRUE(queue_has(1));
    EXPECT_EQ(world.run({"release", "--fair", "--owner", lease, "job"}).status, 0);
    EXPECT_EQ(calls(world[0], "publish"), 1U);
    const auto second = waiter.wait();
    EXPECT_EQ(second.status, 0);
    EXPECT_EQ(world.run({"release", "--owner", second.out, "job"}).status, 0);
}

}  // namespace
}  // namespace redlock::test::fair_live_test
