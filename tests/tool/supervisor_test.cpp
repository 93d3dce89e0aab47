// The environment of a command, and how what it leaves running is ended.
#include "tool/run/supervisor.hpp"

#include "live/forked_child.hpp"
#include "support/refused_call.hpp"
#include "support/wait_until.hpp"

#include <gmock/gmock.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>

namespace redlock::tool::supervisor_test {
namespace {

using namespace std::chrono_literals;
using test::ForkedChild;

/// A process that watches over a command, and reports the process group and the exit status of the command.
/// Its lock is never lost.
class WatchedCommand : public testing::Test {
protected:
    static void watch(const auto& report, std::chrono::nanoseconds grace) {
        const Signals signals{SIGTERM};
        Terminal terminal;
        ProcessGroup command{{.words = {"sleep", "120"}, .environment = {}}, signals, terminal};
        report(std::to_string(command.id()));
        const SupervisionPolicy policy{.grace = grace, .look_at_lock = [] { return std::nullopt; }};
        report(std::to_string(supervise(command, signals, terminal, policy).status));
    }

    /// The body of a process that joins the group. Only SIGKILL ends it.
    static auto joining(pid_t group) {
        return [group](const auto& report) {
            (void)::signal(SIGTERM, SIG_IGN);
            report(::setpgid(0, group) == 0 ? "joined" : "cannot join");
            for (;;) ::pause();
        };
    }

    static bool has_ended(const ForkedChild& process) {
        siginfo_t end{};
        const auto flags = WEXITED | WNOWAIT | WNOHANG;
        return ::waitid(P_PID, static_cast<id_t>(process.pid()), &end, flags) == 0 && end.si_pid != 0;
    }
};

/// From now on this process may send no signal, like the user of a command that has become another user.
bool refuse_signals() {
    return support::refuse_call(SYS_kill, EPERM, 1, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0));
}

TEST_F(WatchedCommand, IsNotSaidToBeEndedIfItMayNotBeSignalled) {
    ForkedChild watcher{[](const auto& report) {
        ::dup2(report.descriptor(), STDERR_FILENO);
        const Signals signals{SIGTERM};
        Terminal terminal;
        ProcessGroup command{{.words = {"sleep", "0.1"}, .environment = {}}, signals, terminal};
        if (!refuse_signals()) return;
        const SupervisionPolicy policy{.look_at_lock = [] { return "job: lost"; }};
        report(std::to_string(supervise(command, signals, terminal, policy).status));
    }};
    EXPECT_EQ(watcher.receive(), "redlock: job: lost; the command may not be signalled");
    EXPECT_EQ(watcher.receive(), "75");
}

// REDLOCK is the beginning of the name REDLOCK_RESOURCE.
TEST_F(WatchedCommand, HasAVariableWhoseNameBeginsLikeAnotherOne) {
    ForkedChild watcher{[](const auto& report) {
        ::setenv("REDLOCK", "kept", 1);  // NOLINT(concurrency-mt-unsafe): one thread
        const Signals signals{SIGTERM};
        Terminal terminal;
        const auto* const script = "test \"$REDLOCK $REDLOCK_RESOURCE\" = 'kept job'";
        ProcessGroup command{
            {.words = {"sh", "-c", script}, .environment = {"REDLOCK_RESOURCE=job"}}, signals, terminal};
        const SupervisionPolicy policy{.look_at_lock = [] { return std::nullopt; }};
        report(std::to_string(supervise(command, signals, terminal, policy).status));
    }};
    EXPECT_EQ(watcher.receive(), "0");
}

// The instant of --max-hold is over then, and must not be waited for again.
TEST_F(WatchedCommand, IsWatchedWithPausesDuringTheGrace) {
    ForkedChild watcher{[](const auto& report) {
        (void)::signal(SIGTERM, SIG_IGN);  // also in the command
        const Signals signals{SIGINT};
        Terminal terminal;
        ProcessGroup command{{.words = {"sleep", "120"}, .environment = {}}, signals, terminal};
        int looks = 0;
        const SupervisionPolicy policy{.grace = 500ms, .look_at = boot_clock().now(), .look_at_lock = [&] {
                                           ++looks;
                                           return "job: lost";
                                       }};
        report(std::to_string(supervise(command, signals, terminal, policy).status));
        report(looks < 50 ? "seldom" : "all the time");
    }};
    EXPECT_EQ(watcher.receive(), "75");
    EXPECT_EQ(watcher.receive(), "seldom");
}

// Otherwise each signal to `redlock run` would give the remaining processes the whole grace again.
TEST_F(WatchedCommand, HasOneGraceHoweverManySignalsCome) {
    ForkedChild watcher{[](const auto& report) { watch(report, 1s); }};
    const auto group = std::stoi(watcher.receive());
    ForkedChild process{joining(group)};
    ASSERT_EQ(process.receive(), "joined");
    EXPECT_TRUE(support::wait_until(
        [&] {
            ::kill(watcher.pid(), SIGTERM);
            return has_ended(process);
        },
        20s));
    process.kill();
    EXPECT_EQ(watcher.receive(), "143");
}

// The first process stays in the group until it is waited for, so that the second one can join the group
// after the first SIGKILL. The watcher ends when it sees no process that is alive. If this happens before the
// second process joins, the test begins again.
TEST_F(WatchedCommand, IsKilledAgainIfAProcessJoinsItLater) {
    for (int attempt = 0; attempt < 100; ++attempt) {
        ForkedChild watcher{[](const auto& report) { watch(report, 0s); }};
        const auto group = std::stoi(watcher.receive());
        ForkedChild first{joining(group)};
        ASSERT_EQ(first.receive(), "joined");
        ::kill(watcher.pid(), SIGTERM);
        ASSERT_EQ(first.receive(), "") << "it is killed";
        ForkedChild second{joining(group)};
        ASSERT_NE(second.receive(), "cannot join");
        ASSERT_EQ(watcher.receive(), "143") << "it waits for the second process, and has not killed it";
        if (has_ended(second)) return;
    }
    FAIL() << "no process has joined in time";
}

}  // namespace
}  // namespace redlock::tool::supervisor_test
