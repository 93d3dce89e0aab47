// `redlock bench` against real servers.
#include "invocation.hpp"
#include "live_world.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>

namespace redlock::test {
namespace {

Invocation bench(const Cluster& cluster, std::vector<std::string> more = {"--seconds", "300ms"}) {
    more.insert(more.begin(), "bench");
    return Invocation{cluster.uri_list(), more};
}

TEST(Bench, MeasuresBothKindsOfRoundAndLeavesNothing) {
    LiveWorld world{3};
    auto it = bench(world, {"--seconds", "300ms", "--threads", "3"});
    EXPECT_EQ(it.status(), 0) << it.output();
    for (const auto* part : {"one after the other: ", "all at once: ", "p99.9", "acquired within"})
        EXPECT_THAT(it.output(), HasSubstr(part));
    EXPECT_THAT(it.output(), Not(HasSubstr(": 0 times acquired")));
    EXPECT_THAT(it.output(), Not(HasSubstr("failed")));
    EXPECT_THAT(it.output(), Not(HasSubstr("\r"))) << "the progress is for terminals only";
    EXPECT_TRUE(world.clean());
}

TEST(Bench, MeetsNoLockInUse) {
    LiveWorld world{3};
    auto lock = world.lock("redlock:bench", {.ttl = 1min});
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(bench(world).status(), 0);
    EXPECT_EQ(world.keys_of(lock.owner()), 0U) << "that is another resource";
    EXPECT_EQ(holder(world[0], "redlock:bench"), lock.owner());
    EXPECT_EQ(world[0].command({"DBSIZE"}), "1");
}

TEST(Bench, TellsOfNodesThatFail) {
    LiveWorld world{3};
    world[2].kill();
    auto it = bench(world);
    EXPECT_EQ(it.status(), 0);
    EXPECT_THAT(it.output(), HasSubstr("no vote: " + world[2].name() + ": "));
}

TEST(Bench, FailsWhereNothingCanBeAcquired) {
    LiveWorld world{3};
    world[1].kill();
    world[2].kill();
    auto it = bench(world);
    EXPECT_EQ(it.status(), 69);
    EXPECT_THAT(it.output(), HasSubstr("failed: acquire: no quorum"));
    EXPECT_EQ(world[0].command({"DBSIZE"}), "0");
}

TEST(Bench, EndsEarlyOnCtrlC) {
    LiveWorld world{3};
    auto it = bench(world, {"--seconds", "10m"});
    const std::string counter = "cmdstat_set:calls=";
    ASSERT_TRUE(wait_until([&] {
        const auto stats = world[0].command({"INFO", "commandstats"});
        const auto at = stats.find(counter);
        return at != stats.npos && std::stol(stats.substr(at + counter.size())) > 10;
    }));
    ::kill(it.process().pid(), SIGINT);
    ASSERT_TRUE(wait_until([&] { return !it.process().running(); }));
    EXPECT_EQ(it.status(), 0);
    EXPECT_THAT(it.output(), HasSubstr("one after the other: "));
    EXPECT_THAT(it.output(), Not(HasSubstr("all at once")));
    EXPECT_TRUE(world.clean());
}

/// Runs the bench with its errors on a terminal of its own, and returns what it wrote there.
std::string seen_on_a_terminal(const Cluster& cluster) {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) return "(no terminal)";
    const std::string name = ::ptsname(terminal);
    support::ChildProcess shell{
        {.words = {"sh", "-c",
                   "exec " REDLOCK_TOOL " bench --seconds 500ms --node-timeout 2s >/dev/null 2>" + name},
         .environment = {"REDLOCK_NODES=" + cluster.uri_list()}}};
    std::string seen;
    const auto drain = [&] {
        std::array<char, 4096> bytes{};
        for (ssize_t length = 0; (length = ::read(terminal, bytes.data(), bytes.size())) > 0;)
            seen.append(bytes.data(), static_cast<std::size_t>(length));
    };
    EXPECT_TRUE(wait_until([&] {
        drain();
        return !shell.running();
    }));
    drain();
    ::close(terminal);
    return seen;
}

TEST(Bench, ShowsItsProgressOnATerminal) {
    LiveWorld world{3};
    const auto seen = seen_on_a_terminal(world);
    if (seen == "(no terminal)") GTEST_SKIP() << "no pseudo-terminals on this machine";
    EXPECT_THAT(seen, HasSubstr("\rone after the other: "));
    EXPECT_THAT(seen, HasSubstr("\rall at once: "));
    EXPECT_THAT(seen, HasSubstr(" acquired, "));
    EXPECT_THAT(seen, testing::EndsWith(" \r")) << "it wipes the line";
}

TEST(Bench, RefusesWrongArguments) {
    Cluster cluster{1};
    for (const auto& arguments : std::vector<std::vector<std::string>>{
             {"--seconds", "0"}, {"--threads", "0"}, {"--ttl", "1ms"}, {"--seconds", "nonsense"}})
        EXPECT_EQ(bench(cluster, arguments).status(), 64) << arguments[0];
}

}  // namespace
}  // namespace redlock::test
