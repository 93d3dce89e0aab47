// redlock run on quiet days.
#include "command_monitor.hpp"
#include "fake_redis_server.hpp"
#include "support/tcp_proxy.hpp"
#include "tool_world.hpp"

#include <array>
#include <atomic>
#include <deque>
#include <string>

#include "wire/scripts.hpp"

namespace redlock::test::run_live_test {
namespace {

class Run : public testing::Test {
protected:
    ToolWorld world{3};
};

// A NAT forgets the connections while the command runs, and swallows what comes.
TEST_F(Run, LeavesNoKeyAndReportsNoFailureIfItsConnectionsAreForgotten) {
    std::deque<support::TcpProxy> links;
    const auto names = names_of(links, world);
    auto environment = world.environment();
    environment.front() = "REDLOCK_NODES=" + names[0] + "," + names[1] + "," + names[2];
    Tool tool{world.job(until_go, {"--ttl", "1m"}), environment};
    ASSERT_TRUE(world.comes("begun"));
    for (auto& link : links) link.forget();
    world.touch("go");
    const auto outcome = tool.wait();
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, "");
    EXPECT_EQ(world.keys(), 0U);
}

TEST_F(Run, LeavesAHolderDescription) {
    auto tool = world.start_until("begun", until_go);
    const auto note = " pid=" + std::to_string(tool.pid()) + " program=sh";
    EXPECT_TRUE(wait_until([&] {
        return world[0].command({"GET", "{job}:holder"}).ends_with(note);
    })) << "it is not waited for";
    world.touch("go");
    EXPECT_EQ(tool.wait().status, 0);
}

TEST_F(Run, PassesAGrowingFencingTokenToTheCommand) {
    long long last = 0;
    for (int i = 0; i < 3; ++i) {
        const auto outcome = world.run(world.job("echo $REDLOCK_FENCING_TOKEN", {"--fencing"}));
        ASSERT_EQ(outcome.status, 0) << outcome.err;
        EXPECT_GT(std::stoll(outcome.out), last);
        last = std::stoll(outcome.out);
    }
}

TEST_F(Run, ReplacesExistingEnvironmentVariables) {
    ::setenv("REDLOCK_OWNER", "somebody else", 1);
    const auto outcome = world.run(world.job("env | grep -c ^REDLOCK_OWNER; echo $REDLOCK_OWNER"));
    ::unsetenv("REDLOCK_OWNER");
    EXPECT_THAT(outcome.out, testing::MatchesRegex("1\n[0-9a-f]{40}\n"));
}

TEST_F(Run, LeavesInputAndOutputToTheCommand) {
    std::ofstream{world.file("input")} << "one\ntwo\n";
    const auto outcome = world.run({"run", "-v", "job", "--", "sh", "-c", "cat; echo three >&2"},
                                   world.file("input").string());
    EXPECT_EQ(outcome.out, "one\ntwo\n");
    EXPECT_THAT(outcome.err, HasSubstr("three\n"));
    EXPECT_THAT(outcome.err, HasSubstr("redlock: job: acquired after"));
}

TEST_F(Run, ReportsTheVoteOfEachNodeIfVerbose) {
    world[1].kill();
    const auto outcome = world.run(world.job("true", {"-v", "--fencing"}));
    EXPECT_EQ(outcome.status, 0);
    EXPECT_THAT(outcome.err, HasSubstr("1 attempt, valid for"));
    EXPECT_THAT(outcome.err, HasSubstr("fencing token"));
    EXPECT_THAT(outcome.err, HasSubstr(world[0].name() + "  granted"));
    EXPECT_THAT(outcome.err, HasSubstr(world[1].name() + "  unknown"));
    EXPECT_THAT(outcome.err, HasSubstr("released after"));
    world[0].kill();
    EXPECT_THAT(world.run(world.job("true", {"-nv"})).err,
                testing::ContainsRegex("unknown, [^:]* ms: connection failed .Connection refused.\n"));
}

TEST_F(Run, WaitsForAnotherHolderWithoutALimit) {
    world.occupy();
    auto tool = world.start(world.job("true", {"--retry-delay", "50ms"}));
    EXPECT_TRUE(
        wait_until([&] { return calls(world[0], "set") > 6; }));  // more than those of a plain acquire
    EXPECT_TRUE(tool.running());
    world.steal();
    EXPECT_EQ(tool.wait().status, 0);
}

// A status above 128 is taken for no signal: it may be that of ssh, or of a shell that passes on what became
// of its last command.
TEST_F(Run, WaitsForProcessesThatTheCommandLeftRunning) {
    for (const int status : {5, 255}) {
        const auto outcome =
            world.run(world.job("sh -c 'until [ -e $DIR/go ]; do sleep 0.01; done; touch $DIR/left' & (sleep "
                                "0.3; touch $DIR/go) & exit " +
                                    std::to_string(status),
                                {"--grace", "0"}));
        EXPECT_EQ(outcome.status, status);
        EXPECT_TRUE(world.has("left"));
        EXPECT_THAT(outcome.err, HasSubstr("waiting for what it has left running"));
        EXPECT_EQ(world.keys(), 0U);
        for (const auto* const file : {"go", "left"}) std::filesystem::remove(world.file(file));
    }
}

// The others wait for the rest of the ttl.
TEST_F(Run, ReportsAFailedRelease) {
    auto tool = world.start_until("begun", until_go, {"--ttl", "1h"});
    for (auto& node : world) node.command({"ACL", "SETUSER", "default", "-del"});
    world.touch("go");
    const auto outcome = tool.wait();
    EXPECT_EQ(outcome.status, 0) << "that of the command";
    EXPECT_THAT(outcome.err, testing::StartsWith("redlock: job: release: "));
    EXPECT_EQ(world.keys(), 3U);
}

TEST_F(Run, HidesTheVariablesOfAnOuterRun) {
    const std::string variables =
        "echo \"[${REDLOCK_FENCING_TOKEN:+token}${REDLOCK_SLOT:+slot}]"
        " $REDLOCK_RESOURCE $REDLOCK_TTL_MS\"";
    const auto inner = std::string{REDLOCK_TOOL} + " run other -c '" + variables + "'";
    const auto outcome =
        world.run(world.job(variables + "; " + inner, {"--ttl", "20s", "--fencing", "--holders", "2"}));
    EXPECT_EQ(outcome.out, "[tokenslot] job 20000\n[] other 30000\n");
}

// It would wait for ever, and nobody sits at a terminal to see it.
TEST_F(Run, ReportsThatACommandMayWaitForTheLockOfItsOwnCaller) {
    const auto said_by = [&](const std::string& inner) {
        return world.run(world.job(REDLOCK_TOOL " " + inner, {"--ttl", "1h"})).err;
    };
    const std::string warning = "this process runs under a lock of job already, and may wait for itself";
    for (const auto* const inner : {"run -w 300ms job true", "run --fair -w 300ms job true",
                                    "run -s -w 300ms job true", "acquire -w 300ms job"})
        EXPECT_THAT(said_by(inner), HasSubstr(warning)) << inner;
    for (const auto* const inner :
         {"run -q -w 300ms job true", "run -n job true", "run --holders 2 job true"})
        EXPECT_THAT(said_by(inner), Not(HasSubstr(warning))) << inner;
}

// The command has the signals as they were.
TEST_F(Run, NoticesTheEndOfTheCommandIfSignalsAreBlockedOrSigchldIsIgnored) {
    for (const auto& [option, field, mask] :
         {std::array{"--block-signal=CHLD,TERM", "SigBlk", "0000000000014000"},
          std::array{"--ignore-signal=CHLD", "SigIgn", "0000000000010000"}}) {
        EXPECT_EQ(world.shell(std::string{"exec env "} + option + " " REDLOCK_TOOL " run job -- grep " +
                              field + " /proc/self/status >$DIR/mask"),
                  0);
        EXPECT_THAT(world.in("mask"), HasSubstr(mask));
    }
}

TEST_F(Run, WorksWithoutStandardStreams) {
    EXPECT_EQ(world.shell("exec <&- >&- 2>&-; " REDLOCK_TOOL " run -v job touch $DIR/done"), 0);
    EXPECT_TRUE(world.has("done"));
    for (auto& node : world)
        EXPECT_EQ(node.info("stats", "total_error_replies"), "0") << "our messages are not sent to a node";
}

TEST_F(Run, DoesNotWaitForADaemon) {
    const auto outcome =
        world.run(world.job("setsid sh -c 'echo $$ >$DIR/pid; mv $DIR/pid $DIR/daemon; exec sleep 60' & "
                            "until [ -e $DIR/daemon ]; do sleep 0.01; done"));
    EXPECT_EQ(outcome.status, 0);
    const auto pid = world.pid_in("daemon");
    EXPECT_TRUE(lives(pid));
    ::kill(std::stoi(pid), SIGKILL);
}

TEST_F(Run, HidesTheNodesFromTheCommandIfConfigured) {
    EXPECT_EQ(world.run(world.job("echo [$REDLOCK_NODES]", {"--hide-nodes"})).out, "[]\n");
    EXPECT_THAT(world.run(world.job("echo [$REDLOCK_NODES]")).out, HasSubstr("127.0.0.1"));
}

// The environment of a process with which it was started stays in its memory, where every process of the same
// user can read it.
TEST_F(Run, HidesTheNodesInItsOwnEnvironment) {
    const auto* const script =
        "until g=$(pgrep -x -P $PPID redlock-guard); do sleep 0.01; done; "
        "for pid in $PPID $g; do tr '\\0' '\\n' </proc/$pid/environ | grep NODES; done";
    EXPECT_THAT(world.run(world.job(script)).out, HasSubstr("127.0.0.1"))
        << "otherwise this test sees nothing";
    const auto outcome = world.run(world.job(script, {"--hide-nodes"}));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("REDLOCK_NODES="));
    EXPECT_THAT(outcome.out, Not(HasSubstr("127.0.0.1")));
}

