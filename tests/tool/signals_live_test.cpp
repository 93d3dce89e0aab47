// redlock run and those who want it to end.
#include "subreaper.hpp"
#include "tool_world.hpp"

#include <sys/wait.h>

#include <map>
#include <string>
#include <vector>

namespace redlock::test::signals_live_test {
namespace {

class Signals : public testing::TestWithParam<int> {
protected:
    ToolWorld world{3};
};

std::string name_of_signal(const testing::TestParamInfo<int>& it) {
    static const std::map<int, std::string> names{{SIGTERM, "Term"}, {SIGINT, "Int"},       {SIGHUP, "Hup"},
                                                  {SIGQUIT, "Quit"}, {SIGUSR1, "Usr1"},     {SIGUSR2, "Usr2"},
                                                  {SIGALRM, "Alrm"}, {SIGVTALRM, "Vtalrm"}, {SIGPROF, "Prof"},
                                                  {SIGXCPU, "Xcpu"}, {SIGWINCH, "Winch"}};
    return names.at(it.param);
}

const std::string until_told = "touch $DIR/begun; while :; do sleep 0.01; done";

// They also reach the processes that the command has started. The command decides what to do about them, and
// with which status it ends.
TEST_P(Signals, ArePassedOnToTheCommand) {
    const auto number = std::to_string(GetParam());
    auto tool = world.start_until("begun", "trap 'echo heard; exit 9' " + number +
                                               "; sh -c 'trap \"touch $DIR/heard; exit\" " + number + "; " +
                                               until_told + "'");
    EXPECT_EQ(world.keys(), 3U);
    tool.signal(GetParam());
    const auto outcome = tool.wait();
    EXPECT_EQ(outcome.status, 9);
    EXPECT_EQ(outcome.out, "heard\n");
    EXPECT_TRUE(world.has("heard"));
    EXPECT_EQ(world.keys(), 0U);
}

class SignalsInAWait : public Signals {};

TEST_P(SignalsInAWait, EndIt) {
    world.occupy();
    // A process that a signal such as SIGQUIT kills then writes its memory to a file.
    Tool tool{world.job("touch $DIR/begun", {"--retry-delay", "1h"}),
              world.environment("BEFORE=ulimit -S -c $(ulimit -H -c)")};
    ASSERT_TRUE(wait_until([&] { return calls(world[0], "set") >= 2; }));
    tool.signal(GetParam());
    siginfo_t end{};
    ASSERT_TRUE(wait_until([&] {
        const auto flags = WEXITED | WNOWAIT | WNOHANG;
        return ::waitid(P_PID, static_cast<id_t>(tool.pid()), &end, flags) == 0 && end.si_pid != 0;
    }));
    EXPECT_EQ(end.si_code, CLD_KILLED) << "a shell around us is to see the signal, and no file our passwords";
    EXPECT_EQ(tool.wait().status, 128 + GetParam());
    EXPECT_FALSE(world.has("begun"));
}

// A waiter that was killed would stand in the queue until its ticket expires.
TEST_P(SignalsInAWait, EndItWithoutATicketInTheQueue) {
    const auto waiters = [&] { return world[0].command({"ZCARD", "{job}:queue"}); };
    world.occupy();
    auto tool = world.start(world.job("true", {"--fair"}));
    ASSERT_TRUE(wait_until([&] { return waiters() == "1"; }));
    tool.signal(GetParam());
    EXPECT_EQ(tool.wait().status, 128 + GetParam());
    EXPECT_EQ(waiters(), "0");
}

INSTANTIATE_TEST_SUITE_P(EachSignal, Signals,
                         testing::Values(SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGALRM, SIGWINCH),
                         name_of_signal);
INSTANTIATE_TEST_SUITE_P(EachSignal, SignalsInAWait,
                         testing::Values(SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM,
                                         SIGVTALRM, SIGPROF, SIGXCPU),
                         name_of_signal);

/// Returns true if no signal for the process is pending.
bool has_handled_its_signals(pid_t process) {
    const auto status = content("/proc/" + std::to_string(process) + "/status");
    return status.find("ShdPnd:\t0000000000000000") != std::string::npos;
}

class EndOfRun : public testing::Test {
protected:
    /// Stops the command when it has written its pid.
    void stop_command() {
        ASSERT_TRUE(world.comes("pid"));
        const auto pid = world.pid_in("pid");
        ::kill(std::stoi(pid), SIGSTOP);
        ASSERT_TRUE(wait_until([&] { return support::state_of(pid) == 'T'; }));
    }

