// redlock run is killed without a chance to end its command: the guardian does, before others can have the
// lock.
#include "scheduling_delay.hpp"
#include "tool_world.hpp"

#include <sys/wait.h>

#include <chrono>
#include <string>
#include <vector>

namespace redlock::test {
namespace {

using namespace std::chrono_literals;

bool lives(const std::string& pid) {
    const auto stat = content("/proc/" + pid + "/stat");
    const auto state = stat.rfind(") ");
    return state != stat.npos && stat.at(state + 2) != 'Z';
}

/// A command, and a child of its own, which do not end for SIGTERM.
const std::string stubborn =
    "sh -c 'trap \"\" TERM HUP INT; echo $$ >$DIR/p; mv $DIR/p $DIR/child; while :; do sleep 0.01; done' & "
    "trap '' TERM HUP INT; until [ -e $DIR/child ]; do sleep 0.01; done; "
    "echo $$ >$DIR/q; mv $DIR/q $DIR/parent; while :; do sleep 0.01; done";
const std::string gentle =
    "trap 'echo told >$DIR/t; mv $DIR/t $DIR/told; exit 0' TERM; echo $$ >$DIR/q; mv $DIR/q $DIR/parent; "
    "while :; do sleep 0.01; done";

class Guardian : public testing::Test {
protected:
    bool ends(const std::string& name) {
        const auto pid = world.pid_in(name);
        return wait_until([&] { return !lives(pid); }, 20s);
    }
    static Clock::time_point now() { return boot_clock().now(); }

    ToolWorld world{3};
};

TEST_F(Guardian, EndsTheWholeGroupWithinTheTtl) {
    auto tool = world.start(world.job(stubborn, {"--ttl", "3s", "--grace", "1h"}));
    ASSERT_TRUE(world.comes("parent"));
    const SchedulingDelayMonitor monitor;
    const auto killed = now();
    tool.signal(SIGKILL);
    EXPECT_TRUE(ends("parent"));
    EXPECT_TRUE(ends("child"));
    EXPECT_LE(now() - killed - monitor.delay(), 3s);
    EXPECT_EQ(tool.wait().status, 137);
}

// Not when the lease ends that it had at first.
TEST_F(Guardian, GivesTheGraceAlsoWhenTheLockWasExtended) {
    auto tool = world.start(world.job(stubborn, {"--ttl", "3s", "--grace", "0.7s"}));
    ASSERT_TRUE(world.comes("parent"));
    boot_clock().sleep_until(now() + 4500ms, {});
    const SchedulingDelayMonitor monitor;
    const auto killed = now();
    tool.signal(SIGKILL);
    EXPECT_TRUE(ends("parent"));
    EXPECT_GE(now() - killed, 0.6s);
    EXPECT_TRUE(ends("child"));
    EXPECT_LE(now() - killed - monitor.delay(), 2s);
}

TEST_F(Guardian, TellsTheCommandFirst) {
    auto tool = world.start(world.job(gentle));
    ASSERT_TRUE(world.comes("parent"));
    tool.signal(SIGKILL);
    EXPECT_TRUE(world.comes("told"));
    EXPECT_TRUE(ends("parent"));
}

TEST_F(Guardian, OnlyTellsIfSoAsked) {
    const auto* const deaf =
        "trap 'touch $DIR/told' TERM; echo $$ >$DIR/q; mv $DIR/q $DIR/parent; while :; do sleep 0.01; done";
    auto tool = world.start(world.job(deaf, {"--on-lost", "term", "--ttl", "3s", "--grace", "0"}));
    ASSERT_TRUE(world.comes("parent"));
    tool.signal(SIGKILL);
    EXPECT_TRUE(world.comes("told"));
    EXPECT_TRUE(wait_until([&] { return world.keys() == 0; })) << "the lease has ended";
    EXPECT_TRUE(lives(world.pid_in("parent")));
    ::kill(std::stoi(world.pid_in("parent")), SIGKILL);
}

TEST_F(Guardian, IsNotThereWhereTheCommandIsToGoOn) {
    auto tool = world.start(world.job(gentle, {"--on-lost", "ignore", "--ttl", "3s", "--grace", "0"}));
    ASSERT_TRUE(world.comes("parent"));
    tool.signal(SIGKILL);
    (void)tool.wait();
    EXPECT_TRUE(wait_until([&] { return world.keys() == 0; }));
    EXPECT_TRUE(lives(world.pid_in("parent")));
    EXPECT_FALSE(world.has("told"));
    ::kill(std::stoi(world.pid_in("parent")), SIGKILL);
}

// It kills its own group: timeout, and all that it has started.
TEST_F(Guardian, OutlivesTimeout) {
    auto words = world.job(stubborn, {"--ttl", "3s", "--grace", "0.1"});
    words.insert(words.begin(), {"timeout", "-s", "KILL", "0.7", REDLOCK_TOOL});
    support::ChildProcess timeout{{words, world.environment()}};
    ASSERT_TRUE(world.comes("parent"));
    EXPECT_TRUE(ends("parent"));
    EXPECT_TRUE(ends("child"));
    (void)timeout.wait();
}

// Who reads from the command is not kept waiting by a process that nobody knows.
TEST_F(Guardian, KeepsNothingOpenAndGoesWithUs) {
    const auto pid = "pid=$(pgrep -x -P $PPID redlock-guard); ";
    const auto outcome = world.run(world.job(std::string{pid} + "echo $pid; ls /proc/$pid/fd | wc -l"));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const auto end = outcome.out.find('\n');
    ASSERT_GT(end, 1U) << outcome.out;
    EXPECT_EQ(outcome.out.substr(end + 1), "1\n");
    EXPECT_FALSE(lives(outcome.out.substr(0, end)));
}

}  // namespace
}  // namespace redlock::test
