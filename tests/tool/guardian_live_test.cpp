// redlock run is killed without a chance to end its command: the guardian does, before others can have the
// lock.
#include "prepared_child.hpp"
#include "scheduling_delay.hpp"
#include "shell_on_a_terminal.hpp"

#include <redlock/detail/not_copied.hpp>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

namespace redlock::test::guardian_live_test {
namespace {

/// A command, and a child of its own, which do not end for SIGTERM.
const std::string stubborn =
    "sh -c 'trap \"\" TERM HUP INT; echo $$ >$DIR/p; mv $DIR/p $DIR/child; while :; do sleep 0.01; done' & "
    "trap '' TERM HUP INT; until [ -e $DIR/child ]; do sleep 0.01; done; "
    "echo $$ >$DIR/q; mv $DIR/q $DIR/parent; while :; do sleep 0.01; done";
/// $g is the guardian.
const std::string find_guardian = "until g=$(pgrep -x -P $PPID redlock-guard); do sleep 0.01; done; ";

const std::string gentle =
    "trap 'echo told >$DIR/t; mv $DIR/t $DIR/told; exit 0' TERM; echo $$ >$DIR/q; mv $DIR/q $DIR/parent; "
    "while :; do sleep 0.01; done";

class Guardian : public testing::Test {
protected:
    static void kill(const std::string& pid) {
        const auto number = std::stoi(pid);
        ASSERT_GT(number, 1);
        ::kill(number, SIGKILL);
    }
    /// Runs a script, which does something to its guardian $g, and kills `redlock run`. The command and its
    /// child must end nevertheless.
    void expect_end_after(const std::string& script) {
        auto tool =
            world.start_until("parent", find_guardian + script + stubborn, {"--ttl", "3s", "--grace", "0.1"});
        tool.signal(SIGKILL);
        EXPECT_TRUE(world.ends("parent"));
        EXPECT_TRUE(world.ends("child"));
    }
    static Clock::time_point now() { return boot_clock().now(); }

