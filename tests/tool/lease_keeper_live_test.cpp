// The process that `redlock acquire --while-pid` leaves behind, which keeps the lock for as long as another
// process lives.
#include "prepared_child.hpp"
#include "subreaper.hpp"
#include "support/refused_call.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

namespace redlock::test::lease_keeper_live_test {
namespace {

class LeaseKeeper : public testing::Test {
protected:
    ~LeaseKeeper() override {
        script.kill();
        for (const auto pid : keepers()) (void)status_of(pid);
    }

    /// The node_timeout is one for a busy machine, unless the options say otherwise.
    std::vector<std::string> acquire(std::vector<std::string> options) const {
        if (std::ranges::count(options, "--node-timeout") == 0)
            options.insert(options.end(), {"--node-timeout", "2s"});
        const auto words = joined({"acquire", "--while-pid", std::to_string(script.pid())}, options);
        return joined(words, {"job"});
    }

    /// The children of this process that run `redlock`.
    static std::vector<pid_t> keepers() {
        std::vector<pid_t> result;
        for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task"}) {
            std::ifstream children{task.path() / "children"};
            for (pid_t pid = 0; children >> pid;)
                if (content("/proc/" + std::to_string(pid) + "/comm") == "redlock\n") result.push_back(pid);
        }
        return result;
    }

