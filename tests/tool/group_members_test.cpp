// Which processes of a group count as alive.
#include "tool/run/processes.hpp"

#include "live/forked_child.hpp"
#include "support/process_files.hpp"
#include "support/wait_until.hpp"

#include <gtest/gtest.h>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>

namespace redlock::tool::group_members_test {
namespace {

using support::wait_until;
using test::ForkedChild;

/// The body of a process that joins the group, or its own group if that is 0.
auto joining(pid_t group) {
    return [group](const auto& report) {
        report(::setpgid(0, group) == 0 ? "joined" : "cannot join");
        for (;;) ::pause();
    };
}

/// Kills the process. Returns when it is a zombie.
void make_zombie(const ForkedChild& process) {
    ::kill(process.pid(), SIGKILL);
    siginfo_t end{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(process.pid()), &end, WEXITED | WNOWAIT), 0);
}

TEST(GroupMembers, AreAliveUnlessAllAreZombies) {
    ForkedChild first{joining(0)};
    ASSERT_EQ(first.receive(), "joined");
    const pid_t group = first.pid();
    ForkedChild second{joining(group)};
    ASSERT_EQ(second.receive(), "joined");
    EXPECT_EQ(find_alive(group, group), group);
    make_zombie(first);
    EXPECT_EQ(find_alive(group, group), second.pid());
    EXPECT_EQ(find_alive(group), second.pid());
    make_zombie(second);
    EXPECT_EQ(find_alive(group, second.pid()), 0);
    first.kill();
    second.kill();
    EXPECT_EQ(find_alive(group, second.pid()), 0) << "there is no such group any more";
}

TEST(GroupMembers, AreAliveIfStopped) {
    ForkedChild process{joining(0)};
    ASSERT_EQ(process.receive(), "joined");
    process.freeze();
    EXPECT_EQ(find_alive(process.pid()), process.pid());
}

// The system shows such a process as a zombie, but it still works.
TEST(GroupMembers, AreAliveWithoutTheirFirstThread) {
    ForkedChild process{[](const auto& report) {
        report(::setpgid(0, 0) == 0 ? "joined" : "cannot join");
        std::thread{[] {
            for (;;) ::pause();
        }}.detach();
        ::syscall(SYS_exit, 0);  // of this thread only
    }};
    ASSERT_EQ(process.receive(), "joined");
    ASSERT_TRUE(wait_until([&] { return support::state_of(std::to_string(process.pid())) == 'Z'; }));
    EXPECT_EQ(find_alive(process.pid()), process.pid());
}

}  // namespace
}  // namespace redlock::tool::group_members_test
