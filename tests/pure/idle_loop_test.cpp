// What an event loop waits for when no operation is under way: for the releases that a server has not got
// yet.
#include "memory_loop_world.hpp"

#include <optional>
#include <utility>

namespace redlock::test::idle_loop_test {
namespace {

struct IdleLoop : testing::Test, MemoryLoopWorld {
    static constexpr auto ttl = 10s;
    static constexpr auto node_timeout = 50ms;

    IdleLoop() : MemoryLoopWorld{{.node_timeout = node_timeout, .round = Round::all_at_once}} {}

    void acquire() {
        EXPECT_TRUE(end_of([this](Completion done) { lock.try_acquire(std::move(done)); }));
    }
    void extend() {
        EXPECT_TRUE(end_of([this](Completion done) { lock.extend(std::move(done)); }));
    }
    void release() {
        EXPECT_TRUE(end_of([this](Completion done) { lock.release(std::move(done)); }));
    }
    /// Runs the loop until it has nothing to wait for, or `limit` has passed. Returns how long that takes.
    Clock::duration run(Clock::duration limit = 1s) {
        const auto start = now();
        auto last = start;
        while (loop.run_once(start + limit)) last = now();
        EXPECT_FALSE(loop.watches_anything());
        return last - start;
    }

    AsyncLock lock{*of_loop, "r", {.ttl = ttl}};
};

TEST_F(IdleLoop, DoesNotWaitForAConnectionWithoutARelease) {
    network.server(2).unreachable = true;
    acquire();
    EXPECT_LE(run(), node_timeout);
    extend();
    EXPECT_LE(run(), node_timeout);
    release();
    EXPECT_LE(run(), node_timeout) << "the third node has no key, so no release is owed to it";
}

TEST_F(IdleLoop, UsesNoConnectionThatAServerHasClosedMeanwhile) {
    acquire();
    release();
    run();
    network.server(0).close_connections(now());
    network.pass(1s);
    const auto acquired = end_of([this](Completion done) { lock.try_acquire(std::move(done)); });
    EXPECT_TRUE(acquired);
    for (const auto& node : acquired.nodes()) EXPECT_NE(node.cause, Errc::connection_failed) << node.detail;
}

// Otherwise the loop would believe that it watches the next socket with this number.
TEST_F(IdleLoop, ForgetsAConnectionThatBreaksBeforeItIsClosed) {
    acquire();
    release();
    for (std::size_t server = 0; server < size; ++server) network.server(server).close_connections(now());
    network.pass(1s);
    acquire();
    EXPECT_EQ(network.server(0).connections(), 2U) << "or this test shows nothing";
    EXPECT_FALSE(loop.knows_closed_sockets());
}

/// Another loop, whose node has two addresses: those of the first two servers.
struct IdleLoopWithTwoAddresses : IdleLoop {
    /// Makes an attempt while the first address is silent.
    void try_acquire_at_the_second() {
        network.server(0).unreachable = true;
        lock_of_others.try_acquire(report());
        while (results.empty() && other_loop.run_once(now() + 1min)) {
        }
        ASSERT_THAT(results, SizeIs(1));
    }

