// `redlock bench` against real servers.
#include "invocation.hpp"
#include "live_world.hpp"
#include "shell_on_a_terminal.hpp"

#include <regex>
#include <string>
#include <utility>

namespace redlock::test::bench_live_test {
namespace {

Invocation bench(const Cluster& cluster, const std::vector<std::string>& more = {"--seconds", "300ms"}) {
    return Invocation{cluster.uri_list(), joined({"bench"}, more)};
}

struct Bench : testing::Test {
    LiveWorld world{3};
};

TEST_F(Bench, MeasuresBothOrdersOfRoundsAndLeavesNoKeys) {
    auto it = bench(world, {"--seconds", "300ms", "--threads", "3"});
    EXPECT_EQ(it.status(), 0) << it.output();
    for (const auto* part : {"one after the other: ", "all at once: ", "p99.9", "acquired within"})
        EXPECT_THAT(it.output(), HasSubstr(part));
    EXPECT_THAT(it.output(), Not(HasSubstr(": 0 times acquired")));
    EXPECT_THAT(it.output(), Not(HasSubstr("failed")));
    EXPECT_THAT(it.output(), Not(HasSubstr("\r"))) << "the progress is for terminals only";
    EXPECT_TRUE(world.clean());
}

// As redlock status does, and every other program that only prints. The second measurement would be for
// nobody.
TEST_F(Bench, EndsSilentlyIfNobodyReadsItsOutput) {
    const auto run = [&](const std::string& before) {
        support::TemporaryDirectory directory;
        support::ChildProcess command{
            {{"bash", "-c",
              before + REDLOCK_TOOL " bench --node-timeout 2s --seconds 300ms 2>$DIR/err | true; "
                                    "echo ${PIPESTATUS[0]} >>$DIR/err"},
             {"REDLOCK_NODES=" + world.uri_list(), "DIR=" + directory.path().string()}}};
        EXPECT_TRUE(wait_until([&] { return !command.running(); }));
        return content(directory / "err");
    };
    EXPECT_EQ(run(""), "141\n") << "SIGPIPE";
    EXPECT_EQ(run("trap '' PIPE; "), "redlock: stdout takes nothing\n70\n") << "if it is ignored";
    EXPECT_TRUE(world.clean());
}

TEST_F(Bench, DoesNotAffectOtherLocks) {
    auto lock = world.lock("redlock:bench", {.ttl = 1min});
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(bench(world).status(), 0);
    EXPECT_EQ(world.keys_of(lock.owner()), 0U) << "it is another resource";
    EXPECT_EQ(holder(world[0], "redlock:bench"), lock.owner());
    EXPECT_EQ(world[0].command({"DBSIZE"}), "1");
}

TEST_F(Bench, UsesTheResourcesThatTheAclAllows) {
    const RedisServer server{RedisConfig{}.user("locker on nopass ~orders:* +@all")};
    for (const auto& [prefix, status] : {std::pair{"orders:bench", 0}, std::pair{"bench", 77}}) {
        Invocation it{server.uri("locker", "any"), {"bench", "--seconds", "100ms", "--resource", prefix}};
        EXPECT_EQ(it.status(), status) << it.output();
    }
}

// The nodes fail during the first measurement, so the second one has nothing to measure.
TEST_F(Bench, SucceedsIfAnyMeasurementHasAcquired) {
    auto it = bench(world, {"--seconds", "1s"});
    ASSERT_TRUE(wait_until([&] { return calls(world[0], "set") > 10; }));
    world[1].kill();
    world[2].kill();
    EXPECT_EQ(it.status(), 0);
    EXPECT_THAT(it.output(), HasSubstr("all at once: 0 times acquired"));
}

TEST_F(Bench, FailsIfNothingCanBeAcquired) {
    world[1].kill();
    world[2].kill();
    auto it = bench(world);
    EXPECT_EQ(it.status(), 69);
    EXPECT_THAT(it.output(), HasSubstr("failed: acquire: no quorum"));
    EXPECT_EQ(world[0].command({"DBSIZE"}), "0");
}

// The end of a measurement stops the attempts that are under way. When the nodes are frozen, some of so many
// threads acquire, and others release.
TEST_F(Bench, DoesNotCountItsLastAttemptsAsFailures) {
    Invocation it{world.uri_list(), {"bench", "--threads", "20", "--seconds", "2s", "--json"}, "3s"};
    ASSERT_TRUE(wait_until([&] { return calls(world[0], "set") > 10; }));
    for (auto& node : world) node.freeze();
    const auto json = it.json();
    for (const auto& round : json.at("rounds"))
        for (const auto& failure : round.at("failures"))
            EXPECT_NE(failure.at("error").at("code"), "cancelled") << json.dump(2);
    for (auto& node : world) node.thaw();
}

TEST_F(Bench, EndsEarlyOnASignal) {
    for (const auto signal : {SIGINT, SIGTERM}) {
        LiveWorld fresh{3};
        auto it = bench(fresh, {"--seconds", "10m"});
        ASSERT_TRUE(wait_until([&] { return calls(fresh[0], "set") > 10; }));
        it.signal(signal);
        EXPECT_EQ(it.status(), 128 + signal);
        EXPECT_THAT(it.output(), HasSubstr("one after the other: "));
        EXPECT_THAT(it.output(), Not(HasSubstr("all at once")));
        EXPECT_TRUE(fresh.clean());
    }
}

TEST_F(Bench, ReportsInJsonThatItWasEndedEarly) {
    auto it = bench(world, {"--seconds", "10m", "--json"});
    ASSERT_TRUE(wait_until([&] { return calls(world[0], "set") > 10; }));
    it.signal(SIGINT);
    const auto json = it.json();
    EXPECT_EQ(it.status(), 128 + SIGINT);
    EXPECT_EQ(json.at("error").at("code"), "cancelled");
    EXPECT_EQ(json.at("rounds").size(), 1U);
}

TEST_F(Bench, ShowsItsProgressOnATerminal) {
    ShellOnATerminal shell{{"REDLOCK_NODES=" + world.uri_list()}};
    if (!shell.exists()) GTEST_SKIP() << "no pseudo-terminals on this machine";
    shell.enter(REDLOCK_TOOL " bench --seconds 500ms --node-timeout 2s >/dev/null");
    for (const auto* part : {"\rone after the other: ", " acquired, ", "\rall at once: "})
        EXPECT_TRUE(shell.shows(part)) << shell.screen();
    EXPECT_TRUE(shell.shows(" \r$ ")) << "it wipes the line: " << shell.screen();
    const auto screen = shell.screen();
    const std::regex progress{"([0-9]+) acquired, ([0-9]+) a second"};
    std::smatch last;
    for (std::sregex_iterator it{screen.begin(), screen.end(), progress}, end; it != end; ++it) last = *it;
    ASSERT_FALSE(last.empty()) << screen;
    EXPECT_LE(std::stol(last[2]), 5 * std::stol(last[1])) << "a line comes every 200 ms";
}

}  // namespace
}  // namespace redlock::test::bench_live_test