TEST_F(Run, LocksSeveralResourcesAsOne) {
    const auto outcome = world.run(world.job("redis() { :; }; echo in", {"--also", "a", "--also", "b"}));
    EXPECT_EQ(outcome.out, "in\n");
    auto tool = world.start_until("begun", until_go, {"--also", "a", "--also", "b"});
    for (const auto* const name : {"a", "b", "job"}) EXPECT_EQ(world[0].command({"EXISTS", name}), "1");
    EXPECT_EQ(world.run({"run", "-n", "b", "true"}).status, 1);
    world.touch("go");
    EXPECT_EQ(tool.wait().status, 0);
}

TEST_F(Run, WaitsForTheEndOfAnOutageAndReportsIt) {
    world[0].kill();
    world[1].kill();
    auto tool = world.start(world.job("true", {"-v"}));
    ASSERT_TRUE(wait_until([&] { return tool.err().find("; waiting") != std::string::npos; })) << tool.err();
    world[0].restart();
    const auto outcome = tool.wait();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const auto attempts = outcome.err.find(" attempts, valid for ");
    ASSERT_NE(attempts, std::string::npos) << outcome.err;
    EXPECT_GT(std::stoi(outcome.err.substr(outcome.err.rfind(' ', attempts - 1))), 3) << "all of them";
}

