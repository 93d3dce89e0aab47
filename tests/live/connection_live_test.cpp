// Rules D1 to D4 and D6 against real servers: replies are told apart, budgets are kept, the process is left
// as it was, and connections are made anew.
#include "bystander.hpp"
#include "live_world.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <thread>

namespace redlock::test {
namespace {

// ---- D1: no reply is taken for another command's.

struct LateReplies : testing::TestWithParam<Round> {
    LiveWorld world{1, {.node_timeout = 200ms, .round = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Connection, LateReplies, testing::Values(Round::sequential, Round::all_at_once),
                         by_round);

// D1. The late OK to A's SET does not acquire B, which another holds.
TEST_P(LateReplies, OfOneAcquireDoNotGrantAnother) {
    ASSERT_TRUE(world.warm_up());
    ASSERT_EQ(world[0].command({"SET", "B", "another", "NX", "PX", "60000"}), "OK");
    keep_from_writing(world[0]);
    auto a = world.lock("A", no_retry()), b = world.lock("B", no_retry());
    EXPECT_THAT(a.acquire(), FailsWith(Errc::no_quorum));
    EXPECT_FALSE(b.acquire());
    std::jthread later{[&] {
        std::this_thread::sleep_for(100ms);  // within the budget of the next
        let_write(world[0]);
    }};
    EXPECT_FALSE(b.acquire());
    later.join();
    EXPECT_TRUE(wait_until([&] { return b.acquire().error() == Errc::held_by_other; }));
    EXPECT_EQ(holder(world[0], "B"), "another");
    EXPECT_TRUE(wait_until([&] { return holder(world[0], "A") == "(nil)"; }));
}

// D1. The late 1 to a release does not release another's, the late nil to a refused acquire refuses no other.
TEST_P(LateReplies, OfARefusalDoNotRefuseAnother) {
    ASSERT_TRUE(world.warm_up());
    ASSERT_EQ(world[0].command({"SET", "A", "another", "NX", "PX", "60000"}), "OK");
    keep_from_writing(world[0]);
    auto a = world.lock("A", no_retry()), b = world.lock("B", no_retry());
    EXPECT_THAT(a.acquire(), FailsWith(Errc::no_quorum));
    let_write(world[0]);
    for (int i = 0; i < 20; ++i) {
        const auto result = b.acquire();
        EXPECT_NE(result.error(), Errc::held_by_other);
        if (result) break;
    }
    EXPECT_TRUE(b.valid());
}

// D1. However late the replies are: what is granted is true, and what is true stays so.
TEST_P(LateReplies, NeverLie) {
    std::mt19937 random{42};
    for (int i = 0; i < 40; ++i) {
        const bool taken = random() % 2 == 0;
        const auto resource = "resource " + std::to_string(i);
        if (taken) (void)world[0].command({"SET", resource, "another"});
        if (random() % 2 == 0) keep_from_writing(world[0], milliseconds{random() % 300});
        auto lock = world.lock(resource, no_retry());
        const auto result = lock.acquire();
        if (result) {
            EXPECT_FALSE(taken);
            EXPECT_EQ(holder(world[0], resource), lock.owner());
        } else if (result.error() == Errc::held_by_other) {
            EXPECT_TRUE(taken);
        }
        const auto held = static_cast<bool>(result);
        const auto released = lock.release();
        EXPECT_TRUE(held || released.error() == Errc::not_held);
        if (released) {
            EXPECT_EQ(holder(world[0], resource), "(nil)");
        }
    }
}

// ---- D2: deadlines are kept against a clock of our own.

/// Interrupts the process every few milliseconds.
class SignalStorm {
public:
    SignalStorm() {
        struct sigaction action {};
        action.sa_handler = [](int) {};  // no SA_RESTART: every call that can be is interrupted
        ::sigaction(SIGALRM, &action, &before_);
        every(3ms);
    }
    ~SignalStorm() {
        every(0ms);
        ::sigaction(SIGALRM, &before_, nullptr);
    }
    SignalStorm(const SignalStorm&) = delete;
    SignalStorm& operator=(const SignalStorm&) = delete;

private:
    static void every(std::chrono::microseconds period) {
        const timeval span{0, period.count()};
        const itimerval timer{span, span};
        ::setitimer(ITIMER_REAL, &timer, nullptr);
    }
    struct sigaction before_ {};
};

// D2. Signals neither stretch a budget nor cut it short, in a connection being made nor in one that is.
TEST(Connection, KeepsItsBudgetInAStormOfSignals) {
    constexpr auto budget = 300ms;
    for (const bool warm : {false, true}) {
        LiveWorld world{1, {.node_timeout = budget}};
        ASSERT_TRUE(!warm || world.warm_up());
        world[0].freeze();
        auto lock = world.lock(no_retry());
        const SignalStorm storm;
        const auto taken = own_time([&] {
            const auto result = lock.acquire();
            EXPECT_THAT(result, Reports(0, Errc::timed_out));
            EXPECT_THAT(result.nodes()[0].took, LastsAtLeast(budget));
        });
        EXPECT_THAT(taken, LastsAtMost(3 * budget)) << "the release has a budget, too";
    }
}

// D2. Nor do they make anything fail.
TEST(Connection, WorksInAStormOfSignals) {
    LiveWorld world{5};
    const SignalStorm storm;
    for (int i = 0; i < 50; ++i) {
        RedisNodes nodes{world.uris(), {.node_timeout = 2s}};  // connections anew each time
        Lock lock{nodes, std::string(100'000, 'x'), no_retry()};
        const auto result = lock.acquire();
        EXPECT_EQ(count(result, Vote::granted), 5U) << result.message();
        EXPECT_EQ(count(lock.release(), Vote::granted), 5U);
    }
}

// ---- D3: the process is left as it was.

std::vector<int> descriptors() {
    std::vector<int> result;
    for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"})
        result.push_back(std::stoi(entry.path().filename()));
    std::erase_if(result, [](int fd) { return ::fcntl(fd, F_GETFD) < 0; });  // the iterator's own
    std::ranges::sort(result);
    return result;
}

// D3. No SIGPIPE, whenever the server closes; and the program's own way with that signal is left alone.
TEST(Connection, RaisesNoSigpipe) {
    struct sigaction ours {};
    ours.sa_handler = SIG_DFL;  // deadly
    ASSERT_EQ(::sigaction(SIGPIPE, &ours, nullptr), 0);
    Cluster servers{3, RedisConfig{}.on_unix_socket()};  // where writing to a closed peer fails at once
    RedisNodes nodes{servers.uris(), {.node_timeout = 2s}};
    for (int i = 0; i < 30; ++i) {
        Lock lock{nodes, std::to_string(i) + std::string(200'000, 'x')};
        EXPECT_THAT(lock.acquire_for(10s), Succeeds());
        for (auto& server : servers) (void)server.command({"CLIENT", "KILL", "USER", "default"});
        (void)lock.extend();
    }
    struct sigaction now {};
    ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &now), 0);
    EXPECT_EQ(now.sa_handler, SIG_DFL);
}

// D3. Every descriptor is closed on exec, and all of them when the nodes are destroyed.
TEST(Connection, OpensDescriptorsThatAreClosedOnExecAndInTheEnd) {
    LiveWorld servers{5};
    servers[4].freeze();
    auto uris = servers.uris();
    uris[0] = "localhost:" + std::to_string(servers[0].port());
    const auto before = descriptors();
    for (const auto round : {Round::sequential, Round::all_at_once}) {
        RedisNodes nodes{uris, {.node_timeout = 500ms, .round = round}};
        Lock lock{nodes, the_resource};
        ASSERT_THAT(lock.acquire(), Succeeds());
        std::vector<int> opened;
        std::ranges::set_difference(descriptors(), before, std::back_inserter(opened));
        EXPECT_GE(opened.size(), 3U);
        for (const int fd : opened) EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    }
    EXPECT_TRUE(wait_until([&] { return descriptors() == before; })) << "but for a look-up still under way";
}

// ---- D4: connections are made anew.

// D4. A node that was killed and restarted is used again within a second and a bit.
TEST(Connection, ComesBackToARestartedNodeSoon) {
    LiveWorld world{3, {.node_timeout = 500ms}};
    auto lock = world.lock();
    world[1].kill();
    for (const auto end = boot_clock().now() + 1500ms;
         boot_clock().now() < end;) {  // backs off to the longest
        EXPECT_THAT(lock.acquire(), Succeeds());
        EXPECT_THAT(lock.release(), Succeeds());
    }
    world[1].restart();
    const auto asked_again = [&] {
        const auto result = lock.acquire();
        lock.unlock();
        return result.nodes()[1].vote == Vote::granted;
    };
    EXPECT_THAT(own_time([&] { EXPECT_TRUE(wait_until(asked_again)); }), LastsAtMost(2s));
}

// D4. With the same password in the same database.
TEST(Connection, RepeatsPasswordAndDatabaseWhenItReconnects) {
    RedisServer server{RedisConfig{}.password("s3cret")};
    RedisNodes nodes{{server.uri() + "/5"}, {.node_timeout = 2s}};
    Lock lock{nodes, the_resource, {.retry = {.delay = 20ms}}};
    for (int i = 0; i < 3; ++i) {
        ASSERT_THAT(lock.acquire_for(10s), Succeeds());
        auto connection = server.connect();
        ASSERT_EQ(connection.ask({"SELECT", "5"}), "OK");
        EXPECT_EQ(connection.ask({"GET", the_resource}), lock.owner());
        ASSERT_THAT(lock.release(), Succeeds());
        if (i == 0)
            (void)server.command({"CLIENT", "KILL", "USER", "default"});
        else
            server.restart();
    }
}

// D4. A node that is dead is not asked again in every round: its budget is paid once.
TEST(Connection, PaysForADeadNodeOnce) {
    LiveWorld world{3, {.node_timeout = 500ms}};
    world[0].freeze();
    auto lock = world.lock();
    EXPECT_THAT(lock.acquire(), Reports(0, Errc::timed_out));
    lock.unlock();
    for (int i = 0; i < 20; ++i) {
        Result result{Errc::lost};
        EXPECT_THAT(own_time([&] { result = lock.acquire(); }), LastsAtMost(400ms));
        EXPECT_THAT(result, Succeeds());
        EXPECT_EQ(result.nodes()[0].vote, Vote::unknown);
        lock.unlock();
    }
}

// ---- D6: scripts that the server has forgotten.

// D6. NOSCRIPT costs another message in the same budget, no failure.
TEST(Connection, SendsTheScriptAgainWhenTheServerForgotIt) {
    LiveWorld world{3};
    ASSERT_TRUE(world.warm_up());
    const auto forget = [&] {
        for (auto& server : world) ASSERT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
    };
    auto lock = world.lock();
    for (int i = 0; i < 3; ++i) {
        ASSERT_THAT(lock.acquire(), Succeeds());
        forget();
        EXPECT_THAT(own_time([&] { EXPECT_THAT(lock.extend(30s), Succeeds()); }), LastsAtMost(2s));
        forget();
        EXPECT_THAT(lock.extend(1min), Succeeds());
        forget();
        const auto result = lock.release();
        EXPECT_THAT(result, Succeeds());
        EXPECT_EQ(count(result, Vote::granted), 3U);
        EXPECT_TRUE(world.clean());
    }
}

}  // namespace
}  // namespace redlock::test
