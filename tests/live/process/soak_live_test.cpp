// Rule E: tens of thousands of attempts leave memory, descriptors and threads unchanged, and print nothing.
#include "support/process_state.hpp"

#include "live/faults/fault_world.hpp"

#include "support/loopback_name.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace {

std::atomic<std::size_t> started_threads{
    0};  // in this process, including threads too short-lived to be seen in /proc

}  // namespace

// Precedes the function of the C library in the whole program.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*work)(void*),
                              void* argument) {
    using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto real = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
    ++started_threads;
    return real(thread, attributes, work, argument);
}

namespace redlock::test::soak_live_test {
namespace {

using support::descriptors;
using support::Footprint;
using support::threads;

constexpr std::size_t bytes = 16U * 1024U;
constexpr std::size_t bytes_a_connection = 20U * 1024U;  // hiredis keeps a buffer of up to 16 KiB for each

/// Expects no growth except for a number of additional connections, which come and go. The heap may then grow
/// by 12 bytes for each attempt of the longest test. Whatever an attempt could leak is larger.
void expect_flat(const Footprint& before, std::size_t connections) {
    const Footprint now;
    EXPECT_THAT(now.heap, Le(before.heap + bytes + connections * bytes_a_connection))
        << "after " << before.heap;
    EXPECT_THAT(now.descriptors, Le(before.descriptors + connections));
    // A thread of the first attempts may have ended since. One may look after a release without a reply.
    EXPECT_THAT(now.threads, Le(before.threads + 1));
}

/// Makes failing attempts on a resource that another lock holds. Each is cleaned up.
void contend(RedisNodes& nodes, int attempts) {
    Lock holder{nodes, "resource", {.ttl = 10min}};
    ASSERT_TRUE(holder.acquire_for(10s));
    Lock lock{nodes, "resource", {.ttl = 10min}};
    int failed = 0;
    for (int attempt = 0; attempt < attempts; ++attempt) failed += lock.try_acquire() ? 0 : 1;
    EXPECT_EQ(failed, attempts);
}

/// Makes successful acquisitions, each followed by a release.
void hold(RedisNodes& nodes, int times) {
    Lock lock{nodes, "resource", {.ttl = 10min}};
    for (int time = 0; time < times; ++time) {
        EXPECT_TRUE(lock.acquire_for(10s));
        EXPECT_TRUE(lock.extend());
        EXPECT_TRUE(lock.release());
    }
}

class Soak : public InEachRound {
protected:
    NodesOptions options() const { return {.node_timeout = 1s, .round = GetParam()}; }
    Cluster servers_{5};
    RedisNodes nodes_{servers_.uris(), options()};
};

INSTANTIATE_TEST_SUITE_P(EachRound, Soak, each_round(), by_round);

// With all_at_once a reply may be pending when a node is asked again, which then gets a second connection.
constexpr std::size_t one_more_a_node = 5;

TEST_P(Soak, TenThousandAttemptsDoNotIncreaseTheResourceUsage) {
    contend(nodes_, 500);
    hold(nodes_, 100);
    const Footprint before;
    contend(nodes_, 10'000);
    expect_flat(before, one_more_a_node);
    hold(nodes_, 1'000);
    expect_flat(before, one_more_a_node);
}

/// Proxies into which faults are injected while locks are acquired and released.
class SoakOverLinks : public InEachRound {};
INSTANTIATE_TEST_SUITE_P(EachRound, SoakOverLinks, each_round(), by_round);

void expect_flat(FaultWorld& world, const std::function<void(int)>& inject_fault) {
    auto lock = world.lock(no_retry());
    const auto lock_and_unlock = [&](int times) {
        for (int time = 0; time < times; ++time) {
            inject_fault(time);
            (void)lock.acquire();
            (void)lock.release();
        }
    };
    lock_and_unlock(250);
    const Footprint before;
    lock_and_unlock(2'250);
    constexpr std::size_t descriptors_a_connection = 3;  // two are the proxy's
    expect_flat(before, descriptors_a_connection * one_more_a_node);
}

TEST_P(SoakOverLinks, DelayedRepliesDoNotIncreaseTheResourceUsage) {
    FaultWorld world{3, {.node_timeout = 20ms, .round = GetParam(), .max_idle = 2}};
    world.warm_up();
    expect_flat(world, [&](int time) {
        if (time % 50 == 0) world.link(1).hold();
        if (time % 50 == 25) world.link(1).release();
    });
}

TEST_P(SoakOverLinks, BrokenConnectionsDoNotIncreaseTheResourceUsage) {
    FaultWorld world{3, {.node_timeout = 1s, .round = GetParam()}};
    expect_flat(world, [&](int time) {
        if (time % 5 == 0) world.link(1).reset();
        if (time % 5 == 2) world.link(1).cut_after(2);
        if (time % 5 == 4) world.link(1).heal();
    });
}

TEST(TheLibrary, PrintsNothing) {
    Cluster servers{5};
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    {
        RedisNodes nodes{servers.uris(), {.node_timeout = 1s}};
        hold(nodes, 10);
        contend(nodes, 10);
        servers[0].kill();
        servers[1].freeze();
        hold(nodes, 10);
        servers[2].kill();
        Lock lock{nodes, "resource"};
        EXPECT_FALSE(lock.try_acquire());
        RedisNodes nowhere{"no-such-host.invalid", "localhost:1", "127.0.0.1:1"};
        Lock hopeless{nowhere, "resource"};
        EXPECT_FALSE(hopeless.acquire_for(200ms));
    }
    EXPECT_THAT(testing::internal::GetCapturedStdout(), IsEmpty());
    EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
}

TEST(TheLibrary, StartsNoThreadForNumericAddressesAndUnixSockets) {
    Cluster servers{2};
    support::RedisServer on_a_socket{support::RedisConfig{}.on_unix_socket()};
    const auto before = started_threads.load();
    {
        RedisNodes nodes{std::vector<std::string>{servers[0].uri(), servers[1].uri(), on_a_socket.uri(),
                                                  "[::1]:1", "127.0.0.1:1"},
                         {.node_timeout = 1s}};
        hold(nodes, 50);
        contend(nodes, 50);
    }
    EXPECT_EQ(started_threads.load(), before);
}

// D5
TEST(TheLibrary, EndsTheThreadsThatResolveNames) {
    if (!support::localhost_is_known()) GTEST_SKIP() << "this machine knows no name to look up";
    Cluster servers{3};
    const auto by_name = [&](std::size_t node) {
        return "localhost:" + std::to_string(servers[node].port());
    };
    const Footprint before;
    const auto started = started_threads.load();
    {
        RedisNodes nodes{std::vector{by_name(0), by_name(1), servers[2].uri()}, {.node_timeout = 1s}};
        hold(nodes, 50);
        contend(nodes, 50);
        EXPECT_EQ(started_threads.load(), started + 2)
            << "one look-up for each name: another connection needs no other look-up";
    }
    EXPECT_TRUE(wait_until([&] { return threads().size() == before.threads; }));
    EXPECT_EQ(descriptors().size(), before.descriptors);
}

}  // namespace
}  // namespace redlock::test::soak_live_test