// While its server restarts, a proxy reports that by an error of its own.
TEST_F(Run, WaitsWhileAProxyReportsAnErrorThatNobodyKnows) {
    std::atomic<int> errors{0};
    const FakeRedisServer proxy{[&](Session& session) {
        for (;;) {
            const auto verb = session.receive_command().front();
            const auto reply = verb == "SET" ? "+OK\r\n" : verb == "PING" ? "+PONG\r\n" : ":1\r\n";
            session.send(++errors <= 5 ? "-ERR Connection refused\r\n" : reply);
        }
    }};
    Tool tool{{"run", "-w", "1m", "--node-timeout", "2s", "job", "true"}, {"REDLOCK_NODES=" + proxy.uri()}};
    const auto outcome = tool.wait();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_GT(errors, 5);
}

// Without a shell of the user, it is that of the system.
TEST_F(Run, ExecutesAStringWithTheShellOfTheUser) {
    for (const auto& [shell, string, out] : {std::array{"SHELL=/bin/echo", "words", "-c words\n"},
                                             std::array{"SHELL=", "echo $((2 + 3))", "5\n"}}) {
        auto environment = world.environment();
        environment.back() = shell;
        Tool tool{{"run", "job", "-c", string}, environment};
        EXPECT_EQ(tool.wait().out, out);
    }
}

