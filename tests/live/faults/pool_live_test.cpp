// Connections are shared, idle ones are bounded by NodesOptions::max_idle, and none leak, with
// faults and without.
#include "fault_world.hpp"

#include <malloc.h>

#include <barrier>
#include <filesystem>
#include <fstream>
#include <thread>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_A_SANITIZER 1
#else
#define UNDER_A_SANITIZER 0
#endif

namespace redlock::test {
namespace {

/// A sanitizer has a heap of its own, and is slow.
constexpr bool sanitized = UNDER_A_SANITIZER != 0;
constexpr int many_operations = sanitized ? 10'000 : 100'000;

/// How many connections the server has, other than the fixture's own.
std::size_t clients_of(const RedisServer& server) {
    const auto list = server.command({"CLIENT", "LIST", "TYPE", "normal"});
    std::size_t result = 0;
    for (std::size_t at = list.find("laddr=127."); at != std::string::npos;
         at = list.find("laddr=127.", at + 1))
        ++result;
    return result;
}

std::ptrdiff_t open_descriptors() {
    using Entries = std::filesystem::directory_iterator;
    return std::distance(Entries{"/proc/self/fd"}, Entries{});
}

/// Bytes this process has on its heap.
std::size_t heap() {
    return sanitized ? 0 : ::mallinfo2().uordblks;
}

class APool : public InEachRound {};
INSTANTIATE_TEST_SUITE_P(OfConnections, APool, testing::Values(Round::sequential, Round::all_at_once),
                         name_of_round);

/// So many threads hold a lock at the same moment, each with a connection of its own to every node.
void hold_at_once(RedisNodes& nodes, std::ptrdiff_t count) {
    std::barrier all{count};
    std::vector<std::jthread> threads;
    for (std::ptrdiff_t i = 0; i < count; ++i)
        threads.emplace_back([&, i] {
            Lock lock{nodes, "orders:" + std::to_string(i), no_retry()};
            for (int round = 0; round < 3; ++round) {
                all.arrive_and_wait();
                (void)lock.acquire();
                (void)lock.release();
            }
        });
}

// D9. A burst makes as many connections as it needs; of these max_idle are kept.
TEST_P(APool, KeepsAsManyIdleConnectionsAsItIsTold) {
    for (const std::size_t max_idle : {1U, 3U}) {
        FaultWorld world{3, {.node_timeout = 5s, .round = GetParam(), .max_idle = max_idle}};
        for (auto& link : world.links()) link.delay(5ms);  // so that the rounds overlap
        hold_at_once(world.nodes, 12);
        for (auto& link : world.links()) link.heal();
        world.warm_up();
        for (auto& server : world)
            EXPECT_TRUE(wait_until([&] { return clients_of(server) <= max_idle; })) << clients_of(server);
        EXPECT_GE(world.link(0).traffic().connections, 6U);  // the burst did need more
    }
}

// D9. What is kept is used: one thread needs one connection a node, for ever.
TEST_P(APool, UsesOneConnectionOverAndOver) {
    FaultWorld world{3, {.node_timeout = 5s, .round = GetParam()}};
    world.warm_up();
    std::vector<std::size_t> before;
    for (auto& link : world.links()) before.push_back(link.traffic().connections);
    auto lock = world.lock();
    for (int i = 0; i < 200; ++i) {
        ASSERT_THAT(lock.acquire(), Succeeds());
        ASSERT_THAT(lock.release(), Succeeds());
    }
    for (std::size_t node = 0; node < 3; ++node)
        EXPECT_EQ(world.link(node).traffic().connections, before[node]);
}

// D6. Each connection finds out for itself that the server has forgotten its scripts.
TEST_P(APool, RelearnsScriptsOnEachOfItsConnections) {
    FaultWorld world{3, {.node_timeout = 5s, .round = GetParam()}};
    for (auto& link : world.links()) link.delay(2ms);
    hold_at_once(world.nodes, 4);
    for (auto& server : world) ASSERT_EQ(server.command({"SCRIPT", "FLUSH", "SYNC"}), "OK");
    hold_at_once(world.nodes, 4);
    EXPECT_TRUE(wait_until([&] { return world.clean(); }));
}

/// Locks and unlocks, and looks at what has piled up after a tenth of it, and at the end.
void expect_flat(
    FaultWorld& world, int operations, const std::function<void(int)>& between = [](int) {}) {
    std::ptrdiff_t descriptors = 0;
    std::size_t memory = 0;
    auto lock = world.lock(no_retry());
    for (int i = 0; i < operations; i += 2) {
        if (i == operations / 10) {
            descriptors = open_descriptors();
            memory = heap();
        }
        between(i);
        (void)lock.acquire();
        (void)lock.release();
    }
    EXPECT_LE(open_descriptors(),
              descriptors + 6);  // one a node may be a probe just now, and one owe replies
    EXPECT_LE(heap(), memory + 256 * 1024);
}

// E. 10^5 operations leave descriptors and memory as they were.
TEST_P(APool, StaysFlatOver100000Operations) {
    LiveWorld straight{3, {.node_timeout = 5s, .round = GetParam()}};
    auto lock = straight.lock(no_retry());
    for (int i = 0; i < 100; ++i) {
        ASSERT_THAT(lock.acquire(), Succeeds());
        ASSERT_THAT(lock.release(), Succeeds());
    }
    const auto descriptors = open_descriptors();
    const auto memory = heap();
    for (int i = 0; i < many_operations; i += 2) {
        (void)lock.acquire();
        (void)lock.release();
    }
    EXPECT_LE(open_descriptors(), descriptors);
    EXPECT_LE(heap(), memory + 64 * 1024);
    for (auto& server : straight) EXPECT_LE(clients_of(server), 1U);
}

// E. So they do with a node that answers nothing, ...
TEST_P(APool, StaysFlatBesideABlackHole) {
    FaultWorld world{3, {.node_timeout = 300ms, .round = GetParam()}};
    world.warm_up();
    world.link(1).black_hole();
    expect_flat(world, many_operations / 10);
}

// ... with one that answers late and by fits and starts, ...
TEST_P(APool, StaysFlatBesideRepliesThatComeLate) {
    FaultWorld world{3, {.node_timeout = 20ms, .round = GetParam(), .max_idle = 2}};
    world.warm_up();
    expect_flat(world, many_operations / 20, [&](int i) {
        if (i % 100 == 0) world.link(1).hold();
        if (i % 100 == 50) world.link(1).release();
    });
}

// ... and with one whose connections break all the time.
TEST_P(APool, StaysFlatBesideConnectionsThatBreak) {
    FaultWorld world{3, {.node_timeout = 1s, .round = GetParam()}};
    expect_flat(world, many_operations / 20, [&](int i) {
        if (i % 10 == 0) world.link(1).reset();
        if (i % 10 == 4) world.link(1).cut_after(2);
        if (i % 10 == 8) world.link(1).heal();
    });
}

}  // namespace
}  // namespace redlock::test