    MemoryLoopNodes others{network, {at_two_addresses(network.configs().front())}, {.node_timeout = 50ms}};
    MemoryLoop other_loop{network};
    AsyncNodes of_others{others, other_loop, network.clock(), entropy};
    AsyncLock lock_of_others{of_others, "r", {.ttl = ttl}};
};

TEST_F(IdleLoopWithTwoAddresses, ForgetsASilentAddressBeforeItsSocketIsClosed) {
    try_acquire_at_the_second();
    EXPECT_TRUE(results.front());
    EXPECT_EQ(network.server(1).connections(), 1U) << "or this test shows nothing";
    EXPECT_FALSE(other_loop.knows_closed_sockets());
}

TEST_F(IdleLoopWithTwoAddresses, ListensAtTheNextOneIfTheFirstOneIsSilent) {
    hold(1, "other");
    try_acquire_at_the_second();
    // The connection of the rounds stays. That of the waiter begins with the address that has answered.
    network.server(0).unreachable = false;
    network.server(1).unreachable = true;
    AsyncLock fair{of_others, "r", {.ttl = ttl, .fair = true}};
    fair.acquire_for(1min, report());
    const auto end = now() + 40ms;
    while (all(0, "SUBSCRIBE").empty() && now() < end && other_loop.run_once(end)) {
    }
    EXPECT_THAT(all(0, "SUBSCRIBE"), SizeIs(1));
}

// A lock may outlive the loop for long, and so do the connections on which a release can still be sent.
TEST_F(IdleLoop, DisconnectsItsListenersAtItsShutdown) {
    hold(0, "other");
    hold(1, "other");
    AsyncLock fair{*of_loop, "r", {.fair = true}};
    EXPECT_FALSE(end_of([&](Completion done) { fair.acquire_for(100ms, std::move(done)); }));
    const auto before = network.server(0).open_connections();
    of_loop->shut_down();
    EXPECT_EQ(network.server(0).open_connections(), before - 1);
}

// After a foreign message, the next read of the connection is postponed for a moment.
TEST_F(IdleLoop, WakesAWaiterSoonAfterAForeignMessage) {
    for (std::size_t node = 0; node < size; ++node) hold(node, "other");
    AsyncLock fair{*of_loop, "r", {.fair = true}};
    fair.acquire_for(1min, report());
    run_for(20ms);
    const auto ticket = queued(0).at(0);
    const auto channel = ticket.substr(0, ticket.find('|'));
    (void)network.server(0).publish(channel, ticket + "0", now());
    run_for(2ms);
    forget_log();
    (void)network.server(0).publish(channel, ticket, now());
    run_for(15ms);
    EXPECT_THAT(all(0, "leave and set"), SizeIs(1));
}

TEST_F(IdleLoop, DoesNotWaitUntilAnExtensionIsWritten) {
    acquire();
    network.server(2).takes_at_once = 1;
    extend();
    EXPECT_LE(run(), node_timeout);
    EXPECT_THAT(all(2, "expire"), IsEmpty()) << "or this test shows nothing";
}

// The extension that nobody needs stands before the release.
TEST_F(IdleLoop, WritesAReleaseHoweverSlowlyTheServerTakesIt) {
    acquire();
    network.server(2).takes_at_once = 1;
    extend();
    release();
    EXPECT_GT(run(), 2 * node_timeout) << "or this test shows nothing";
    EXPECT_THAT(all(2, "delete"), SizeIs(1));
    EXPECT_EQ(holder(2), "(nil)");
}

TEST_F(IdleLoop, WaitsForAReleaseUntilTheKeyHasExpired) {
    acquire();
    network.server(2).unreachable = true;
    network.server(2).close_connections(now());
    const auto expires = now() + ttl;
    release();
    const auto left = expires - now();
    const auto ran = run(1h);
    EXPECT_THAT(ran, IsBetween(left - 100ms, left + 1s));
}

// A NAT forgets a connection while the lock is held, and swallows what comes.
TEST_F(IdleLoop, SendsAReleaseOnANewConnectionIfItsOwnIsForgotten) {
    acquire();
    network.pass(1s);
    network.server(2).forget_connections();
    release();
    EXPECT_EQ(holder(2).size(), 40U);
    EXPECT_LE(run(), 2 * node_timeout);
    EXPECT_EQ(holder(2), "(nil)");
    EXPECT_EQ(network.server(2).connections(), 2U);
}

// The connection is found to be silent before the round of the release has given up its node.
TEST_F(IdleLoop, SendsAReleaseOnANewConnectionIfTheProgramWorksWhenTheReplyIsDue) {
    acquire();
    network.pass(1s);
    network.server(2).forget_connections();
    lock.release(report());
    (void)loop.run_once(now());
    network.pass(node_timeout + 1ms);
    run();
    EXPECT_EQ(holder(2), "(nil)");
}

// The second release is collected. The handler of the program works on, so it is written late.
TEST_F(IdleLoop, SendsAReleaseThatWasWrittenLateOnANewConnection) {
    std::optional<AsyncLock> first{std::in_place, *of_loop, "first", LockOptions{.ttl = ttl}};
    std::optional<AsyncLock> second{std::in_place, *of_loop, "second", LockOptions{.ttl = ttl}};
    for (auto* const it : {&*first, &*second})
        EXPECT_TRUE(end_of([it](Completion done) { it->try_acquire(std::move(done)); }));
    run();
    network.server(2).forget_connections();
    for (auto* const it : {&first, &second}) {
        it->reset();
        loop.run_once(now());
    }
    network.pass(5ms);
    run();
    EXPECT_EQ(network.text_at(2, "first"), "");
    EXPECT_EQ(network.text_at(2, "second"), "");
}

// ---- The end of a loop whose releases are not sent yet

/// A second loop, with nodes of its own.
struct EndOfALoop : IdleLoop {
    /// Begins to use `its_nodes`. The release at the end is one of many bytes, of which a server takes few.
    void hold_in_a_loop_of(MemoryLoopNodes& its_nodes) {
        of_other.emplace(its_nodes, other_loop, network.clock(), entropy);
        AsyncLock it{*of_other, "r", {.ttl = ttl}};
        it.try_acquire(report());
        while (results.empty()) other_loop.run_once(Clock::never());
        EXPECT_TRUE(results.back());
        results.clear();
    }