// As git has it with those that all commands have in common.
TEST_F(Run, AcceptsOptionsBeforeItsName) {
    Tool tool{{"--node", world[0].uri(), "--node-timeout=2s", "-vw", "60", "run", "-x", "job", "--", "echo",
               "-n", "in"},
              {"REDLOCK_NODES="}};
    const auto outcome = tool.wait();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "in");
    EXPECT_THAT(outcome.err, HasSubstr("job: acquired after"));
    EXPECT_EQ(world.run({"--node-timeout=2s", "--owner", std::string(40, '0'), "release", "job"}).status, 75);
    EXPECT_THAT(world.run({"--help", "run"}).out, HasSubstr("--max-hold"));
    EXPECT_THAT(world.run({"--version", "run"}).out, testing::StartsWith("redlock "));
}

TEST_F(Run, ReportsAnUnknownOptionBeforeItsName) {
    const auto unknown = world.run({"--nod", "127.0.0.1:1", "run", "job", "true"});
    EXPECT_EQ(unknown.status, 64);
    EXPECT_THAT(unknown.err, HasSubstr("unknown option: --nod\n"));
    const auto of_another = world.run({"--threads", "2", "run", "job", "true"});
    EXPECT_EQ(of_another.status, 64);
    EXPECT_THAT(of_another.err, HasSubstr("--threads"));
    const auto without_command = world.run({"--node", "127.0.0.1:1"});
    EXPECT_EQ(without_command.status, 64);
    EXPECT_THAT(without_command.err, HasSubstr("command is required"));
}

// As flock has it.
TEST_F(Run, PassesTheWordsAfterTheResourceToTheCommand) {
    EXPECT_EQ(world.run({"run", "job", "-n", "true"}).status, 127);
}

// The attempt and its release are all. Nobody asks who the holder is.
TEST_F(Run, SendsNothingMoreAfterARefusalIfQuiet) {
    world.occupy();
    const auto commands_of_run = [&](const std::string& option) {
        std::deque<CommandMonitor> monitors;
        for (auto& server : world) monitors.emplace_back(server);
        EXPECT_EQ(world.run(world.job("true", {"-n", option})).status, 1);
        std::vector<std::string> commands;
        for (auto& monitor : monitors)
            for (const auto& words : monitor.commands())
                if (words[0] != "PING") commands.push_back(words[0] == "SET" ? words[0] : words[1]);
        return commands;
    };
    const auto attempt =
        testing::Each(testing::AnyOf("SET", std::string{detail::scripts::compare_and_delete.text}));
    EXPECT_THAT(commands_of_run("-q"), attempt);
    EXPECT_THAT(commands_of_run("-v"), Not(attempt)) << "or this test shows nothing";
}