    ToolWorld world{3};
};

/// The environment of a command that is started with this signal ignored.
std::vector<std::string> ignoring(const ToolWorld& world, int signal) {
    return world.environment("BEFORE=trap '' " + std::to_string(signal));
}

// nohup redlock run ... & in a script: neither closing the terminal nor Ctrl-C there ends it or its command.
TEST_P(Signals, IgnoredFromTheStartEndNeitherRedlockNorTheCommand) {
    Tool tool{world.job(until_go + "; exit 6"), ignoring(world, GetParam())};
    ASSERT_TRUE(world.comes("begun"));
    tool.signal(GetParam());
    world.touch("go");
    EXPECT_EQ(tool.wait().status, 6);
}

TEST_P(Signals, IgnoredFromTheStartDoNotEndAWait) {
    world.occupy();
    Tool tool{world.job("exit 6", {"--retry-delay", "50ms"}), ignoring(world, GetParam())};
    ASSERT_TRUE(wait_until([&] { return calls(world[0], "set") >= 2; }));
    tool.signal(GetParam());
    EXPECT_TRUE(wait_until([&] { return calls(world[0], "set") >= 6; })) << "it goes on";
    world.steal();
    EXPECT_EQ(tool.wait().status, 6);
}

class SignalDispositions : public EndOfRun {};

// What we catch and ignore ourselves is not for the command to inherit.
TEST_F(SignalDispositions, OfTheCommandAreThoseOfTheCaller) {
    const auto ignored = [&](const std::vector<std::string>& environment) {
        Tool tool{{"run", "--node-timeout", "2s", "job", "--", "grep", "SigIgn", "/proc/self/status"},
                  environment};
        return std::stoull(tool.wait().out.substr(7), nullptr, 16);
    };
    EXPECT_EQ(ignored(world.environment()), 0U);
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGUSR1,
                             SIGUSR2, SIGPIPE, SIGXFSZ})
        EXPECT_EQ(ignored(ignoring(world, signal)), 1ULL << (signal - 1)) << signal;
}

/// What a script starts in the background, and waits for until it is there. It ignores SIGTERM and SIGINT.
const std::string leave_deaf_process =
    "sh -c 'trap \"\" TERM INT; echo $$ >$DIR/p; mv $DIR/p $DIR/deaf; while :; do sleep 0.01; done' & "
    "until [ -e $DIR/deaf ]; do sleep 0.01; done; ";

// What a command that was ended leaves behind is ended as well, in the end by SIGKILL.
TEST_F(EndOfRun, LeavesNoProcessOfTheGroup) {
    auto tool = world.start_until("begun", leave_deaf_process + until_told, {"--grace", "0.2"});
    tool.signal(SIGINT);
    EXPECT_EQ(tool.wait().status, 130);
    EXPECT_FALSE(lives(world.pid_in("deaf")));
    EXPECT_EQ(world.keys(), 0U);
}

TEST_F(EndOfRun, ReleasesALockThatIsAcquiredAfterTheSignal) {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"run"}, {"run", "--min-hold", "1h"}, {"acquire"}}) {
        const auto pings = calls(world[0], "ping");
        const auto sets = calls(world[0], "set");
        world[0].command({"CLIENT", "PAUSE", "60000", "WRITE"});
        auto words = command;
        words.insert(words.end(), {"-n", "--ttl", "1h", "--node-timeout", "20s", "job"});
        if (command.front() == "run") words.emplace_back("true");
        auto tool = world.start(words);
        ASSERT_TRUE(wait_until([&] { return calls(world[0], "ping") > pings; }));
        tool.signal(SIGTERM);
        world[0].command({"CLIENT", "UNPAUSE"});
        const auto outcome = tool.wait();
        EXPECT_EQ(outcome.status, 143) << command.back();
        EXPECT_EQ(outcome.out, "");
        EXPECT_GT(calls(world[0], "set"), sets);
        EXPECT_EQ(world.keys(), 0U) << command.back();
    }
}

