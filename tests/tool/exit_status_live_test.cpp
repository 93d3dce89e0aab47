// Every exit status that the command has, in one table; the man page has the same.
#include "prepared_child.hpp"
#include "support/refused_call.hpp"

#include <nlohmann/json.hpp>

#include <sched.h>
#include <sys/syscall.h>

#include <cerrno>

namespace redlock::test::exit_status_live_test {
namespace {

struct Case {
    std::string name;
    std::vector<std::string> arguments;
    int status;
    std::string says{};  // on stderr
};

void PrintTo(const Case& it, std::ostream* out) {
    *out << it.name;
}

class ExitStatus : public testing::TestWithParam<Case> {
protected:
    ToolWorld world{3};
};

class WithFreeNodes : public ExitStatus {};
class WithAHeldResource : public ExitStatus {};
class WithDeadNodes : public ExitStatus {};

std::string name_of(const testing::TestParamInfo<Case>& it) {
    return it.param.name;
}

TEST_P(WithFreeNodes, IsAsDocumented) {
    const auto outcome = world.run(GetParam().arguments);
    EXPECT_EQ(outcome.status, GetParam().status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(GetParam().says));
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_EQ(world.keys(), 0U);
}

const std::string nobody(40, '0');

INSTANTIATE_TEST_SUITE_P(
    ExitStatus, WithFreeNodes,
    testing::Values(
        Case{"Success", {"run", "job", "true"}, 0},
        Case{"TheCommandsOwn", {"run", "job", "--", "sh", "-c", "exit 7"}, 7},
        Case{"OfAShellCommand", {"run", "job", "-c", "exit 8"}, 8},
        Case{"OfASignal", {"run", "job", "-c", "kill -KILL $$"}, 137},
        Case{"OfSigterm", {"run", "job", "-c", "kill -TERM $$"}, 143},
        Case{"WaitOverAtOnce", {"run", "-w", "0.0001ms", "job", "true"}, 69, "deadline reached"},
        Case{"NotFound", {"run", "job", "no-such-program"}, 127, "no-such-program: No such file"},
        Case{"NotFoundByALongName", {"run", "job", std::string(2000, '/') + "no-such-program"}, 127},
        Case{"ReservedName", {"run", "redlock:since", "true"}, 64, "resource is redlock:since; it must have"},
        Case{"AlsoAReservedName", {"run", "--also", "redlock:since", "job", "true"}, 64, "redlock:since"},
        Case{"AcquireOfAReservedName", {"acquire", "redlock:since"}, 64, "resource is redlock:since"},
        Case{"NotExecutable", {"run", "job", "/etc/passwd"}, 126, "/etc/passwd: Permission denied"},
        Case{"NotFoundDespiteMinHold", {"run", "--min-hold", "1h", "job", "no-such-program"}, 127},
        Case{"NotExecutableDespiteMinHold", {"run", "--min-hold=1h", "--fair", "job", "/etc/passwd"}, 126},
        Case{"ExtendOfNobodys", {"extend", "--owner", nobody, "job"}, 75, "lost"},
        Case{"ReleaseOfNobodys", {"release", "--owner", nobody, "job"}, 75, "lost"}),
    name_of);

TEST_P(WithAHeldResource, IsThatOfAConflict) {
    world.occupy();
    const auto outcome = world.run(GetParam().arguments);
    EXPECT_EQ(outcome.status, GetParam().status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(GetParam().says));
    EXPECT_EQ(world.keys(), 3U);
}

INSTANTIATE_TEST_SUITE_P(
    ExitStatus, WithAHeldResource,
    testing::Values(
        Case{"Nonblock", {"run", "-n", "job", "true"}, 1, "job: held by another"},
        Case{"WaitUntilItIsOver", {"run", "-w", "0.3", "job", "true"}, 1, "job: held by another"},
        Case{"WaitForEver", {"run", "-w", "infinity", "another", "true"}, 0},
        Case{"WaitForNothing", {"run", "-w", "0", "job", "true"}, 1, "job: held by another"},
        Case{"AnotherStatus", {"run", "-n", "-E", "0", "job", "false"}, 0, "job: held by another"},
        Case{"AsFlockSpellsIt", {"run", "-x", "--nb", "-o", "-E0", "job", "false"}, 0, "held by another"},
        Case{"Combined", {"run", "-nvE", "7", "job", "false"}, 7, "job: held by another"},
        Case{"Timeout", {"run", "--timeout", "0.3", "job", "true"}, 1, "job: held by another"},
        Case{"OneOfSeveral", {"run", "-n", "--also", "job", "other", "true"}, 1, "held by another"},
        Case{"AcquireNonblock", {"acquire", "-n", "job"}, 1, "job: held by another"},
        Case{"AcquireWaitForNothing", {"acquire", "-w", "0", "job"}, 1, "job: held by another"},
        Case{"AcquireAnotherStatus", {"acquire", "-w", "0.3", "-E", "42", "job"}, 42, "job: held by another"},
        Case{"ExtendOfAnothers", {"extend", "--owner", nobody, "job"}, 75, "lost"},
        Case{"ReleaseOfAnothers", {"release", "--owner", nobody, "job"}, 75, "lost"}),
    name_of);

TEST_P(WithDeadNodes, IsThatOfNoQuorum) {
    world[0].kill();
    world[1].kill();
    const auto outcome = world.run(GetParam().arguments);
    EXPECT_EQ(outcome.status, GetParam().status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(world[0].name()));
    EXPECT_EQ(world[2].command({"EXISTS", "job"}), "0");
}

INSTANTIATE_TEST_SUITE_P(ExitStatus, WithDeadNodes,
                         testing::Values(Case{"RunNonblock", {"run", "-n", "job", "true"}, 69},
                                         Case{"RunWait", {"run", "-w", "0.5", "job", "true"}, 69},
                                         Case{"Acquire", {"acquire", "-n", "job"}, 69},
                                         Case{"AcquireWait", {"acquire", "-w", "0.5", "job"}, 69},
                                         Case{"Extend", {"extend", "--owner", nobody, "job"}, 69},
                                         Case{"Release", {"release", "--owner", nobody, "job"}, 69}),
                         name_of);

// Three of five nodes are down, and another client holds the job on the other two. Whatever their order, this
// is no conflict, and --quiet does not hide it.
TEST(ExitStatusWithMostNodesDead, IsThatOfNoQuorum) {
    ToolWorld world{5};
    const std::vector<std::string> uris = world.uris();
    for (const std::size_t node : {2U, 3U, 4U}) world[node].kill();
    for (const std::size_t node : {0U, 1U}) world[node].command({"SET", "job", "another", "PX", "60000"});
    for (const std::vector<std::size_t>& order :
         {std::vector<std::size_t>{0, 1, 2, 3, 4}, {0, 2, 3, 1, 4}, {2, 3, 0, 4, 1}, {2, 3, 4, 0, 1}}) {
        const auto nodes = support::comma_list(order, [&](std::size_t node) { return uris[node]; });
        for (const std::vector<std::string>& words :
             {std::vector<std::string>{"run", "-nq", "-E", "0", "job", "false"}, {"acquire", "-nq", "job"}}) {
            Tool tool{words, {"REDLOCK_NODES=" + nodes}};
            const auto outcome = tool.wait();
            EXPECT_EQ(outcome.status, 69) << words.front();
            EXPECT_THAT(outcome.err, HasSubstr("job: no quorum"));
        }
    }
}

// An answer, and one that no waiting changes.
TEST(ExitStatusWithoutThePassword, ReportsAPermissionError) {
    ToolWorld world{3, RedisConfig{}.password("geheim")};
    const auto names = support::comma_list(world, [](const auto& it) { return it.name(); });
    for (const std::vector<std::string>& words : {std::vector<std::string>{"run", "job", "true"},
                                                  {"run", "-n", "job", "true"},
                                                  {"acquire", "job"},
                                                  {"status", "job"},
                                                  {"who", "job"},
                                                  {"bench", "--seconds", "0.1"}}) {
        Tool tool{words, {"REDLOCK_NODES=" + names}};
        const auto outcome = tool.wait();
        EXPECT_EQ(outcome.status, 77) << words.front() << ": " << outcome.err;
        if (words.front() != "who") {
            EXPECT_THAT(outcome.out + outcome.err, HasSubstr("authentication failed"));
        }
    }
    const auto others = support::comma_list(world, [](const auto& it) { return it.uri("", "falsch"); });
    Tool tool{{"run", "job", "true"}, {"REDLOCK_NODES=" + others}};
    EXPECT_EQ(tool.wait().status, 77);
    EXPECT_THAT(tool.err(), HasSubstr("WRONGPASS"));
}

// Who asks for an answer and does not get it must not take the silence for one.
TEST(ExitStatusOfQueries, ReportsAnErrorIfTheOutputCannotBeWritten) {
    ToolWorld world;
    const std::vector<std::string> commands{
        "status job", "who job", "who --json job",     "release --json --owner " + nobody + " job",
        "doctor",     "--help",  "bench --seconds 0.1"};
    for (const auto& words : commands)
        for (const std::string stdout_of : {">/dev/full", ">&-"})
            EXPECT_EQ(world.shell("exec " REDLOCK_TOOL " " + words + " 2>/dev/null " + stdout_of), 70)
                << words << stdout_of;
}

/// From now on, fork() fails and threads can be made: a limit of processes would not hold for root.
bool refuse_processes() {
    ::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // the search for leaks needs a process, too
    return support::refuse_call(SYS_clone, EAGAIN, 0,
                                BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0));
}

TEST(ExitStatusWithoutProcesses, ReportsASystemErrorAndTheLockIsReleased) {
    ToolWorld world{3};
    for (const std::string option :
         {"--on-lost=stop", "--on-lost=ignore", "--min-hold=1h"}) {  // with a guardian and without
        const auto outcome = run_prepared(
            world, {REDLOCK_TOOL, "run", "--node-timeout", "2s", option, "job", "true"}, refuse_processes);
        EXPECT_EQ(outcome.status, 71) << option;
        EXPECT_THAT(outcome.err, HasSubstr("no process for the command: "));
        EXPECT_EQ(world.keys(), 0U);
    }
}

TEST(ExitStatusWithSentinels, ReportsAPermissionErrorWithoutTheirPassword) {
    RedisServer server;
    RedisServer sentinel{RedisConfig{}.sentinel_of(server.port()).password("geheim")};
    Tool tool{{"run", "job", "true"}, {"REDLOCK_NODES=redis+sentinel://" + sentinel.name() + "/mymaster"}};
    const auto outcome = tool.wait();
    EXPECT_EQ(outcome.status, 77) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("NOAUTH"));
}

