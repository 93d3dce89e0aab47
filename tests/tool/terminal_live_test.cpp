// redlock run at a terminal: the keys do to the command what they would do without us.
#include "shell_on_a_terminal.hpp"
#include "tool_world.hpp"

#include <string>

namespace redlock::test::terminal_live_test {
namespace {

class Terminal : public testing::Test {
protected:
    void SetUp() override {
        if (!shell.exists()) GTEST_SKIP() << "no pseudo-terminals on this machine";
    }

    std::string redlock_run(const std::string& rest) const {
        return std::string{REDLOCK_TOOL} + " run --node-timeout 2s " + rest;
    }

    /// $? of what ended last.
    void expect_status(int status) {
        shell.enter("echo status''=$?.");
        EXPECT_TRUE(shell.shows("status=" + std::to_string(status) + ".")) << shell.screen();
    }

    /// Ctrl-Z when the command has begun: the shell takes over.
    void suspend() {
        ASSERT_TRUE(world.comes("begun")) << shell.screen();
        shell.suspend();
        ASSERT_TRUE(shell.shows("Stopped")) << shell.screen();
        ASSERT_TRUE(shell.is_back()) << shell.screen();
    }

    /// Returns true if the process group of the process has the terminal.
    static bool in_foreground(const std::string& pid) {
        const auto stat = stat_of(pid);
        return !stat[2].empty() && stat[2] == stat[5];
    }

    bool unlocked() {
        return wait_until([&] { return world.keys() == 0; });
    }