// A signal that ends what runs ends what is stopped, too.
TEST_F(EndOfRun, EndsAStoppedCommandOnASignal) {
    auto tool = world.start_until("begun", "echo $$ >$DIR/p; mv $DIR/p $DIR/pid; " + until_told);
    stop_command();
    tool.signal(SIGTERM);
    EXPECT_EQ(tool.wait().status, 143);
    EXPECT_EQ(world.keys(), 0U);
}

// A command that is stopped keeps its lock, and goes on when told so by way of us.
TEST_F(EndOfRun, DoesNotComeWhileTheCommandIsStopped) {
    auto tool = world.start(world.job(
        "echo $$ >$DIR/p; mv $DIR/p $DIR/pid; until [ -e $DIR/go ]; do sleep 0.01; done", {"--ttl", "3s"}));
    stop_command();
    world.touch("go");
    EXPECT_FALSE(wait_until([&] { return world.keys() <= 1; }, 4s)) << "it must stay locked on a majority";
    EXPECT_TRUE(tool.running());
    tool.signal(SIGCONT);
    EXPECT_EQ(tool.wait().status, 0);
}

// There is no terminal. A process that does not handle these signals would stop, and nobody would continue
// it.
TEST_F(EndOfRun, ComesAfterSignalsOfATerminalThatOnlyTheCommandHandles) {
    auto tool = world.start_until("begun", "trap 'touch $DIR/heard' TTIN TTOU; sh -c '" + until_go +
                                               "' & until wait; do :; done; exit 6");
    for (const int signal : {SIGTTIN, SIGTTOU}) {
        tool.signal(signal);
        EXPECT_TRUE(world.comes("heard")) << signal;
        std::filesystem::remove(world.file("heard"));
    }
    world.touch("go");
    EXPECT_EQ(tool.wait().status, 6);
}

TEST_F(EndOfRun, ComesIfTheCommandDoesNotHandleTheSignalsOfATerminal) {
    auto tool = world.start_until("begun", until_go + "; exit 6");
    for (const int signal : {SIGTTIN, SIGTTOU}) {
        tool.signal(signal);
        ASSERT_TRUE(wait_until([&] { return has_handled_its_signals(tool.pid()); }));
    }
    world.touch("go");
    EXPECT_EQ(tool.wait().status, 6);
}

// Both were stopped, and the lock was lost meanwhile. A command that is continued before it gets SIGTERM
// works without the lock. The preloaded library makes that long enough to be seen.
TEST_F(EndOfRun, ComesBeforeTheCommandContinuesWithoutTheLock) {
    Tool tool{world.job("echo $$ >$DIR/p; mv $DIR/p $DIR/pid; until [ -e $DIR/go ]; do sleep 0.01; done; "
                        "touch $DIR/worked",
                        {"--ttl", "3s"}),
              world.environment("LD_PRELOAD=" REDLOCK_LATE_CONTINUE)};
    stop_command();
    ASSERT_TRUE(wait_until([&] { return has_handled_its_signals(tool.pid()); }));
    tool.signal(SIGSTOP);
    ASSERT_TRUE(wait_until([&] { return support::state_of(std::to_string(tool.pid())) == 'T'; }));
    ASSERT_TRUE(wait_until([&] { return world.keys() == 0; }));
    world.occupy();
    world.touch("go");
    tool.signal(SIGCONT);
    EXPECT_EQ(tool.wait().status, 75);
    EXPECT_FALSE(world.has("worked"));
}

// The kernel kills for want of memory, for example. Nobody waits for what is left of such a command.
TEST_F(EndOfRun, EndsProcessesOfAKilledCommand) {
    auto tool = world.start_until("deaf", leave_deaf_process + "kill -KILL $$", {"--grace", "0.2"});
    EXPECT_TRUE(world.ends("deaf"));
    EXPECT_EQ(tool.wait().status, 137);
    EXPECT_EQ(world.keys(), 0U);
}

TEST_F(EndOfRun, EndsProcessesOfAKilledCommandWithSigtermFirst) {
    auto tool =
        world.start(world.job("sh -c 'trap \"touch $DIR/heard; exit\" TERM; touch $DIR/left; "
                              "while :; do sleep 0.01; done' & "
                              "until [ -e $DIR/left ]; do sleep 0.01; done; kill -KILL $$",
                              {"--grace", "1h"}));
    EXPECT_EQ(tool.wait().status, 137);
    EXPECT_TRUE(world.has("heard"));
}

