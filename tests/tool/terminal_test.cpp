// Which commands are started in the foreground of a terminal.
#include "tool/run/terminal.hpp"

#include "live/forked_child.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace redlock::tool::terminal_test {
namespace {

/// Makes a session whose terminal is the standard input. Returns false if there are no pseudo-terminals.
bool make_terminal() {
    ::setsid();
    const int other_side = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (other_side < 0 || ::grantpt(other_side) != 0 || ::unlockpt(other_side) != 0) return false;
    const int terminal = ::open(::ptsname(other_side), O_RDWR);  // NOLINT(concurrency-mt-unsafe)
    return terminal >= 0 && ::dup2(terminal, STDIN_FILENO) == STDIN_FILENO;
}

// The rest of the pipeline may need the terminal. The pipes of some shells are sockets.
TEST(Terminal, IsNotGivenToACommandInAPipeline) {
    test::ForkedChild child{[](const auto& report) {
        if (!make_terminal()) return report("no terminal");
        report("terminal");
        std::array<int, 2> pipe{};
        std::array<int, 2> sockets{};
        if (::pipe(pipe.data()) != 0 || ::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0) return;
        for (const int output : {STDIN_FILENO, pipe[1], sockets[1]}) {
            ::dup2(output, STDOUT_FILENO);
            report(Terminal{}.free_to_give() ? "free" : "not free");
        }
        ::dup2(STDIN_FILENO, STDOUT_FILENO);
        ::dup2(pipe[0], STDIN_FILENO);
        report(Terminal{}.free_to_give() ? "free" : "not free");
    }};
    if (child.receive() != "terminal") GTEST_SKIP() << "no pseudo-terminals on this machine";
    EXPECT_EQ(child.receive(), "free");
    for (int i = 0; i < 3; ++i) EXPECT_EQ(child.receive(), "not free");
}

}  // namespace
}  // namespace redlock::tool::terminal_test
