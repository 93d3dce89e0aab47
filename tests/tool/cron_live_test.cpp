// As cron starts things: no terminal, hardly an environment, no input, a file for what is said.
#include "tool_world.hpp"

namespace redlock::test::cron_live_test {
namespace {

class Cron : public testing::Test {
protected:
    int shell(const std::string& line) {
        support::ChildProcess child{
            {{"env", "-i", "HOME=/", "LOGNAME=root", "SHELL=/bin/sh", "PATH=/usr/bin:/bin", "/bin/sh", "-c",
              line + " </dev/null >>" + world.file("mail").string() + " 2>&1"}}};
        EXPECT_TRUE(wait_until([&] { return !child.running(); }));
        return child.wait();
    }

    std::string redlock() const {
        return std::string{REDLOCK_TOOL} + " run --nodes-file " + world.file("nodes").string();
    }

    void SetUp() override {
        std::ofstream nodes{world.file("nodes")};
        for (const auto& uri : world.uris()) nodes << uri << '\n';
    }

    ToolWorld world{3};
};

TEST_F(Cron, RunsItsJobAndSendsNoMail) {
    EXPECT_EQ(shell(redlock() + " -n job touch " + world.file("done").string()), 0);
    EXPECT_TRUE(world.has("done"));
    EXPECT_EQ(world.in("mail"), "");
    EXPECT_EQ(world.keys(), 0U);
}

// flock -n -E 0 /var/lock/job -c '...' becomes redlock run -n -E 0 job -c '...'
TEST_F(Cron, LinesOfFlockWorkWithTheNameInsteadOfTheFile) {
    EXPECT_EQ(shell(redlock() + " -n -E 0 job -c 'echo $((2 + 3))'"), 0);
    EXPECT_EQ(world.in("mail"), "5\n");
}

// Each host starts it when its own clock says so. The ttl is raised to the minimum hold time.
TEST_F(Cron, RunsAJobOnOneHostEvenIfTheClocksDiffer) {
    const auto line = redlock() + " -n -E 0 -q --ttl 5s --min-hold 60s job -c 'echo $REDLOCK_TTL_MS'";
    EXPECT_EQ(shell(line), 0);
    EXPECT_EQ(shell(line), 0);
    EXPECT_THAT(world.in("mail"), testing::StrEq("60000\n"));
    EXPECT_EQ(world[0].command({"GET", "job"}), "redlock:min-hold");
    EXPECT_GT(std::stoi(world[0].command({"PTTL", "job"})), 5'000);
}

TEST_F(Cron, AcceptsTheFormerNameOfMinHoldWithAWarning) {
    EXPECT_EQ(shell(redlock() + " -n -q --ttl 5s --at-least 60s job true"), 0);
    EXPECT_EQ(world.in("mail"), "redlock: the next version will not know --at-least: use --min-hold\n");
    EXPECT_EQ(world[0].command({"GET", "job"}), "redlock:min-hold");
    EXPECT_GT(std::stoi(world[0].command({"PTTL", "job"})), 5'000);
}

TEST_F(Cron, ReportsOnceWhyAJobWasNotRun) {
    world.occupy();
    EXPECT_EQ(shell(redlock() + " -n job true"), 1);
    EXPECT_THAT(world.in("mail"), testing::MatchesRegex("redlock: job: held by another on [23] of 3 nodes; "
                                                        "now held by \"another\" on 3 of 3 nodes[^\n]*\n"));
}

// Without this message, the job would never run, and nobody would know.
TEST_F(Cron, SaysThatTheNodesAreOneServer) {
    const auto port = ":" + std::to_string(world[0].port());
    std::ofstream{world.file("nodes")} << "127.0.0.1" << port << "\n127.1" << port << "\n127.0.1" << port
                                       << '\n';
    EXPECT_EQ(shell(redlock() + " -nq -E 0 job touch " + world.file("done").string()), 69);
    EXPECT_THAT(world.in("mail"), HasSubstr("redlock: job: no quorum: granted by 1 of 3 nodes"));
    EXPECT_THAT(world.in("mail"), HasSubstr(" same server as another node (as 127.0.0.1" + port + ")"));
    EXPECT_EQ(world.keys(), 0U);
}

TEST_F(Cron, SharedLinesRunTogetherButWithNoOtherLine) {
    const auto within =
        redlock() + " -n -s job true; echo $?; " + redlock() + " -n -E 7 job true 2>/dev/null; echo $?";
    EXPECT_EQ(shell(redlock() + " -s job -c '" + within + "'"), 0);
    EXPECT_EQ(world.in("mail"), "0\n7\n");
    EXPECT_EQ(world.keys(), 0U);
}

}  // namespace
}  // namespace redlock::test::cron_live_test