TEST_F(EndOfRun, EndsRemainingProcessesOnALaterSignal) {
    auto tool = world.start(world.job(leave_deaf_process + "exit 5", {"--grace", "0.2"}));
    ASSERT_TRUE(wait_until([&] { return tool.err().find("left running") != std::string::npos; }));
    EXPECT_TRUE(lives(world.pid_in("deaf")));
    tool.signal(SIGTERM);
    EXPECT_TRUE(world.ends("deaf"));
    EXPECT_EQ(tool.wait().status, 5);
    EXPECT_EQ(world.keys(), 0U);
}

// A process whose parent has ended stays a zombie, and so in its group, until somebody waits for it. The
// first process of a container may not, and neither does this one.
TEST_F(EndOfRun, ComesWithTheEndOfTheLastOrphan) {
    const Subreaper idle;
    auto tool = world.start(world.job("sh -c 'until [ -e $DIR/go ]; do sleep 0.01; done' & exit 5"));
    ASSERT_TRUE(wait_until([&] { return tool.err().find("left running") != std::string::npos; }));
    world.touch("go");
    EXPECT_TRUE(wait_until([&] { return !tool.running(); }, 20s));
    if (tool.running()) tool.signal(SIGKILL);
    EXPECT_EQ(tool.wait().status, 5);
}

/// Starts a daemon, which lives on in a session of its own, and never waits for its child. The child has
/// ended, and stays a zombie in the process group of the command. It ends after the daemon has become
/// `sleep`, because a shell waits for children that it has not started.
const std::string leave_zombie =
    "sh -c 'until [ -s $DIR/daemon ] && grep -q sleep /proc/$(cat $DIR/daemon)/comm; do sleep 0.01; done & "
    "echo $! >$DIR/zombie; "
    "exec setsid sh -c \"echo \\$\\$ >$DIR/daemon; exec sleep 1000\"' & "
    "until [ -s $DIR/daemon ] && grep -q '^State:.Z' /proc/$(cat $DIR/zombie)/status; do sleep 0.01; done; "
    "touch $DIR/begun; ";

class ZombieOfADaemon : public EndOfRun {
protected:
    ~ZombieOfADaemon() override {
        if (!world.in("daemon").empty()) ::kill(std::stoi(world.pid_in("daemon")), SIGKILL);
    }

    void expect_end(Tool& tool, int status) {
        EXPECT_TRUE(wait_until([&] { return !tool.running(); }, 20s)) << tool.err();
        if (tool.running()) tool.signal(SIGKILL);
        EXPECT_EQ(tool.wait().status, status);
        EXPECT_TRUE(!world.has("begun") || lives(world.pid_in("daemon")));
        EXPECT_EQ(world.keys(), 0U);
    }
};

TEST_F(ZombieOfADaemon, IsNoProcessThatTheCommandLeftRunning) {
    auto tool = world.start(world.job(leave_zombie + "exit 5"));
    expect_end(tool, 5);
    EXPECT_THAT(tool.err(), Not(HasSubstr("left running")));
}

TEST_F(ZombieOfADaemon, DoesNotDelayTheEndAfterMaxHold) {
    auto tool =
        world.start(world.job(leave_zombie + "exec sleep 1000", {"--max-hold", "2", "--grace", "0.1"}));
    expect_end(tool, 75);
}

TEST_F(ZombieOfADaemon, DoesNotDelayTheEndAfterASignal) {
    auto tool = world.start_until("begun", leave_zombie + "exec sleep 1000", {"--grace", "0.1"});
    tool.signal(SIGTERM);
    expect_end(tool, 143);
}

// The living process is found beside the zombie, even after the first process that was found has ended.
TEST_F(ZombieOfADaemon, DoesNotHideProcessesThatTheCommandLeftRunning) {
    auto tool = world.start(world.job(leave_zombie +
                                      "for i in 1 2; do sh -c \"until [ -e $DIR/go$i ]; do sleep 0.01; done; "
                                      "touch $DIR/left$i\" & done; exit 5"));
    ASSERT_TRUE(wait_until([&] { return tool.err().find("left running") != std::string::npos; }));
    world.touch("go1");
    EXPECT_TRUE(world.comes("left1"));
    EXPECT_EQ(world.keys(), 3U);
    world.touch("go2");
    expect_end(tool, 5);
    EXPECT_TRUE(world.has("left2"));
}

}  // namespace
}  // namespace redlock::test::signals_live_test