struct WrongUse {
    std::vector<std::string> arguments;
    std::string says{};  // on stderr
    std::string nodes = "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3";
};

// Found before a node is asked: these are none.
TEST(ExitStatusOfIncorrectUse, IsAUsageError) {
    if (lists_nodes_of_its_own()) GTEST_SKIP() << "/etc/redlock/nodes names nodes of this machine";
    const std::vector<WrongUse> table{
        {{}, "a command is required"},
        {{"statsu", "job"}, "unknown command: statsu\n"},
        {{"run", "--tll", "5s", "job", "true"}, "--tll"},
        {{"run", "-F", "job", "true"}, "nobody would extend the lock"},
        {{"run", "-u", "job"}, "the lock ends with the command; redlock release ends one of redlock acquire"},
        {{"run", "--unlock", "job", "true"}, "the lock ends with the command"},
        {{"run", "-V"}, "redlock --version"},
        {{"run", "-n", "9"},
         "9 is a name here and no descriptor; a script keeps a lock by redlock acquire --while-pid $$ 9"},
        {{"run", "-x", "-s", "job", "true"}, "excludes"},
        {{"run", "--node", "a:1", "--node", "b:c", "job", "true"}, "--node, address 2: node address: port"},
        {{"run", "job", "true"}, "REDLOCK_NODES, address 2: node address: port", "a:1,b:c"},
        {{"run"}, "RESOURCE is required"},
        {{"run", "job"}, "no COMMAND"},
        {{"run", "", "true"}, "resource is empty"},
        {{"run", "-c", "true", "job", "true"}, "both --command"},
        {{"run", "--nonsense", "job", "true"}, "--nonsense"},
        {{"run", "-w", "soon", "job", "true"}, "--wait: \"soon\" is no span"},
        {{"run", "-n", "-w", "1", "job", "true"}, "excludes"},
        {{"run", "--at-least", "1s", "--min-hold", "2s", "job", "true"},
         "--at-least: \"1s\" is given together with --min-hold, the new name of this option"},
        {{"run", "--at-least", "1s", "-s", "job", "true"},
         "--min-hold is 1000 ms; it must be 0 with --shared"},
        {{"run", "--max-hold", "0", "job", "true"}, "redlock: --max-hold is 0 ns; it must be positive"},
        {{"run", "-s", "--also", "a", "job", "true"},
         "redlock: --shared is set; it must be used with one resource only"},
        {{"run", "--holders", "2", "", "true"}, "redlock: resource is empty"},
        {{"run", "--holders", "2", "--also", "a", "job", "true"}, "excludes"},
        {{"run", "--holders", "2", "-s", "job", "true"}, "excludes"},
        {{"run", "--holders", "0", "job", "true"}, "--holders: Value 0 not in range"},
        {{"run", "--holders", "1001", "job", "true"}, "--holders: Value 1001 not in range"},
        {{"run", "-s", "--min-hold", "1s", "job", "true"}, "excludes"},
        {{"run", "-s", "--fair", "job", "true"}, "excludes"},
        {{"acquire", "--while-pid", "0", "job"}, "--while-pid: Value 0 not in range"},
        {{"run", "--ttl", "2m", "--quarantine", "1m", "job", "true"},
         "redlock: --ttl is 120000 ms; it must be at most --quarantine, 60000 ms"},
        {{"acquire", "--ttl", "2m", "--quarantine", "1m", "job"},
         "redlock: --ttl is 120000 ms; it must be at most --quarantine, 60000 ms"},
        {{"extend", "--owner", nobody, "--ttl", "2m", "--quarantine", "1m", "job"},
         "redlock: --ttl is 120000 ms; it must be at most --quarantine, 60000 ms"},
        {{"acquire", "--ttl", "10ms", "job"}, "--ttl is 10 ms; it must exceed"},
        {{"extend", "--owner", nobody, "--ttl", "10ms", "job"}, "--ttl is 10 ms; it must exceed"},
        {{"acquire", "--drift-factor", "2", "job"}, "redlock: --drift-factor is 2"},
        {{"extend", "--owner", nobody, "--drift-factor", "2", "job"}, "redlock: --drift-factor is 2"},
        {{"doctor", "--drift-factor", "2"}, "redlock: --drift-factor is 2"},
        {{"bench", "--drift-factor", "2"}, "redlock: --drift-factor is 2"},
        {{"bench", "--ttl", "2m", "--quarantine", "1m"}, "it must be at most --quarantine, 60000 ms"},
        {{"bench", "--quarantine", "29s"}, "--ttl is 30000 ms; it must be at most --quarantine, 29000 ms"},
        {{"run", "--node-timeout", "0", "job", "true"}, "redlock: --node-timeout is 0 ms"},
        {{"run", "--retry-delay", "0", "job", "true"}, "redlock: --retry-delay is 0 ms"},
        {{"run", "--drift-factor", "2", "job", "true"}, "redlock: --drift-factor is 2"},
        {{"run", "--ttl", "10ms", "job", "true"}, "--ttl is 10 ms; it must exceed"},
        {{"run", "--ttl", "1.5ms", "job", "true"}, "--ttl: \"1.5ms\" is finer than a millisecond"},
        {{"run", "-E", "256", "job", "true"}, "--conflict-exit-code"},
        {{"run", "--on-lost", "die", "job", "true"}, "\"die\" is not stop, term or ignore"},
        {{"run", "--node", "http://x", "job", "true"}, "scheme"},
        {{"status", "--node", "rediss://a?ca_file=/no/such", "job"}, "node a:6379: ca_file cannot be read"},
        {{"run", "--nodes-file", "/no/such/redlock", "job", "true"},
         "/no/such/redlock: cannot be read: No such file or directory"},
        {{"run", "--nodes-file", "/dev/null", "job", "true"}, "names no node"},
        {{"run", "--nodes-file", "/dev/zero", "job", "true"}, "/dev/zero: has more than 1 MiB"},
        {{"run", "--nodes-file", "/", "job", "true"}, "/: cannot be read: Is a directory"},
        {{"run", "--fencing", "--also", "{a}:fence", "a", "true"},
         "resource {a}:fence is the name of a key beside the resource a"},
        {{"run", "job", "true"}, "REDLOCK_NODES: names no node", ", ,"},
        {{"run", "job", "true"}, "no nodes: give --node or --nodes-file, set REDLOCK_NODES", ""},
        {{"release", "--owner", "me", "job"}, "40 hex digits"},
        {{"extend", "job"}, "--owner is required"},
        {{"status"}},
        {{"status", ""}},
        {{"status", "a", "b"}},
        {{"status", "a", "--nonsense"}},
        {{"doctor", "--mark"}},
        {{"doctor", "--ttl", "1ms"}},
        {{"doctor", "--ttl", "1h", "--quarantine", "1s"}},
        {{"doctor", "name"}},
        {{"doctor", "status", "job"}},
        {{"doctor"}, "", ""},
        {{"doctor"}, "", "127.0.0.1:1,127.0.0.1:1"},
        {{"bench", "--seconds", "0"}},
        {{"bench", "--seconds", "nonsense"}},
        {{"bench", "--threads", "0"}},
        {{"bench", "--threads", "1001"}},
        {{"bench", "--ttl", "1ms"}},
    };
    for (const auto& [arguments, says, nodes] : table) {
        Tool tool{arguments, {"REDLOCK_NODES=" + nodes}};
        const auto outcome = tool.wait();
        const auto tried = testing::PrintToString(arguments) + ": " + outcome.err;
        EXPECT_EQ(outcome.status, 64) << tried;
        EXPECT_THAT(outcome.err, HasSubstr(says)) << tried;
        EXPECT_THAT(outcome.err, testing::Not(HasSubstr("::"))) << "a name of the library: " << tried;
        EXPECT_THAT(outcome.out, IsEmpty()) << tried;
    }
}