    MemoryLoop other_loop{network};
    std::optional<AsyncNodes> of_other{};
};

// A program may make one loop after the other.
TEST_F(EndOfALoop, LeavesNoConnectionForLongerThanANodeTimeout) {
    for (const std::size_t takes_at_once : {65'536U, 1U}) {
        hold_in_a_loop_of(*nodes);
        network.server(2).takes_at_once = takes_at_once;
        of_other.reset();
        network.pass(2 * node_timeout);
        of_other.emplace(*nodes, other_loop, network.clock(), entropy);
        of_other.reset();
        EXPECT_EQ(network.server(2).open_connections(), 0U) << takes_at_once;
    }
}

TEST_F(EndOfALoop, SendsTheReleasesAlthoughItsNodesWereDestroyedBefore) {
    std::optional<MemoryLoopNodes> others{std::in_place, network, size, NodesOptions{.node_timeout = 50ms}};
    hold_in_a_loop_of(*others);
    others.reset();
    network.server(2).takes_at_once = 20;
    of_other.reset();
    EXPECT_EQ(holder(2), "(nil)");
}

TEST_F(EndOfALoop, DelaysTheDestructorOfTheNodesByOneNodeTimeoutTogetherWithOtherLoops) {
    std::optional<MemoryLoopNodes> others{std::in_place, network, size, NodesOptions{.node_timeout = 50ms}};
    for (int loops = 0; loops < 3; ++loops) {
        network.server(2).takes_at_once = 65'536;
        hold_in_a_loop_of(*others);
        network.server(2).takes_at_once = 0;
        of_other.reset();
    }
    EXPECT_THAT(time_taken(network, [&] { others.reset(); }),
                IsBetween(node_timeout / 2, node_timeout + 1ms));
}

// ---- AsyncNodes and the Nodes that it was made with

TEST_F(IdleLoop, KnowsItsNodesAmongOthersWithTheSameNames) {
    MemoryLoopNodes others{network, size, {.node_timeout = node_timeout}};
    ASSERT_EQ(others.name(0), nodes->name(0));
    EXPECT_TRUE(of_loop->are_of(*nodes));
    EXPECT_FALSE(of_loop->are_of(others));
}

TEST_F(IdleLoop, ExpiresWithItsNodesAndItsLocks) {
    std::optional<MemoryLoopNodes> others{std::in_place, network, size, NodesOptions{.node_timeout = 50ms}};
    MemoryLoop other_loop{network};
    AsyncNodes of_others{*others, other_loop, network.clock(), entropy};
    std::optional<AsyncLock> of_other_loop{std::in_place, of_others, "r", LockOptions{.ttl = ttl}};
    of_other_loop->try_acquire(report());
    while (results.empty()) other_loop.run_once(Clock::never());
    EXPECT_FALSE(of_others.expired());
    of_other_loop.reset();
    EXPECT_FALSE(of_others.expired()) << "its nodes exist";
    others.reset();
    EXPECT_FALSE(of_others.expired()) << "the release is under way";
    while (other_loop.run_once(now() + 1s)) {
    }
    EXPECT_TRUE(of_others.expired());
    others.emplace(network, size, NodesOptions{.node_timeout = 50ms});
    EXPECT_TRUE(of_others.expired());
    EXPECT_FALSE(of_others.are_of(*others)) << "they are other nodes at the same address";
}

}  // namespace
}  // namespace redlock::test::idle_loop_test
