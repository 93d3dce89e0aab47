// Rules D3 and D11 if connections break: no SIGPIPE, no changed signal disposition, no descriptor that a
// child program inherits, no password in any message.
#include "fault_world.hpp"
#include "support/process_state.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <csignal>

namespace redlock::test::process_hygiene_live_test {
namespace {

using support::descriptors;

/// Returns the handler and the flags of each signal.
std::vector<std::pair<void (*)(int), int>> dispositions() {
    std::vector<std::pair<void (*)(int), int>> result;
    for (int signal = 1; signal < NSIG; ++signal) {
        struct sigaction action {};
        ::sigaction(signal, nullptr, &action);
        result.emplace_back(action.sa_handler, action.sa_flags);
    }
    return result;
}

class ProcessHygiene : public InEachRound {
protected:
    FaultWorld world{3, {.node_timeout = 300ms, .round = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(EachRound, ProcessHygiene, each_round(), by_round);

/// Records whether a write found a connection closed, and not a check of an idle connection.
class WriteObserver : public Observer {
public:
    void disconnected(std::string_view, std::error_code, std::string_view detail) noexcept override {
        failed = failed || (detail.starts_with("closed by the server") && detail.find("idle") == detail.npos);
    }

    bool failed = false;
};

// D3. SIGPIPE has its default action here, which ends the process. A local socket whose other end is closed
// raises it at the first write. A connection that was used a moment ago is written to without a check. If the
// machine was too slow for that moment, the test tries again.
TEST_P(ProcessHygiene, WritingToABrokenConnectionRaisesNoSignal) {
    struct sigaction before {};
    ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &before), 0);
    ASSERT_EQ(before.sa_handler, SIG_DFL);
    RedisServer server{RedisConfig{}.on_unix_socket()};
    WriteObserver writes;
    RedisNodes nodes{{server.uri()}, {.node_timeout = 2s, .round = GetParam(), .observer = &writes}};
    Lock lock{nodes, the_resource, no_retry(60s)};
    EXPECT_TRUE(wait_until([&] {
        (void)lock.acquire();
        server.command({"CLIENT", "KILL", "TYPE", "normal"});
        (void)lock.release();
        return writes.failed;
    }));
    sigset_t pending;
    ::sigpending(&pending);
    EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
}

// D3, E. Neither the dispositions nor the mask of signals change, whatever happens to the connections.
TEST_P(ProcessHygiene, SignalDispositionsStayAsTheyAre) {
    const auto actions = dispositions();
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    auto lock = world.lock(no_retry());
    for (int i = 0; i < 5; ++i) {
        (void)lock.acquire();
        world.link(0).reset();
        (void)lock.release();
    }
    EXPECT_EQ(actions, dispositions());
    sigset_t after;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
    for (int signal = 1; signal < NSIG; ++signal)
        EXPECT_EQ(::sigismember(&mask, signal), ::sigismember(&after, signal)) << signal;
}

// D3. Every descriptor is close-on-exec from the start: those of idle connections, of connections in use,
// with pending replies or not yet established, and that of a name resolution.
TEST_P(ProcessHygiene, EveryDescriptorIsClosedOnExec) {
    const auto before = descriptors();
    RedisNodes by_name{{"localhost:" + std::to_string(world[0].port())}, {.node_timeout = 2s}};
    (void)Lock{by_name, "by name", no_retry()}.acquire();  // the pipe of its name resolution stays open
    auto lock = world.lock(no_retry());
    (void)lock.acquire();
    world.link(1).hold();
    world.link(2).black_hole();
    for (int i = 0; i < 3; ++i) {
        (void)lock.extend();
        (void)lock.release();
        (void)lock.acquire();
    }
    std::size_t ours = 0;
    for (const int descriptor : descriptors()) {
        if (before.contains(descriptor)) continue;
        ++ours;
        EXPECT_NE(::fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0) << descriptor;
    }
    EXPECT_GE(ours, 3U);
}

// Those of rounds and those of waiters.
TEST(Connections, AreKeptAliveAsTheOptionSays) {
    RedisServer server;
    for (const auto idle : {77s, 0s}) {
        const auto before = descriptors();
        RedisNodes nodes{{server.uri()}, {.node_timeout = 2s, .tcp_keepalive = idle}};
        Lock holder{nodes, the_resource, no_retry(60s)};
        ASSERT_THAT(holder.acquire(), Succeeds());
        Lock waiter{nodes, the_resource, {.fair = true}};
        EXPECT_THAT(waiter.acquire_for(1s), FailsWith(Errc::held_by_other));
        std::size_t connections = 0;
        for (const int descriptor : descriptors()) {
            int alive = -1, after = -1;
            socklen_t length = sizeof alive;
            if (before.contains(descriptor) ||
                ::getsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &alive, &length) != 0)
                continue;
            ++connections;
            EXPECT_EQ(::getsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &after, &length), 0);
            EXPECT_EQ(alive, idle > 0s ? 1 : 0);
            if (idle > 0s) {
                EXPECT_EQ(std::chrono::seconds{after}, idle);
            }
        }
        EXPECT_GE(connections, 2U);
    }
}

}  // namespace
}  // namespace redlock::test::process_hygiene_live_test