    ToolWorld world{3};
    ShellOnATerminal shell{world.environment()};
};

TEST_F(Terminal, ShowsThatACommandWaits) {
    world.occupy();
    for (const std::string command : {" acquire --node-timeout 2s job", " run --node-timeout 2s job true"}) {
        shell.enter(REDLOCK_TOOL + command);
        EXPECT_TRUE(shell.shows("redlock: waiting for job: held by another on ")) << shell.screen();
        shell.interrupt();
        EXPECT_TRUE(shell.is_back()) << shell.screen();
    }
    shell.enter(REDLOCK_TOOL " acquire --node-timeout 2s --fair job");
    EXPECT_TRUE(shell.shows("redlock: waiting for job: held for at most ")) << shell.screen();
    shell.interrupt();
    EXPECT_TRUE(shell.is_back()) << shell.screen();
}

TEST_F(Terminal, ShowsNothingOfAQuietCommandThatWaits) {
    world.occupy();
    const auto attempts = calls(world[0], "set");
    shell.enter(REDLOCK_TOOL " acquire --node-timeout 2s --quiet job");
    EXPECT_TRUE(wait_until([&] { return calls(world[0], "set") >= attempts + 5; }));
    shell.interrupt();
    EXPECT_TRUE(shell.is_back()) << shell.screen();
    EXPECT_THAT(shell.screen(), testing::Not(HasSubstr("waiting for")));
}

/// A key that ends programs without a handler: Ctrl-C or Ctrl-\.
struct Key {
    const char* name;
    const char* signal;
    int status;  // of a program that it ends
    void (ShellOnATerminal::*press)();
};

class TerminalKey : public Terminal, public testing::WithParamInterface<Key> {
protected:
    /// Presses the key when the command in this line has begun. If Ctrl-\ ends a program, the kernel would
    /// write the memory of the program to a file, which no test needs.
    void press_in(const std::string& line) {
        shell.enter("ulimit -c 0; set -o pipefail; " + line);
        ASSERT_TRUE(world.comes("begun")) << shell.screen();
        (shell.*GetParam().press)();
    }
};
INSTANTIATE_TEST_SUITE_P(Each, TerminalKey,
                         testing::Values(Key{"CtrlC", "INT", 130, &ShellOnATerminal::interrupt},
                                         Key{"CtrlBackslash", "QUIT", 131, &ShellOnATerminal::quit}),
                         by_name);

// Where it is stopped, bash is to run it: dash starts programs by vfork(), and hangs in there when the new
// process is stopped before it has become the program. So it does at any terminal, without us.
TEST_P(TerminalKey, EndsTheCommand) {
    for (const auto* const pipeline : {"", " | cat"}) {
        press_in(redlock_run("job -c '" + until_go + "'" + pipeline));
        expect_status(GetParam().status);
        EXPECT_TRUE(unlocked());
        std::filesystem::remove(world.file("begun"));
    }
}

TEST_P(TerminalKey, CanBeHandledByTheCommand) {
    press_in(
        redlock_run(std::string{"job -c 'trap \"exit 5\" "} + GetParam().signal + "; " + until_go + "'"));
    expect_status(5);
    EXPECT_TRUE(unlocked());
}

TEST_P(TerminalKey, EndsTheSurroundingScript) {
    press_in("sh -c '" + redlock_run("job -- sh -c \"" + until_go + "\"; touch $DIR/went-on") + "'");
    expect_status(GetParam().status);
    EXPECT_TRUE(unlocked());
    EXPECT_FALSE(world.has("went-on"));
}

// The sender has not pressed Ctrl-C, so the script around the command goes on.
TEST_F(Terminal, SigintForRedlockDoesNotEndTheSurroundingScript) {
    shell.enter("sh -c '" +
                redlock_run("job -- sh -c \"kill -INT \\$PPID; exec sleep 1000\"; touch $DIR/went-on") + "'");
    EXPECT_TRUE(world.comes("went-on")) << shell.screen();
    EXPECT_TRUE(unlocked());
}

TEST_F(Terminal, CtrlCEndsProcessesThatTheCommandLeftRunning) {
    shell.enter(redlock_run("job -c 'sleep 1000 & exit 5'"));
    ASSERT_TRUE(shell.shows("left running")) << shell.screen();
    shell.interrupt();
    expect_status(5);
    EXPECT_TRUE(unlocked());
}

// In the foreground again.
TEST_F(Terminal, CtrlZStopsAndFgContinues) {
    shell.enter(
        redlock_run("job -- bash -c '" + until_go +
                    "; until set -- $(cat /proc/$$/stat); [ $5 = $8 ]; do sleep 0.01; done; exit 6'"));
    suspend();
    EXPECT_EQ(world.keys(), 3U);
    shell.enter("touch $DIR/go; fg");
    expect_status(6);
    EXPECT_TRUE(unlocked());
}

TEST_F(Terminal, CtrlZStopsTheSurroundingScript) {
    shell.enter("sh -c '" + redlock_run("job -- bash -c \"" + until_go + "\"; exit 6") + "'");
    suspend();
    shell.enter("touch $DIR/go; fg");
    expect_status(6);
}

// In the background, without a shell that could bring it to the foreground.
TEST_F(Terminal, EndsACommandThatReadsAndCanNeverHaveIt) {
    shell.enter("( (" + redlock_run("job -c 'read x </dev/tty'") +
                "; echo $? >$DIR/q; mv $DIR/q $DIR/status) & )");
    ASSERT_TRUE(world.comes("status")) << shell.screen();
    EXPECT_EQ(world.in("status"), "129\n") << "SIGHUP";
}

// As after ssh -t host redlock run ...: no shell is there that would continue us, so Ctrl-Z does nothing.
TEST_F(Terminal, CtrlZDoesNothingWithoutAShell) {
    shell.enter("exec " + redlock_run("job -- bash -c '" + until_go + "; touch $DIR/worked'"));
    ASSERT_TRUE(world.comes("begun"));
    shell.suspend();
    world.touch("go");
    EXPECT_TRUE(world.comes("worked"));
    EXPECT_TRUE(unlocked());
}

// The pager at the end of a pipeline needs the terminal; the command never had it.
TEST_F(Terminal, CtrlZAndFgLeaveTheTerminalToThePipeline) {
    shell.enter(redlock_run("job -- bash -c '" + until_go + "' | { read x </dev/tty; echo piped-$x; cat; }"));
    suspend();
    shell.enter("fg");
    shell.enter("on");
    EXPECT_TRUE(shell.shows("piped-on")) << shell.screen();
    world.touch("go");
    expect_status(0);
}

// In a pipeline, the command is not in the foreground group, to which the kernel sends the signal.
TEST_F(Terminal, TellsTheCommandThatTheWindowHasANewSize) {
    for (const auto* const pipeline : {"", " | cat"}) {
        shell.enter(redlock_run("job -- sh -c 'trap \"echo re\"\"sized\" WINCH; " + until_go + "'") +
                    pipeline);
        ASSERT_TRUE(world.comes("begun")) << shell.screen();
        shell.widen();
        EXPECT_TRUE(shell.shows("resized")) << pipeline << shell.screen();
        world.touch("go");
        expect_status(0);
        for (const auto* const file : {"go", "begun"}) std::filesystem::remove(world.file(file));
    }
}

// Both want it: who reads gets it.
TEST_F(Terminal, CanBeReadByTheCommandAndItsPipeline) {
    shell.enter(redlock_run("job -- bash -c 'read x; touch $DIR/begun; echo read-$x >/dev/tty; " + until_go +
                            "' | { until [ -e $DIR/begun ]; do sleep 0.01; done; echo $BASHPID >$DIR/pid; "
                            "read y </dev/tty; echo piped-$y; cat; }"));
    shell.enter("one");
    EXPECT_TRUE(shell.shows("read-one")) << shell.screen();
    ASSERT_TRUE(wait_until([&] { return world.has("pid") && in_foreground(world.pid_in("pid")); }));
    EXPECT_FALSE(wait_until([&] { return !in_foreground(world.pid_in("pid")); }, 300ms))
        << "the command does not read any more, and Ctrl-C is for both";
    shell.enter("two");
    EXPECT_TRUE(shell.shows("piped-two")) << shell.screen();
    EXPECT_EQ(world.keys(), 3U);
    world.touch("go");
    expect_status(0);
}

TEST_F(Terminal, CtrlZInAPipelineAndBgContinues) {
    shell.enter(redlock_run("job -- bash -c '" + until_go + "; echo do''ne' | cat"));
    suspend();
    shell.enter("touch $DIR/go; bg");
    EXPECT_TRUE(shell.shows("done")) << shell.screen();
    EXPECT_TRUE(unlocked());
}

// Nobody extends a lock while its holder is stopped: the command ends when it is continued too late.
TEST_F(Terminal, CtrlZForLongerThanTheTtlLosesTheLock) {
    shell.enter("LD_PRELOAD=" REDLOCK_LATE_CONTINUE " " +
                redlock_run("--ttl 3s job -- bash -c '" + until_go + "; touch $DIR/worked'"));
    suspend();
    ASSERT_TRUE(unlocked());
    world.occupy();
    shell.enter("touch $DIR/go; fg");
    expect_status(75);
    EXPECT_FALSE(world.has("worked"));
    EXPECT_EQ(world.keys(), 3U);
}

// Some programs look whether they are in the foreground, and are silent where they are not.
TEST_F(Terminal, BelongsToTheCommandFromTheStart) {
    shell.enter(redlock_run("job -c 'set -- $(cat /proc/$$/stat); [ $5 = $8 ] && read x && echo read-$x'"));
    shell.enter("this");
    EXPECT_TRUE(shell.shows("read-this")) << shell.screen();
    expect_status(0);
}

TEST_F(Terminal, CanBeReadByTheScriptAfterTheCommand) {
    shell.enter("sh -c '" + redlock_run("job true") + "; touch $DIR/begun; read x; echo read-$x'");
    ASSERT_TRUE(world.comes("begun"));
    shell.enter("more");
    EXPECT_TRUE(shell.shows("read-more")) << shell.screen();
}

TEST_F(Terminal, StopsABackgroundCommandThatReads) {
    shell.enter(redlock_run("job -c 'touch $DIR/begun; read x; echo read-$x' &"));
    ASSERT_TRUE(world.comes("begun"));
    ASSERT_TRUE(wait_until([&] {
        shell.enter("jobs");
        return shell.screen().find("Stopped") != std::string::npos || (shell.is_back() && false);
    })) << shell.screen();
    shell.enter("fg");
    shell.enter("late");
    EXPECT_TRUE(shell.shows("read-late")) << shell.screen();
    expect_status(0);
}

// What others than us would be stopped for.
TEST_F(Terminal, ShowsTheMessagesOfABackgroundRedlock) {
    shell.enter("stty tostop");
    shell.enter(redlock_run("job -c '" + until_go + " & exit 3' &"));
    EXPECT_TRUE(shell.shows("waiting for what it has left running")) << shell.screen();
    world.touch("go");
    shell.enter("wait %1");
    expect_status(3);
}

TEST_F(Terminal, EndsTheCommandWhenItIsClosed) {
    shell.enter(redlock_run("job -c 'echo $$ >$DIR/p; mv $DIR/p $DIR/pid; " + until_go + "'"));
    ASSERT_TRUE(world.comes("begun"));
    const auto pid = world.pid_in("pid");
    EXPECT_TRUE(lives(pid));
    shell.close();
    EXPECT_TRUE(wait_until([&] { return !lives(pid); }));
    EXPECT_TRUE(unlocked());
}

/// What a command does that stops itself. When it is continued, it waits for the file "go".
const std::string stop_itself = "kill -STOP $$; touch $DIR/continued; " + until_go;

// Ctrl-C would not reach a stopped command.
TEST_F(Terminal, CtrlCEndsACommandThatStoppedItself) {
    shell.enter(redlock_run("job -- bash -c '" + stop_itself + "'"));
    ASSERT_TRUE(shell.shows("the command is stopped")) << shell.screen();
    EXPECT_EQ(world.keys(), 3U);
    shell.interrupt();
    expect_status(130);
    EXPECT_TRUE(unlocked());
}

TEST_F(Terminal, CtrlZStopsRedlockAsWellIfTheCommandStoppedItself) {
    for (const auto* const pipeline : {"", " | cat"}) {
        shell.enter("set -o pipefail; " + redlock_run("job -- bash -c '" + stop_itself + "; exit 6'") +
                    pipeline);
        ASSERT_TRUE(shell.shows("the command is stopped")) << shell.screen();
        shell.suspend();
        ASSERT_TRUE(shell.shows("Stopped")) << shell.screen();
        ASSERT_TRUE(shell.is_back()) << shell.screen();
        EXPECT_FALSE(world.has("continued"));
        shell.enter("touch $DIR/go; fg");
        expect_status(6);
        EXPECT_TRUE(unlocked());
        for (const auto* const file : {"go", "begun", "continued"}) std::filesystem::remove(world.file(file));
    }
}

TEST_F(Terminal, ANewSizeOfTheWindowDoesNotContinueACommandThatStoppedItself) {
    shell.enter(redlock_run("job -- bash -c '" + stop_itself + "; exit 6'"));
    ASSERT_TRUE(shell.shows("the command is stopped")) << shell.screen();
    shell.widen();
    EXPECT_FALSE(wait_until([&] { return world.has("continued"); }, 300ms));
    shell.interrupt();
    expect_status(130);
}

// Another process continues the command, as a debugger does.
TEST_F(Terminal, BelongsToACommandThatIsContinuedAgain) {
    shell.enter(
        redlock_run("job -c 'echo $$ >$DIR/pid; kill -STOP $$; "
                    "until set -- $(cat /proc/$$/stat); [ $5 = $8 ]; do sleep 0.01; done; exit 6'"));
    ASSERT_TRUE(shell.shows("the command is stopped")) << shell.screen();
    ::kill(std::stoi(world.pid_in("pid")), SIGCONT);
    expect_status(6);
}

// It is not in the foreground, so its parent must give it the terminal. That parent is redlock.
TEST_F(Terminal, CanBeReadByProcessesThatTheCommandLeftRunning) {
    shell.enter(
        redlock_run("job -c '(until [ -e $DIR/go ]; do sleep 0.01; done; read x </dev/tty; echo read-$x "
                    ">/dev/tty) & exit 3'"));
    ASSERT_TRUE(shell.shows("left running")) << shell.screen();
    world.touch("go");
    shell.enter("this");
    EXPECT_TRUE(shell.shows("read-this")) << shell.screen();
    expect_status(3);
}

}  // namespace
}  // namespace redlock::test::terminal_live_test
