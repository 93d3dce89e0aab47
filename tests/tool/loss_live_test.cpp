// redlock run when the lock is lost under its command.
#include "live/forked_child.hpp"
#include "tool_world.hpp"

#include <redlock/detail/not_copied.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>

namespace redlock::test::loss_live_test {
namespace {

class LossDuringRun : public testing::Test {
protected:
    /// Starts a job, and takes its lock away when it has begun.
    Outcome lose(const std::string& script, const std::vector<std::string>& options) {
        auto tool = world.start_until("begun", script, joined(options, {"--ttl", "3s"}));
        world.steal();
        return tool.wait();
    }

    ToolWorld world{3};
};

const std::string deaf = "trap 'touch $DIR/heard' TERM; touch $DIR/begun; while :; do sleep 0.01; done";
const std::string obedient =
    "trap 'touch $DIR/heard; exit 0' TERM; touch $DIR/begun; while :; do sleep 0.01; done";

TEST_F(LossDuringRun, StopsTheCommand) {
    const auto outcome = lose(obedient, {});
    EXPECT_EQ(outcome.status, 75);
    EXPECT_TRUE(world.has("heard"));
    EXPECT_THAT(outcome.err,
                testing::ContainsRegex("redlock: job: lost on [23] of 3 nodes; the command is ended"));
    EXPECT_THAT(outcome.err, testing::Not(HasSubstr("release"))) << "there is nothing left to release";
}

TEST_F(LossDuringRun, KillsACommandThatDoesNotStopWithinTheGrace) {
    const auto outcome = lose(deaf, {"--grace", "1.5"});
    EXPECT_EQ(outcome.status, 75);
    EXPECT_TRUE(world.has("heard"));
}

// Longer than the default grace.
TEST_F(LossDuringRun, GivesTheCommandTheWholeGrace) {
    const auto outcome =
        lose("trap 'sleep 6; touch $DIR/ended; exit 0' TERM; touch $DIR/begun; while :; do sleep 0.01; done",
             {"--grace", "1h"});
    EXPECT_EQ(outcome.status, 75);
    EXPECT_TRUE(world.has("ended"));
}

// A shell that is at work hears a SIGTERM within microseconds: one that was sent before the SIGKILL, too.
TEST_F(LossDuringRun, KillsTheCommandAtOnceWithoutAGrace) {
    for (int time = 0; time < 5; ++time) {
        const auto outcome =
            lose("exec 3>$DIR/heard; trap 'echo >&3' TERM; touch $DIR/begun; while :; do :; done",
                 {"--grace", "0"});
        EXPECT_EQ(outcome.status, 75);
        EXPECT_EQ(world.in("heard"), "");
        std::filesystem::remove(world.file("begun"));
    }
}

// Its child takes longer than the command itself.
TEST_F(LossDuringRun, WaitsForTheCommandAndItsChildrenIfConfigured) {
    const auto outcome = lose(
        "trap 'touch $DIR/heard; sleep 0.3; exit 3' TERM; "
        "sh -c 'trap \"sleep 0.8; touch $DIR/cleaned-up; exit\" TERM; touch $DIR/begun; "
        "while :; do sleep 0.01; done' & while :; do sleep 0.01; done",
        {"--on-lost", "term", "--grace", "0.1"});
    EXPECT_EQ(outcome.status, 75);
    EXPECT_TRUE(world.has("heard"));
    EXPECT_TRUE(world.has("cleaned-up"));
}

TEST_F(LossDuringRun, IsOnlyReportedIfConfigured) {
    auto tool = world.start_until("begun", "trap 'touch $DIR/heard' TERM; " + until_go + "; exit 4",
                                  {"--ttl", "3s", "--on-lost", "ignore"});
    world.steal();
    EXPECT_TRUE(wait_until([&] { return tool.err().find("job: lost") != std::string::npos; }));
    world.touch("go");
    const auto outcome = tool.wait();
    EXPECT_EQ(outcome.status, 4);
    EXPECT_FALSE(world.has("heard"));
}

TEST_F(LossDuringRun, IsHandledEvenIfTheOutputIsClosed) {
    const std::string redlock = REDLOCK_TOOL " run --node-timeout 2s --ttl 3s job -- sh -c \"$SCRIPT\"";
    support::ChildProcess child{
        {{"sh", "-c", "{ " + redlock + " >/dev/null; echo $? >$DIR/s; mv $DIR/s $DIR/status; } 2>&1 | true"},
         world.environment("SCRIPT=exec 2>/dev/null; " + obedient)}};
    ASSERT_TRUE(world.comes("begun"));
    world.steal();
    ASSERT_TRUE(world.comes("status"));
    EXPECT_EQ(world.in("status"), "75\n");
    EXPECT_TRUE(world.has("heard"));
}

// A pipe from which nobody reads takes no more at some time.
TEST_F(LossDuringRun, IsHandledEvenIfTheOutputIsFull) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_NONBLOCK), 0);
    const std::string page(4096, 'x');
    while (::write(ends[1], page.data(), page.size()) > 0) {
    }
    ASSERT_EQ(::fcntl(ends[1], F_SETFL, 0), 0);  // it may block from now on
    ForkedChild command{[&](auto) {
        ::dup2(ends[1], STDERR_FILENO);
        execute({REDLOCK_TOOL, "run", "--node-timeout", "2s", "--ttl", "3s", "job", "sh", "-c",
                 "exec 2>/dev/null; " + obedient},
                world.environment());
    }};
    ASSERT_TRUE(world.comes("begun"));
    world.steal();
    ASSERT_TRUE(wait_until([&] { return !lives(std::to_string(command.pid())); }));
    EXPECT_EQ(command.wait(), 75);
    EXPECT_TRUE(world.has("heard"));
}