// REDLOCK_OWNER is the owner of the caller's own lock.
TEST(ExitStatusOfIncorrectUse, IsThatOfABreakWithoutAnOwner) {
    Tool tool{{"break", "job"}, {"REDLOCK_NODES=127.0.0.1:1", "REDLOCK_OWNER=" + nobody}};
    EXPECT_EQ(tool.wait().status, 64);
}

TEST(ExitStatusOfVersionAndHelp, IsSuccess) {
    Tool version{{"--version"}, {}};
    EXPECT_EQ(version.wait().out, "redlock " REDLOCK_VERSION_STRING "\n");
    EXPECT_EQ(version.wait().status, 0);
    Tool help{{"run", "--help"}, {}};
    EXPECT_THAT(help.wait().out, HasSubstr("--conflict-exit-code"));
    EXPECT_THAT(help.wait().out, HasSubstr("Usage: redlock run [OPTIONS] RESOURCE [--] COMMAND [ARG...]\n"));
    EXPECT_THAT(help.wait().out, HasSubstr("redlock run [OPTIONS] RESOURCE -c STRING\n"));
    EXPECT_EQ(help.wait().status, 0);
    for (const auto& words : {std::vector<std::string>{"help", "run"}, {"help", "run", "job", "true"}}) {
        Tool of_a_command{words, {}};
        EXPECT_EQ(of_a_command.wait().out, help.wait().out);
        EXPECT_EQ(of_a_command.wait().status, 0);
    }
}