TEST_F(Run, ReportsTheHolderOnAConflict) {
    auto holder = world.start_until("begun", until_go);
    ASSERT_TRUE(wait_until([&] { return world[0].command({"EXISTS", "{job}:holder"}) == "1"; }));
    const auto owner = world[0].command({"GET", "job"});
    for (const auto& words :
         std::vector<std::vector<std::string>>{{"run", "-n", "--node-timeout", "2s", "job", "true"},
                                               {"run", "-w0.3", "--node-timeout", "2s", "job", "true"},
                                               {"acquire", "-n", "--node-timeout", "2s", "job"}}) {
        const auto outcome = world.run(words);
        EXPECT_EQ(outcome.status, 1);
        EXPECT_THAT(outcome.err, testing::StartsWith("redlock: job: held by another on "));
        EXPECT_THAT(outcome.err, HasSubstr("; now held by " + owner + " on 3 of 3 nodes, expires in "));
        EXPECT_THAT(outcome.err, testing::EndsWith(" pid=" + std::to_string(holder.pid()) + " program=sh\n"));
    }
    EXPECT_EQ(world.run(world.job("true", {"-nq"})).err, "");
    EXPECT_EQ(world.run({"acquire", "-nq", "job"}).err, "");
    EXPECT_THAT(world.run(world.job("true", {"-n", "--also", "another"})).err,
                HasSubstr("; now job: held by " + owner));
    world.touch("go");
    EXPECT_EQ(holder.wait().status, 0);
}

TEST_F(Run, ReportsTheMinimumHoldTimeOnAConflict) {
    EXPECT_EQ(world.run(world.job("true", {"--min-hold", "1m"})).status, 0);
    const auto outcome = world.run(world.job("true", {"-n"}));
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err,
                HasSubstr("; now released, and kept from everybody on 3 of 3 nodes, expires in "));
}

TEST_F(Run, AllowsTheConfiguredNumberOfHoldersAndReportsOneOnAConflict) {
    const std::vector<std::string> two{"--holders", "2"};
    std::deque<Tool> tools;
    std::vector<std::string> pids;
    for (const std::string name : {"first", "second"}) {
        tools.emplace_back(world.job("echo $REDLOCK_SLOT; touch $DIR/" + name + "; " + until_go, two),
                           world.environment());
        ASSERT_TRUE(world.comes(name));
        pids.push_back(std::to_string(tools.back().pid()));
    }
    EXPECT_EQ(world.keys(), 0U) << "it is not the lock of this name";
    for (const std::string slot : {"0", "1"})
        ASSERT_TRUE(wait_until([&] {
            return world[0].command({"EXISTS", "{job}:slot:" + slot + ":holder"}) == "1";
        }));
    const auto outcome = world.run(world.job("true", {"--holders", "2", "-n"}));
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, testing::MatchesRegex(
                                 "redlock: job: held by another on [^;\n]*; now \\{job\\}:slot:[01]: held by "
                                 "[0-9a-f]{40} on 3 of 3 nodes, expires in [^\n]* pid=(" +
                                 pids[0] + "|" + pids[1] + ") program=sh\n"));
    EXPECT_EQ(world.run(world.job("true", {"--holders", "2", "-nq"})).err, "");
    EXPECT_EQ(world.run(world.job("true", {"--holders", "2", "--fair"})).status, 64);
    world.touch("go");
    std::string slots;
    for (auto& tool : tools) {
        const auto ended = tool.wait();
        EXPECT_EQ(ended.status, 0);
        slots += ended.out;
    }
    EXPECT_THAT(slots, testing::AnyOf("0\n1\n", "1\n0\n"));
}

TEST_F(Run, ReportsAForeignKeyOnAConflict) {
    for (auto& node : world) ASSERT_EQ(node.command({"HSET", "job", "field", "1"}), "1");
    const auto outcome = world.run(world.job("true", {"-n"}));
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr(world[0].name() + " wrong type of key (WRONGTYPE"));
    EXPECT_THAT(outcome.err, HasSubstr("; now on 3 of 3 nodes the key is no lock"));
    EXPECT_EQ(world.run(world.job("true", {"-n", "--holders", "2"})).status, 0);
}