    /// Returns the only keeper, or 0.
    static pid_t keeper() {
        const auto all = keepers();
        EXPECT_EQ(all.size(), 1U);
        return all.size() == 1 ? all.front() : 0;
    }
    /// Waits for the end of a keeper, and returns its exit status.
    static int status_of(pid_t keeper) {
        int status = 0;
        EXPECT_TRUE(wait_until([&] { return ::waitpid(keeper, &status, WNOHANG) == keeper; }));
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    static std::string owner_in(const Outcome& outcome) { return outcome.out.substr(6, 40); }
    static int validity_in(const Outcome& outcome) {
        return std::stoi(outcome.out.substr(outcome.out.find("validity_ms=") + 12));
    }

    const Subreaper subreaper{};
    ToolWorld world{3};
    ForkedChild script{[](auto) { ::pause(); }};
};

// Extensions fail from a third of the ttl on, for as long as a majority is frozen.
TEST_F(LeaseKeeper, KeepsAValidLockWhoseExtensionsFail) {
    const auto begun = boot_clock().now();
    const auto outcome = world.run(acquire({"--ttl", "15s", "--node-timeout", "300ms"}));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    world[1].freeze();
    world[2].freeze();
    boot_clock().sleep_until(begun + 11500ms, {});
    EXPECT_EQ(holder(world[0], "job"), owner_in(outcome)) << "it is valid for another three seconds";
    world[1].thaw();
    world[2].thaw();
    const auto is_extended = [&](auto& node) {
        return holder(node, "job") == owner_in(outcome) && expiry(node, "job") > 10s;
    };
    EXPECT_TRUE(wait_until([&] { return std::ranges::count_if(world, is_extended) >= 2; }, 30s));
}

// The first node takes so long to be given up that less than a third of the ttl is left.
TEST_F(LeaseKeeper, ExtendsASlowlyAcquiredLockAtOnce) {
    world[0].freeze();
    const auto outcome = world.run(acquire({"--ttl", "9s", "--node-timeout", "6600ms"}));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_LT(validity_in(outcome), 3000);
    const auto is_held = [&] { return holder(world[1], "job") == owner_in(outcome); };
    EXPECT_TRUE(wait_until([&] { return calls(world[1], "pexpire") > 0 || !is_held(); }));
    EXPECT_TRUE(is_held());
    world[0].thaw();
}

// Otherwise the file system of the directory could not be unmounted for as long as the keeper runs, and a
// signal to the process group of the caller, or the end of its terminal, would end the keeper.
TEST_F(LeaseKeeper, LeavesTheDirectoryTheInputAndTheSessionOfTheCaller) {
    world.touch("input");
    ASSERT_EQ(world.run(acquire({}), world.file("input").string()).status, 0);
    const auto left = keeper();
    const auto process = "/proc/" + std::to_string(left);
    EXPECT_TRUE(wait_until([&] { return std::filesystem::read_symlink(process + "/cwd") == "/"; }));
    EXPECT_TRUE(wait_until([&] { return std::filesystem::read_symlink(process + "/fd/0") == "/dev/null"; }));
    EXPECT_TRUE(wait_until([&] { return ::getsid(left) == left; }));
}

// `redlock acquire` blocks signals while it acquires.
TEST_F(LeaseKeeper, EndsOnASignalAndLeavesTheLockToItsExpiry) {
    ASSERT_EQ(world.run(acquire({"--ttl", "1h"})).status, 0);
    const auto left = keeper();
    ASSERT_GT(left, 1);
    ::kill(left, SIGTERM);
    int status = 0;
    ASSERT_TRUE(wait_until([&] { return ::waitpid(left, &status, WNOHANG) == left; }));
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    EXPECT_EQ(world.keys(), 3U);
}

// With --fair, a release wakes the next one in the queue.
TEST_F(LeaseKeeper, WakesAWaiterWhenItReleasesTheLock) {
    ASSERT_EQ(world.run(acquire({"--fair"})).status, 0);
    auto waiter = world.start({"acquire", "--fair", "--retry-delay", "1m", "job"});
    ASSERT_TRUE(wait_until([&] { return world[0].command({"ZCARD", "{job}:queue"}) == "1"; }));
    script.kill();
    EXPECT_EQ(waiter.wait().status, 0);
    EXPECT_EQ(calls(world[0], "publish"), 1U);
}

class LossOfAKeptLock : public LeaseKeeper {
protected:
    /// Runs a script of the shell, in which $ACQUIRE is the command without its options.
    support::ChildProcess shell(const std::string& script) const {
        return support::ChildProcess{
            {{"sh", "-c", script},
             world.environment("ACQUIRE=" REDLOCK_TOOL " acquire --ttl 6s --node-timeout 2s --while-pid")}};
    }
};

TEST_F(LossOfAKeptLock, IsReportedInAFileAndByTheExitStatus) {
    auto tool = world.start(acquire({"--ttl", "6s"}));
    ASSERT_EQ(tool.wait().status, 0);
    const auto left = keeper();
    world.steal();
    EXPECT_EQ(status_of(left), 75);
    EXPECT_THAT(tool.err(),
                testing::MatchesRegex("redlock: job: lost on [23] of 3 nodes; process " +
                                      std::to_string(script.pid()) + " goes on without the lock\n"));
}

TEST_F(LossOfAKeptLock, IsReportedWhileTheNodesHang) {
    auto tool = world.start(acquire({"--ttl", "3s", "--node-timeout", "500ms"}));
    ASSERT_EQ(tool.wait().status, 0);
    const auto left = keeper();
    for (auto& node : world) node.freeze();
    EXPECT_EQ(status_of(left), 75);
    EXPECT_THAT(tool.err(), HasSubstr("redlock: job: lost: granted by 0 of 3 nodes"));
    for (auto& node : world) node.thaw();
}

// As in a line of cron, whose output is a pipe.
TEST_F(LossOfAKeptLock, IsReportedInAPipeThatTheScriptHasOpen) {
    auto reader = shell(
        "sh -c '$ACQUIRE $$ job >/dev/null; touch $DIR/begun; until [ -e $DIR/go ]; do sleep 0.01; done' "
        "2>&1 "
        ">/dev/null | while read -r line; do echo \"$line\" >$DIR/q; mv $DIR/q $DIR/said; done");
    ASSERT_TRUE(world.comes("begun"));
    world.steal();
    EXPECT_TRUE(world.comes("said"));
    EXPECT_THAT(world.in("said"), HasSubstr("redlock: job: lost on "));
    world.touch("go");
    EXPECT_EQ(reader.wait(), 0);
}

// The keeper still has to delete the key on the third node.
TEST_F(LossOfAKeptLock, IsHandledEvenIfNobodyReadsTheReport) {
    auto reader = shell(
        "sh -c '$ACQUIRE $$ job >/dev/null; touch $DIR/begun; until [ -e $DIR/go ]; do sleep 0.01; done' "
        "2>&1 >/dev/null | "
        "{ until [ -e $DIR/begun ]; do sleep 0.01; done; exec </dev/null; touch $DIR/closed; }");
    ASSERT_TRUE(world.comes("closed"));
    const auto left = keeper();
    world[0].command({"DEL", "job"});
    world[1].command({"DEL", "job"});
    EXPECT_EQ(status_of(left), 75);
    EXPECT_EQ(world.keys(), 0U);
    world.touch("go");
    EXPECT_EQ(reader.wait(), 0);
}

// A majority has lost the key, so nobody can have extended the lock: the rest is only in the way.
TEST_F(LossOfAKeptLock, LeavesNoKeysOnTheOtherNodes) {
    ASSERT_EQ(world.run(acquire({"--ttl", "18s"})).status, 0);
    world[0].command({"DEL", "job"});
    world[1].command({"DEL", "job"});
    EXPECT_TRUE(wait_until([&] { return keepers().size() == 1 && world.keys() == 0; }, 17s));
}

/// What a caller has open beside its standard streams.
class DescriptorsOfTheKeeper : public LeaseKeeper {
protected:
    void acquire_job() {
        ASSERT_EQ(Tool(acquire({}), world.environment()).wait().status, 0);
        ASSERT_EQ(keepers().size(), 1U);
    }
};

constexpr auto highest_tried = 1500;

TEST_F(DescriptorsOfTheKeeper, KeepNoPipeOpen) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const int high = ::fcntl(ends[1], F_DUPFD, highest_tried);  // -1 if so many are not allowed
    ::fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    acquire_job();
    ::close(ends[1]);
    if (high >= 0) ::close(high);
    pollfd ended{ends[0], POLLIN, 0};
    EXPECT_EQ(::poll(&ended, 1, 120'000), 1) << "the end of the pipe";
    EXPECT_EQ(world.keys(), 3U);
    ::close(ends[0]);
}

TEST_F(DescriptorsOfTheKeeper, KeepNoFileLocked) {
    world.touch("lock");
    const int locked = ::open(world.file("lock").c_str(), O_RDONLY);
    ASSERT_EQ(::flock(locked, LOCK_EX | LOCK_NB), 0);
    acquire_job();
    ::close(locked);
    const int another = ::open(world.file("lock").c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_TRUE(wait_until([&] { return ::flock(another, LOCK_EX | LOCK_NB) == 0; }));
    EXPECT_EQ(world.keys(), 3U);
    ::close(another);
}

// lock=$(redlock acquire --while-pid $$ job 2>&1) ends when the command does.
TEST_F(LossOfAKeptLock, IsNotReportedInAPipeThatTheScriptDoesNotHave) {
    auto script = shell("lock=$($ACQUIRE $$ job 2>&1); touch $DIR/begun; exec sleep 1000");
    EXPECT_TRUE(world.comes("begun"));
    EXPECT_EQ(keepers().size(), 1U);
    script.kill();
}

class AKeeperWithAFastClock : public LeaseKeeper {};

// The preloaded clock runs a thousand times faster, so that an hour of the keeper takes 3.6 seconds. After
// that hour a watchdog does not extend a lock with default options.
TEST_F(AKeeperWithAFastClock, ExtendsTheLockForLongerThanAnHour) {
    Tool tool{acquire({"--ttl", "30m", "--node-timeout", "8m"}),
              world.environment("LD_PRELOAD=" REDLOCK_FAST_CLOCK)};
    const auto outcome = tool.wait();
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto left = keeper();
    const auto hour_is_over = boot_clock().now() + 4s;
    EXPECT_TRUE(wait_until([&] { return boot_clock().now() > hour_is_over; }));
    const auto extensions = calls(world[1], "pexpire");
    EXPECT_TRUE(wait_until([&] {
        return calls(world[1], "pexpire") >= extensions + 3 || ::waitpid(left, nullptr, WNOHANG) != 0;
    }));
    EXPECT_GE(calls(world[1], "pexpire"), extensions + 3) << tool.err();
    EXPECT_EQ(world.keys(), 3U);
}

// The other process may have extended the lock meanwhile, so it may still be valid.
TEST_F(AKeeperWithAFastClock, DoesNotReleaseALockThatItCouldNotExtend) {
    Tool tool{acquire({"--ttl", "1h", "--node-timeout", "8m"}),
              world.environment("LD_PRELOAD=" REDLOCK_FAST_CLOCK)};
    ASSERT_EQ(tool.wait().status, 0) << tool.err();
    const auto left = keeper();
    for (auto& node : world) node.freeze();
    EXPECT_EQ(status_of(left), 75);
    for (auto& node : world) node.thaw();
    const auto clients = [](auto& node) {
        const auto list = node.command({"CLIENT", "LIST"});
        return std::ranges::count(list, '\n') + (list.ends_with('\n') ? 0 : 1);
    };
    for (auto& node : world)  // only the client of this test: all that the keeper has sent was executed
        EXPECT_TRUE(wait_until([&] { return clients(node) == 1; }));
    EXPECT_EQ(world.keys(), 3U);
}

/// pidfd_open() fails, as in a container whose profile does not know it (EPERM), or before Linux 5.3
/// (ENOSYS).
class AKeeperWithoutPidfdOpen : public LeaseKeeper, public testing::WithParamInterface<int> {
protected:
    /// Runs `redlock acquire --while-pid` of the script, by the program `runner` if there is one. `prepare`
    /// is called first.
    template <class Prepare>
    Outcome acquire_for(const std::string& ttl, Prepare prepare,
                        const std::vector<std::string>& runner = {}) const {
        const auto words = acquire({"--ttl", ttl, "--node-timeout", "300ms"});
        return run_prepared(world, joined(joined(runner, {REDLOCK_TOOL}), words),
                            [&] { return support::refuse_call(SYS_pidfd_open, GetParam()) && prepare(); });
    }
    static bool nothing() { return true; }
};

// A process that has ended, and for which nobody has waited, has ended.
TEST_P(AKeeperWithoutPidfdOpen, KeepsTheLockUntilTheProcessEnds) {
    const auto outcome = acquire_for("2s", nothing);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto extensions = [&] { return calls(world[1], "pexpire"); };
    EXPECT_TRUE(wait_until([&] { return extensions() >= 4; })) << "more than a ttl";
    EXPECT_EQ(holder(world[0], "job"), owner_in(outcome));
    ::kill(script.pid(), SIGKILL);
    EXPECT_TRUE(wait_until([&] { return world.keys() == 0; }));
    const auto left = keepers();
    for (const auto pid : left) EXPECT_EQ(status_of(pid), 0);
    EXPECT_EQ(world.in("err"), "");
}

TEST_P(AKeeperWithoutPidfdOpen, ReleasesALockThatLastsLonger) {
    const auto outcome = acquire_for("1h", nothing);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto left = keeper();
    script.kill();
    EXPECT_EQ(status_of(left), 0) << "released, and not lost";
}

// That it cannot open the file says nothing about the process.
TEST_P(AKeeperWithoutPidfdOpen, KeepsTheLockWithoutAFreeDescriptor) {
    const auto outcome = acquire_for("1h", nothing);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto left = keeper();
    const rlimit none{0, 0};
    ASSERT_EQ(::prlimit(left, RLIMIT_NOFILE, &none, nullptr), 0);
    EXPECT_FALSE(wait_until([&] { return ::waitpid(left, nullptr, WNOHANG) != 0; }, 1s));
    EXPECT_EQ(world.keys(), 3U);
    ::kill(left, SIGKILL);
}

TEST_P(AKeeperWithoutPidfdOpen, IsNotStartedForAProcessThatDoesNotExist) {
    script.kill();
    const auto outcome = acquire_for("1h", nothing);
    EXPECT_EQ(outcome.status, 64);
    EXPECT_EQ(outcome.err,
              "redlock: --while-pid: process " + std::to_string(script.pid()) + ": No such process\n");
    EXPECT_EQ(world.keys(), 0U);
}

TEST_P(AKeeperWithoutPidfdOpen, IsNotStartedIfProcShowsNoProcesses) {
    const auto hide_proc = [] {
        return ::unshare(CLONE_NEWNS) == 0 &&
               ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               ::mount("tmpfs", "/proc", "tmpfs", 0, nullptr) == 0;
    };
    const auto outcome = acquire_for("1h", hide_proc);
    if (outcome.status == 99) GTEST_SKIP() << "this user cannot hide /proc";
    EXPECT_EQ(outcome.status, 64);
    EXPECT_EQ(outcome.err, "redlock: --while-pid: process " + std::to_string(script.pid()) +
                               ": this takes the system call pidfd_open (" +
                               std::generic_category().message(GetParam()) +
                               ") or a /proc that shows the process\n");
    EXPECT_EQ(world.keys(), 0U);
}

// /proc may belong to another namespace, in which another process has the number.
TEST_P(AKeeperWithoutPidfdOpen, IsNotStartedForAProcessOfAnotherNamespace) {
    if (world.shell("unshare --pid --fork true") != 0) GTEST_SKIP() << "this user cannot make a namespace";
    const auto outcome = acquire_for("1h", nothing, {"unshare", "--pid", "--fork"});
    EXPECT_EQ(outcome.status, 64);
    EXPECT_THAT(outcome.err, HasSubstr(": No such process\n"));
}

INSTANTIATE_TEST_SUITE_P(IfIt, AKeeperWithoutPidfdOpen, testing::Values(EPERM, ENOSYS, EACCES),
                         [](const auto& it) {
                             return it.param == ENOSYS  ? "IsMissing"
                                    : it.param == EPERM ? "IsForbidden"
                                                        : "IsDenied";
                         });

class AKeeperOfAFailedAcquisition : public LeaseKeeper {};

// Nobody knows the owner of this lock, so nobody must keep it.
TEST_F(AKeeperOfAFailedAcquisition, EndsWithTheLockReleasedIfTheOwnerCannotBePrinted) {
    support::ChildProcess command{
        {joined({"sh", "-c", "exec \"$@\" >/dev/full", "sh", REDLOCK_TOOL}, acquire({})),
         world.environment()}};
    EXPECT_EQ(command.wait(), 70);
    EXPECT_EQ(world.keys(), 0U);
    EXPECT_THAT(keepers(), IsEmpty());
}

}  // namespace
}  // namespace redlock::test::lease_keeper_live_test