    ToolWorld world{3};
};

class EndOfMemory : public Guardian {};

TEST_F(Guardian, EndsTheWholeProcessGroupWithinTheTtl) {
    auto tool = world.start_until("parent", stubborn, {"--ttl", "3s", "--grace", "1h"});
    const SchedulingDelayMonitor monitor;
    const auto killed = now();
    tool.signal(SIGKILL);
    EXPECT_TRUE(world.ends("parent"));
    EXPECT_TRUE(world.ends("child"));
    EXPECT_LE(now() - killed - monitor.delay(), 3s);
    EXPECT_EQ(tool.wait().status, 137);
}

// Not when the lease ends that it had at first.
TEST_F(Guardian, AllowsTheGraceAfterTheLastExtension) {
    auto tool = world.start_until("parent", stubborn, {"--ttl", "3s", "--grace", "0.7s"});
    boot_clock().sleep_until(now() + 4500ms, {});
    const SchedulingDelayMonitor monitor;
    const auto killed = now();
    tool.signal(SIGKILL);
    EXPECT_TRUE(world.ends("parent"));
    EXPECT_GE(now() - killed, 0.6s);
    EXPECT_TRUE(world.ends("child"));
    EXPECT_LE(now() - killed - monitor.delay(), 2s);
}

#if defined(REDLOCK_NO_MEMORY)
// The allocation that fails is that of the message about --max-hold. Nobody is left to end the command then,
// because the guardian ends together with `redlock run`.
TEST_F(EndOfMemory, EndsTheCommandAndReleasesTheLock) {
    const auto* const script = "unset LD_PRELOAD; echo $$ >$DIR/q; mv $DIR/q $DIR/parent; exec sleep 1000";
    Tool tool{world.job(script, {"--max-hold", "2s", "--ttl", "1h"}),
              world.environment("LD_PRELOAD=" REDLOCK_NO_MEMORY)};
    ASSERT_TRUE(world.comes("parent"));
    const auto outcome = tool.wait();
    EXPECT_EQ(outcome.status, 70);
    EXPECT_THAT(outcome.err, HasSubstr("bad_alloc"));
    EXPECT_TRUE(world.ends("parent"));
    EXPECT_EQ(world.keys(), 0U);
}
#endif

TEST_F(Guardian, SendsSigtermFirst) {
    auto tool = world.start_until("parent", gentle);
    tool.signal(SIGKILL);
    EXPECT_TRUE(world.comes("told"));
    EXPECT_TRUE(world.ends("parent"));
}

TEST_F(Guardian, OnlySendsSigtermIfConfigured) {
    const auto* const deaf =
        "trap 'touch $DIR/told' TERM; echo $$ >$DIR/q; mv $DIR/q $DIR/parent; while :; do sleep 0.01; done";
    auto tool = world.start_until("parent", deaf, {"--on-lost", "term", "--ttl", "3s", "--grace", "0"});
    tool.signal(SIGKILL);
    EXPECT_TRUE(world.comes("told"));
    EXPECT_TRUE(wait_until([&] { return world.keys() == 0; })) << "the lease has ended";
    EXPECT_TRUE(lives(world.pid_in("parent")));
    kill(world.pid_in("parent"));
}

TEST_F(Guardian, IsNotStartedIfTheCommandMayContinue) {
    auto tool = world.start_until("parent", gentle, {"--on-lost", "ignore", "--ttl", "3s", "--grace", "0"});
    tool.signal(SIGKILL);
    (void)tool.wait();
    EXPECT_TRUE(wait_until([&] { return world.keys() == 0; }));
    EXPECT_TRUE(lives(world.pid_in("parent")));
    EXPECT_FALSE(world.has("told"));
    kill(world.pid_in("parent"));
}

// It kills its own group, all that it has started; or tells it to end, which takes longer than it waits.
TEST_F(Guardian, SurvivesTheProgramTimeout) {
    for (const std::vector<std::string>& kills :
         {std::vector<std::string>{"timeout", "-s", "KILL", "3"}, {"timeout", "-k", "0.5", "3"}}) {
        const auto job = joined({REDLOCK_TOOL}, world.job(stubborn, {"--ttl", "3s", "--grace", "20s"}));
        support::ChildProcess timeout{{joined(kills, job), world.environment()}};
        ASSERT_TRUE(world.comes("parent"));
        EXPECT_TRUE(world.ends("parent")) << kills[1];
        EXPECT_TRUE(world.ends("child")) << kills[1];
        (void)timeout.wait();
        std::filesystem::remove(world.file("parent"));
        std::filesystem::remove(world.file("child"));
    }
}

// Who reads from the command is not kept waiting by a process that nobody knows.
TEST_F(Guardian, KeepsNoFileOpenAndEndsWithRedlock) {
    const auto pid = "until pid=$(pgrep -x -P $PPID redlock-guard); do :; done; ";
    const auto outcome = world.run(world.job(std::string{pid} + "echo $pid; ls /proc/$pid/fd | wc -l"));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const auto end = outcome.out.find('\n');
    ASSERT_GT(end, 1U) << outcome.out;
    EXPECT_EQ(outcome.out.substr(end + 1), "1\n");
    EXPECT_FALSE(lives(outcome.out.substr(0, end)));
}

// As by `kill -9 -- -$PPID` in the first instant of the command. The guardian is made to be late.
TEST_F(Guardian, LeavesTheProcessGroupBeforeTheCommandStarts) {
    Tool tool{world.job("echo $$ >$DIR/q; mv $DIR/q $DIR/parent; kill -KILL -$PPID; exec sleep 1000"),
              world.environment("LD_PRELOAD=" REDLOCK_LATE_GUARDIAN)};
    ASSERT_TRUE(world.comes("parent"));
    EXPECT_TRUE(world.ends("parent"));
    EXPECT_EQ(tool.wait().status, 137);
}

TEST_F(Guardian, IsReplacedIfKilled) {
    expect_end_after(
        "kill -KILL $g; until n=$(pgrep -x -P $PPID redlock-guard) && [ \"$n\" != $g ]; do sleep 0.01; "
        "done; ");
}

// A guardian that cannot live is not started without a pause.
TEST_F(Guardian, IsReplacedOnceASecondAtMost) {
    const auto start = now();
    const auto outcome = world.run(
        world.job("for i in 1 2 3 4; do until n=$(pgrep -x -P $PPID redlock-guard) && [ \"$n\" != \"$g\" ]; "
                  "do sleep 0.01; done; g=$n; kill -KILL $g; done; exit 5",
                  {"--ttl", "6s"}));
    EXPECT_EQ(outcome.status, 5) << outcome.err;
    EXPECT_GE(now() - start, 3s);
}

// The loop ends when the signal has arrived and the guardian is continued: SIGSTOP is not pending any more,
// and the guardian is not stopped.
TEST_F(Guardian, IsContinuedIfStopped) {
    expect_end_after(
        "kill -STOP $g; while grep -qE '^State:.T|^ShdPnd:.*[4-7c-f][0-9a-f]{4}$' /proc/$g/status; "
        "do sleep 0.01; done; ");
}

// What stops it has left the group, and so is not ended before.
TEST_F(Guardian, DoesNotDelayTheEndIfStopped) {
    const auto outcome = world.run(
        world.job(find_guardian +
                  "export g; setsid sh -c 'while kill -STOP $g && touch $DIR/stopped; do :; done' & "
                  "until [ -e $DIR/stopped ]; do sleep 0.01; done; kill $!; exit 5"));
    EXPECT_EQ(outcome.status, 5);
    EXPECT_EQ(world.keys(), 0U);
}

TEST_F(Guardian, SurvivesTheEndOfTheTerminal) {
    ShellOnATerminal shell{world.environment("SCRIPT=echo $PPID >$DIR/run; " + stubborn)};
    if (!shell.exists()) GTEST_SKIP() << "no pseudo-terminals on this machine";
    shell.enter(REDLOCK_TOOL " run --node-timeout 2s --ttl 3s --grace 0.1 job -- sh -c \"$SCRIPT\"");
    ASSERT_TRUE(world.comes("parent")) << shell.screen();
    const auto run = world.pid_in("run");
    shell.close();
    ASSERT_TRUE(wait_until([&] { return stat_of(run)[4] == "0"; })) << "it has no terminal";
    ASSERT_TRUE(lives(run));
    EXPECT_TRUE(lives(world.pid_in("parent"))) << "it ignores that, and keeps its lock";
    kill(run);
    EXPECT_TRUE(world.ends("parent"));
    EXPECT_TRUE(world.ends("child"));
}

// An unprivileged guardian cannot ask the kernel never to be killed. The score is that of the caller, who may
// have asked for the opposite. The guardian is made to be late.
TEST_F(Guardian, TakesBackThatItIsToBeKilledFirstBeforeTheCommandStarts) {
    const std::string score = "/proc/self/oom_score_adj";
    const auto job = find_guardian + "cat /proc/$g/oom_score_adj >$DIR/score";
    const auto set_score =
        "echo 500 >" + score + " && echo 0 >" + score + " && echo 500 >" + score + " || exit 99; exec \"$@\"";
    const auto words =
        joined({"sh", "-c", set_score, "sh", "env", "LD_PRELOAD=" REDLOCK_LATE_GUARDIAN, REDLOCK_TOOL},
               world.job(job));
    const int status = run_prepared(world, words, [] {
                           ::prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE, 0, 0, 0);  // fails without it
                           return true;
                       }).status;
    if (status == 99) GTEST_SKIP() << "the score of this process cannot be changed, or not be taken back";
    EXPECT_EQ(status, 0);
    EXPECT_EQ(world.in("score"), "0\n");
}

/// As a container, and `words` are its first process.
std::vector<std::string> in_container(const std::vector<std::string>& words) {
    return joined({"unshare", "--pid", "--fork", "--mount-proc", "--kill-child"}, words);
}

class GuardianInAContainer : public Guardian {
protected:
    void SetUp() override {
        if (world.status_of(in_container({"true"})) != 0)
            GTEST_SKIP() << "unshare may not make a namespace of processes here";
    }
};

// PID 1 does not wait for orphans, as many programs in containers: their zombies are no reason to go on. And
// a signal for all, or for the group of the guardian, would reach the bystander.
TEST_F(GuardianInAContainer, EndsTheProcessGroupAndNothingElse) {
    const auto* const script =
        "lives() { grep -q '^State:.[^Z]' /proc/$1/status 2>/dev/null; }; "
        "setsid sleep 1000 & bystander=$!; \"$@\" & run=$!; "
        "until [ -e $DIR/parent ]; do sleep 0.01; done; kill -KILL $run; "
        "while lives $(cat $DIR/parent) || lives $(cat $DIR/child); do sleep 0.01; done; "
        "while pgrep -x -r S,R,D redlock-guard >/dev/null; do sleep 0.01; done; lives $bystander";
    const auto words = joined({"sh", "-c", script, "sh", REDLOCK_TOOL},
                              world.job(stubborn, {"--ttl", "3s", "--grace", "0.1"}));
    EXPECT_EQ(world.status_of(in_container(words)), 0);
}

TEST_F(GuardianInAContainer, EndsWithRedlockAsPid1) {
    const auto words =
        joined({REDLOCK_TOOL}, world.job(find_guardian + "[ $g -gt 1 ] && [ $PPID = 1 ] && exit 5"));
    EXPECT_EQ(world.status_of(in_container(words)), 5);
    EXPECT_EQ(world.keys(), 0U);
}

/// Processes that together may have only so much memory.
class MemoryGroup : detail::NotCopied {
public:
    explicit MemoryGroup(const std::string& limit) {
        std::ifstream groups{"/proc/self/cgroup"};
        for (std::string line; std::getline(groups, line);) {
            const auto path = line.substr(line.rfind(':') + 1).substr(1);
            if (line.find(":memory:") != line.npos &&
                make("/sys/fs/cgroup/memory" / std::filesystem::path{path}))
                limited_ = set("memory.limit_in_bytes", limit);
            else if (line.starts_with("0::") && make("/sys/fs/cgroup" / std::filesystem::path{path}))
                limited_ = set("memory.max", limit);
            if (limited_) return;
            remove();
        }
    }
    ~MemoryGroup() {
        EXPECT_TRUE(wait_until([&] { return remove(); })) << path_ << " is in use";
    }