// The holder's description has the key `{job}:holder`, which may be the key of an application.
TEST_F(Run, LeavesAForeignKeyBesideTheLockAsItIs) {
    for (auto& node : world) ASSERT_EQ(node.command({"HSET", "{job}:holder", "name", "Ada"}), "1");
    EXPECT_EQ(world.run(world.job("true")).status, 0);
    for (auto& node : world) {
        EXPECT_EQ(node.command({"HGET", "{job}:holder", "name"}), "Ada");
        EXPECT_EQ(node.command({"TTL", "{job}:holder"}), "-1");
    }
}

// The lock of the command is that of readers, or of a slot: for these two nobody but its run can extend or
// release it.
TEST_F(Run, AloneCanExtendAndReleaseASharedLockOrASlot) {
    const std::string redlock = REDLOCK_TOOL;
    const auto script = redlock + " extend job; echo $?; " + redlock + " release job; echo $?";
    EXPECT_EQ(world.run(world.job(script, {"--shared"})).out, "75\n75\n");
    EXPECT_EQ(world.run(world.job(script, {"--holders", "2"})).out, "75\n75\n");
    EXPECT_THAT(world.run(world.job(script)).out, testing::EndsWith("\n0\n0\n"));
}

TEST_F(Run, ShowsNoPasswordToPs) {
    ToolWorld locked{1, RedisConfig{}.password("geheim")};
    auto tool = locked.start({"run", "--node", locked[0].uri(), "job", "--", "sh", "-c", until_go});
    ASSERT_TRUE(locked.comes("begun"));
    const auto arguments = content("/proc/" + std::to_string(tool.pid()) + "/cmdline");
    EXPECT_THAT(arguments, HasSubstr("@127.0.0.1"));
    EXPECT_THAT(arguments, Not(HasSubstr("geheim")));
    locked.touch("go");
    EXPECT_EQ(tool.wait().status, 0);
}

TEST_F(Run, ShowsNoPasswordInAMessage) {
    const auto outcome = world.run({"run", "--nonsense=redis://:geheim@host", "redis://:geheim@host"});
    EXPECT_EQ(outcome.status, 64);
    EXPECT_THAT(outcome.err, Not(HasSubstr("geheim")));
}

/// Every copy notes when it begins and ends; a directory is a witness that cannot be made twice.
TEST(TwentyCopies, RunOneAtATimeWhileOneOfFiveNodesDies) {
    ToolWorld world{5};
    const auto* const script =
        "mkdir $DIR/inside || touch $DIR/overlap; echo in >>$DIR/log; sleep 0.05; "
        "echo out >>$DIR/log; rmdir $DIR/inside";
    std::deque<Tool> copies;
    for (int i = 0; i < 20; ++i)
        copies.emplace_back(world.job(script, {"--retry-delay", "50ms"}), world.environment());
    ASSERT_TRUE(world.comes("log"));
    world[2].kill();
    for (auto& copy : copies) {
        EXPECT_TRUE(wait_until([&] { return !copy.running(); }));
        EXPECT_EQ(copy.wait().status, 0);
    }
    EXPECT_FALSE(world.has("overlap"));
    std::string expected;
    for (int i = 0; i < 20; ++i) expected += "in\nout\n";
    EXPECT_EQ(world.in("log"), expected);
}

TEST_F(Run, KeepsTheLockForTheMinimumHoldTimeEvenIfKilled) {
    auto tool =
        world.start_until("begun", "echo $REDLOCK_TTL_MS; " + until_go, {"--ttl", "3s", "--min-hold", "40s"});
    EXPECT_EQ(tool.out(), "40000\n");
    tool.signal(SIGKILL);
    EXPECT_EQ(tool.wait().status, 137);
    for (auto& node : world) EXPECT_GT(expiry(node, "job"), 10s);
}

}  // namespace
}  // namespace redlock::test::run_live_test
