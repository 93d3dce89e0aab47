// Rules A1 to A12 except for time: what counts as a vote, what is cleaned up, what is retried. Deadlines and
// cancellation are in deadline_and_stop_test.cpp, pauses in retry_test.cpp, and the arithmetic in
// validity_test.cpp.
#include "world.hpp"

namespace redlock::test::acquire_test {
namespace {

struct Acquire : testing::Test {
    World world;
};
using AFailedAcquire = Acquire;

// ---- Votes.

// A7. An error never counts as "taken". One refusal and three errors of five nodes are a failure of the
// nodes.
TEST_F(Acquire, NeverCountsAnErrorAsARefusal) {
    world.occupy(1h, 0);
    world.lie(Errc::server_error, 1, 2, 3);
    EXPECT_THAT(world.lock(no_retry()).acquire(), FailsWith(Errc::no_quorum));
    world.occupy(1h, 1, 4);
    world.heal(1);
    EXPECT_THAT(world.lock(no_retry()).acquire(), FailsWith(Errc::held_by_other));
}

// A1. In a split vote each client has some nodes. No client wins, and each one cleans up. A quorum of nodes
// replied, so the failure counts as contention.
TEST_F(Acquire, LosesASplitVote) {
    world.occupy(1h, 0, 1);
    world.cut(4);
    const auto result = world.lock(no_retry()).acquire();
    EXPECT_THAT(result, FailsWith(Errc::held_by_other)) << "2 grants, 2 refusals, 1 unknown";
    EXPECT_EQ(world.owner_on(2), "");
    EXPECT_EQ(world.owner_on(3), "");
}

// A7, A12. One node grants, one refuses, and one fails. Whichever node fails, and for whatever reason, the
// result names the holder of the refusing node.
TEST_F(Acquire, IsRefusedIfOneNodeGrantsOneRefusesAndOneIsDead) {
    const std::vector<std::function<void(World&, std::size_t)>> deaths{
        [](World& three, std::size_t node) { three.cut(node); },
        [](World& three, std::size_t node) { three.back_off(node); },
        [](World& three, std::size_t node) { three.silence(node); },
        [](World& three, std::size_t node) { three.lose_replies_of(node); },
        [](World& three, std::size_t node) { three.lie(Errc::loading, node); }};
    for (const auto& die : deaths)
        for (std::size_t dead = 0; dead < 3; ++dead)
            for (const std::size_t holds : {(dead + 1) % 3, (dead + 2) % 3}) {
                World three{3};
                die(three, dead);
                three.occupy(1h, holds);
                const auto result = three.lock(no_retry()).acquire();
                EXPECT_THAT(result, FailsWith(Errc::held_by_other))
                    << dead << " is dead, " << holds << " refuses";
                EXPECT_EQ(result.nodes()[holds].vote, Vote::refused);
                EXPECT_EQ(result.nodes()[dead].vote, Vote::unknown);
            }
}

// If the nodes that reply are no quorum, the attempt has failed because of the nodes, whatever the others
// voted.
TEST_F(Acquire, HasNoQuorumIfMostNodesAreDead) {
    world.occupy(1h, 0);
    world.cut(2);
    world.silence(3);
    world.lie(Errc::loading, 4);
    EXPECT_THAT(world.lock(no_retry()).acquire(), FailsWith(Errc::no_quorum)) << "1 grant, 1 refusal";
    world.heal(4);
    EXPECT_THAT(world.lock(no_retry()).acquire(), FailsWith(Errc::held_by_other)) << "2 grants, 1 refusal";
}

// A7, A12. The vote is a refusal, and retries continue, because the lock of another library may be a hash.
TEST_F(Acquire, ReportsTheNodesWhereTheKeyHasAnotherType) {
    for (const int node : {0, 1, 2}) world.command(node, {"ZADD", the_resource, "1", "member"});
    auto lock = world.lock({.retry = {.attempts = 3}});
    const auto result = lock.acquire();
    EXPECT_THAT(result, FailsWith(Errc::held_by_other));
    EXPECT_EQ(result.attempts(), 3);
    for (std::size_t node = 0; node < 3; ++node) {
        EXPECT_EQ(result.nodes()[node].vote, Vote::refused);
        EXPECT_EQ(result.nodes()[node].cause, Errc::wrong_type);
    }
    EXPECT_EQ(result.nodes()[3].cause, std::error_code{});
    EXPECT_THAT(result.message(), HasSubstr("held by another on 3 of 5 nodes"));
    EXPECT_THAT(result.message(), HasSubstr("; node2 wrong type of key"));
    for (const int node : {0, 1, 2}) world.command(node, {"DEL", the_resource});
    EXPECT_THAT(lock.acquire(), Succeeds());
}

// A7. An error of the release says nothing about the vote before it.
TEST_F(Acquire, DoesNotReportOtherFailuresOfItsRelease) {
    world.occupy(1h, 0, 1, 2);
    world.command(3, {"ZADD", the_resource, "1", "member"});
    world.silence(4);
    const auto result = world.lock(no_retry()).acquire();
    EXPECT_THAT(result, FailsWith(Errc::held_by_other));
    EXPECT_EQ(result.nodes()[0].cause, std::error_code{});
    EXPECT_EQ(result.nodes()[3].cause, Errc::wrong_type);
    EXPECT_EQ(result.nodes()[4].cause, Errc::timed_out);
}

// A7. The node refused the attempt, and could not be reached for the release after it.
TEST_F(Acquire, DoesNotReportAFailedReleaseOnANodeThatRefused) {
    world.occupy(1h, 0, 1, 2);
    world.slow(4, 10ms);
    world.after(5ms, [&] { world.cut(0); });
    const auto result = world.lock(no_retry()).acquire();
    EXPECT_THAT(result, FailsWith(Errc::held_by_other));
    EXPECT_EQ(result.nodes()[0].vote, Vote::refused);
    EXPECT_EQ(result.nodes()[0].cause, std::error_code{});
}

// ---- Cleaning up (A2).

// A2, B1, S17. A failed attempt deletes its key on every node to which a byte was sent, and on no other.
TEST_F(AFailedAcquire, DeletesItsKeyOnEachNodeThatMayHaveIt) {
    world.occupy(1h, 0);
    world.cut(1);
    world.silence(2);
    world.back_off(3);
    EXPECT_THAT(world.lock(no_retry()).acquire(), FailsWith(Errc::no_quorum));
    EXPECT_THAT(world.events(), ElementsAre("set #1 for 10000 ms", "delete #1 on 0 2 4"));
}

// A2. If nothing was sent, there is nothing to delete.
TEST_F(AFailedAcquire, DeletesNothingIfNothingWasSent) {
    world.cut_all();
    (void)world.lock(no_retry()).acquire();
    EXPECT_THAT(world.events(), ElementsAre("set #1 for 10000 ms"));
}

// ---- Owners (A5, A6).

// A5. Each attempt has its own owner. Otherwise a late delete of attempt 1 could remove the key of attempt 2.
TEST_F(Acquire, DrawsANewOwnerForEachAttempt) {
    world.occupy(300ms, 0, 1, 2);
    auto lock = world.lock({.retry = {.attempts = 10}});
    const auto result = lock.acquire();
    ASSERT_THAT(result, Succeeds());
    EXPECT_EQ(world.log.owners_met(), static_cast<std::size_t>(result.attempts()));
}

// A6. If entropy fails at a retry, acquire() ends. The first attempt was cleaned up before.
TEST_F(Acquire, EndsIfEntropyFailsAtARetry) {
    world.occupy(1h, 0, 1, 2);
    world.entropy.dry_up_after(1);
    EXPECT_EQ(world.lock().acquire().error(), std::errc::io_error);
    EXPECT_THAT(world.events(), ElementsAre("set #1 for 10000 ms", "delete #1", "pause"));
}

// ---- What is worth a retry.

// D7. A transient cause is retried. A permanent cause needs an operator, and ends acquire() if it rules out a
// majority. error_test.cpp has the table of causes. A proxy whose server restarts can have words of its own.
TEST_F(Acquire, RetriesTransientCausesOnly) {
    for (const auto cause : {Errc::loading, Errc::unknown_error, Errc::read_only}) {
        World one;
        one.lie(cause, 0, 1, 2);
        one.after(50ms, [&] { one.heal_all(); });
        const auto result = one.lock().acquire();
        EXPECT_EQ(result.error(), cause == Errc::read_only ? Errc::no_quorum : std::error_code{});
        EXPECT_EQ(result.attempts(), cause == Errc::read_only ? 1 : 2);
    }
}

// D7. If the other nodes could still form a majority, the attempt is repeated.
TEST_F(Acquire, RetriesWhileTheOtherNodesCouldFormAQuorum) {
    world.lie(Errc::read_only, 0, 1);
    world.cut(2);
    world.after(50ms, [&] { world.heal(2); });
    EXPECT_THAT(world.lock().acquire(), Succeeds());
}

// D7. A key of another type is no failed node, although the report of the refusal has a permanent cause.
TEST_F(Acquire, RetriesIfTheKeyHasAnotherTypeAndNodesHaveFailed) {
    World three{3};
    three.command(0, {"ZADD", the_resource, "1", "member"});
    three.lie(Errc::read_only, 1);
    three.lie(Errc::loading, 2);
    three.after(50ms, [&] { three.command(0, {"DEL", the_resource}), three.heal(2); });
    EXPECT_THAT(three.lock().acquire(), Succeeds());
}

// A8. A majority that came too late is retried, because the nodes may be faster the next time.
TEST_F(Acquire, RetriesAMajorityWonTooLate) {
    World slow{3, 900ms};
    slow.slow(0, 900ms);
    slow.slow(1, 88ms);
    slow.after(1s, [&] { slow.heal_all(); });
    EXPECT_THAT(slow.lock({.ttl = 1s}).acquire(), Succeeds());
}

// ---- The report (A12).

// A12. The report has the name, the vote, the cause and the duration for each node.
TEST_F(Acquire, ReportsEachNode) {
    world.occupy(1h, 0);
    world.cut(1);
    world.silence(2);
    world.lie(Errc::loading, 3);
    world.slow(4, 7ms);
    const auto result = world.lock(no_retry()).acquire();
    const auto nodes = result.nodes();
    ASSERT_THAT(nodes, SizeIs(5));

    const auto expect = [&](std::size_t node, Vote vote, std::error_code cause, Clock::duration took,
                            bool sent) {
        EXPECT_EQ(nodes[node].name, "node" + std::to_string(node));
        EXPECT_EQ(nodes[node].vote, vote);
        EXPECT_EQ(nodes[node].cause, cause);
        EXPECT_THAT(nodes[node].took, Lasts(took));
        EXPECT_EQ(nodes[node].sent, sent);
    };
    expect(0, Vote::refused, {}, 0ms, true);
    expect(1, Vote::unknown, Errc::connection_failed, 0ms, false);
    expect(2, Vote::unknown, Errc::timed_out, 50ms, true);
    expect(3, Vote::unknown, Errc::loading, 0ms, true);
    expect(4, Vote::granted, {}, 7ms, true);
}

// A12. The result reports the last attempt, and the number of attempts.
TEST_F(Acquire, ReportsTheLastAttempt) {
    world.cut_all();
    world.after(1ms, [&] { world.heal_all(), world.occupy(1h, 0, 1, 2); });
    const auto result = world.lock({.retry = {.attempts = 2}}).acquire();
    EXPECT_THAT(result, FailsWith(Errc::held_by_other));
    EXPECT_EQ(result.attempts(), 2);
    EXPECT_EQ(result.nodes()[0].vote, Vote::refused);
}

}  // namespace
}  // namespace redlock::test::acquire_test