    bool exists() const { return limited_; }
    std::string path() const { return path_.string(); }

private:
    bool make(const std::filesystem::path& parent) {
        std::error_code error;
        path_ = parent / ("redlock-test-" + std::to_string(::getpid()));
        return std::filesystem::create_directory(path_, error);
    }
    /// Only a file that is there: those of the group are made with it.
    bool set(const std::string& name, const std::string& value) const {
        if (!std::filesystem::exists(path_ / name)) return false;
        std::ofstream file{path_ / name};
        return static_cast<bool>(file << value << std::flush);
    }
    bool remove() const { return ::rmdir(path_.c_str()) == 0 || !std::filesystem::exists(path_); }

    std::filesystem::path path_{};
    bool limited_ = false;
};

// A part of the command eats up the memory. The kernel kills redlock run for it, then the part, which ignores
// SIGTERM. The guardian would be the second to be killed. While the kernel takes back the memory of the part,
// it can kill one process more, the largest. So the rest of the command is larger than the guardian.
TEST_F(Guardian, SurvivesRedlockIfMemoryIsShort) {
    MemoryGroup memory{"64M"};
    if (!memory.exists()) GTEST_SKIP() << "no memory control group may be made here";
    const auto script =
        "echo 0 >/proc/self/oom_score_adj; { until [ -e $DIR/parent ]; do sleep 0.01; done; "
        "trap '' TERM; exec tail /dev/zero; } & large=$(head -c 4000000 /dev/zero | tr '\\0' x); " +
        stubborn;
    const auto* const in_group =
        "echo $$ >$GROUP/cgroup.procs; echo 1000 >/proc/self/oom_score_adj; exec \"$@\"";
    const auto words = joined({"sh", "-c", in_group, "sh", REDLOCK_TOOL},
                              world.job(script, {"--ttl", "10s", "--grace", "1"}));
    support::ChildProcess run{{words, world.environment("GROUP=" + memory.path())}};
    ASSERT_TRUE(world.comes("parent"));
    EXPECT_TRUE(wait_until([&] { return !run.running(); }));
    run.kill();
    EXPECT_EQ(run.wait(), 137);
    EXPECT_TRUE(world.ends("parent"));
    EXPECT_TRUE(world.ends("child"));
}

}  // namespace
}  // namespace redlock::test::guardian_live_test