class ExitStatusWithoutAKeeper : public testing::TestWithParam<bool> {};

// The lock that nobody would extend is released, and its owner is not printed.
TEST_P(ExitStatusWithoutAKeeper, IsThatOfTheSystemAndTheLockIsReleased) {
    ToolWorld world{3};
    std::vector<std::string> words{
        REDLOCK_TOOL, "acquire", "--node-timeout", "2s", "--while-pid", std::to_string(::getpid()), "job"};
    if (GetParam()) words.emplace_back("--json");
    const auto outcome = run_prepared(world, words, refuse_processes);
    EXPECT_EQ(outcome.status, 71);
    EXPECT_EQ(world.keys(), 0U);
    EXPECT_THAT(outcome.err, HasSubstr("no process could be started to keep the lock"));
    if (GetParam()) {
        const auto json = nlohmann::json::parse(outcome.out);
        EXPECT_EQ(json.at("owner"), nullptr);
        EXPECT_EQ(json.at("error").at("code"), "generic:" + std::to_string(EAGAIN));
    } else {
        EXPECT_EQ(outcome.out, "");
    }
}

INSTANTIATE_TEST_SUITE_P(Of, ExitStatusWithoutAKeeper, testing::Bool(),
                         [](const auto& it) { return it.param ? "AnAcquireWithJson" : "AnAcquire"; });

}  // namespace
}  // namespace redlock::test::exit_status_live_test