// By the time at the latest, whatever the nodes do.
TEST_F(LossDuringRun, IsReportedWhileTheNodesHang) {
    auto tool =
        world.start({"run", "--ttl", "2s", "--node-timeout", "500ms", "job", "--", "sh", "-c", obedient});
    ASSERT_TRUE(world.comes("begun"));
    for (auto& node : world) node.freeze();
    ASSERT_TRUE(world.comes("heard"));
    for (auto& node : world) node.thaw();
    EXPECT_EQ(tool.wait().status, 75);
}

TEST_F(LossDuringRun, IsReportedAfterMaxHold) {
    const auto begun = boot_clock().now();
    auto tool = world.start(world.job(obedient, {"--ttl", "1h", "--max-hold", "0.1"}));
    const auto outcome = tool.wait();
    EXPECT_EQ(outcome.status, 75);
    EXPECT_THAT(outcome.err, HasSubstr("held for as long as --max-hold says; the command is ended"));
    EXPECT_LE(boot_clock().now() - begun, 30s) << "not when the ttl is over";
    EXPECT_EQ(world.keys(), 0U);
}

TEST_F(LossDuringRun, EndsProcessesThatTheCommandLeftRunning) {
    const auto outcome = lose(
        "sh -c 'trap \"\" TERM; echo $$ >$DIR/p; mv $DIR/p $DIR/left; while :; do sleep 0.01; done' & "
        "until [ -e $DIR/left ]; do sleep 0.01; done; " +
            obedient,
        {"--grace", "2"});
    EXPECT_EQ(outcome.status, 75);
    EXPECT_TRUE(world.has("heard"));
    EXPECT_FALSE(lives(world.pid_in("left")));
}

/// A verbose `redlock run` between the acquisition and the start of its command: its message waits for a
/// reader, which is this object.
class VerboseRun : detail::NotCopied {
public:
    VerboseRun(const ToolWorld& world, const std::string& options) {
        const auto fifo = world.file("fifo").string();
        EXPECT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
        ends_ = ::open(fifo.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
        EXPECT_GE(ends_, 0);
        while (::write(ends_, "full", 4) > 0) {
        }
        const auto words = " run -v " + options + " job touch $DIR/started 2>$DIR/fifo";
        process_.emplace(support::Program{{"sh", "-c", "exec " REDLOCK_TOOL + words}, world.environment()});
    }
    ~VerboseRun() { ::close(ends_); }

    support::ChildProcess& process() { return *process_; }
    void read() {
        std::array<char, 4096> bytes{};
        for (auto size = ::read(ends_, bytes.data(), bytes.size()); size > 0;
             size = ::read(ends_, bytes.data(), bytes.size()))
            said_.append(bytes.data(), static_cast<std::size_t>(size));
    }
    /// Reads until it ends. Returns its exit status.
    int wait() {
        EXPECT_TRUE(wait_until([&] {
            read();
            return !process_->running();
        }));
        read();
        return process_->wait();
    }
    const std::string& said() const { return said_; }

private:
    int ends_ = -1;
    std::optional<support::ChildProcess> process_{};
    std::string said_{};
};

TEST_F(LossDuringRun, PreventsTheStartOfTheCommand) {
    VerboseRun run{world, "--on-lost ignore --ttl 3s"};
    ASSERT_TRUE(wait_until([&] { return world.keys() == 3; }));
    run.process().freeze();
    ASSERT_TRUE(wait_until([&] { return world.keys() == 0; }));
    world.occupy();
    run.read();
    run.process().thaw();
    EXPECT_EQ(run.wait(), 75);
    EXPECT_FALSE(world.has("started"));
    EXPECT_THAT(run.said(), HasSubstr("redlock: job: lost before the command was started\n"));
}

// The watchdog wakes the main thread by SIGCHLD when it finds the loss.
TEST_F(LossDuringRun, BeforeTheStartEndsTheMinimumHoldTime) {
    VerboseRun run{world, "--min-hold 6s --ttl 6s --node-timeout 2s"};
    ASSERT_TRUE(wait_until([&] { return world.keys() == 3; }));
    for (const std::size_t node : {0U, 1U}) world[node].command({"DEL", "job"});
    const auto is_asked_to_extend = [&](std::size_t node) {  // the first script writes the holder description
        return calls(world[node], "eval") + calls(world[node], "evalsha") > 1;
    };
    ASSERT_TRUE(
        wait_until([&] { return is_asked_to_extend(0) && is_asked_to_extend(1) && is_asked_to_extend(2); }));
    const auto status = "/proc/" + std::to_string(run.process().pid()) + "/status";
    ASSERT_TRUE(
        wait_until([&] { return content(status).find("ShdPnd:\t0000000000010000") != std::string::npos; }));
    EXPECT_EQ(run.wait(), 75);
    EXPECT_FALSE(world.has("started"));
    EXPECT_EQ(world.keys(), 0U);
}

}  // namespace
}  // namespace redlock::test::loss_live_test
