// Rule D1 with replies that are cut off, repeated, or not replies at all: on any doubt the connection is
// destroyed, and nothing is counted that this command was not answered with.
#include "fault_world.hpp"

#include <thread>

namespace redlock::test {
namespace {

class BrokenReplies : public InEachRound {
protected:
    BrokenReplies() { world.warm_up(); }

    FaultWorld world{3, {.node_timeout = 2s, .round = GetParam()}};
    TcpProxy& link = world.link(1);
    Lock lock = world.lock(no_retry(60s));
};
INSTANTIATE_TEST_SUITE_P(Of, BrokenReplies, testing::Values(Round::sequential, Round::all_at_once),
                         name_of_round);

/// The vote of that node is in and unknown, for one of the causes that a broken connection has.
MATCHER_P(Distrusts, node, "does not count node " + std::to_string(node)) {
    const NodeReport& report = arg.nodes()[node];
    *result_listener << report.cause.message() << " (" << report.detail << ")";
    return report.vote == Vote::unknown &&
           (report.cause == Errc::unexpected_reply || report.cause == Errc::connection_failed ||
            report.cause == Errc::backing_off);
}

// D1. "+O": not a grant.
TEST_P(BrokenReplies, CutInTheMiddleCountNothing) {
    for (auto& each : world.links()) each.cut_after(2);
    const auto result = lock.acquire();
    EXPECT_THAT(result, FailsWith(Errc::no_quorum));
    EXPECT_EQ(count(result, Vote::granted), 0U);
}

// D1, A7. Nor is a status that is not OK, a number, a string or an array, and the connection ends with it.
TEST_P(BrokenReplies, OfAnotherTypeCountNothingAndEndTheConnection) {
    for (const auto* const nonsense : {"+QUEUED\r\n", ":1\r\n", "$2\r\nOK\r\n", "*1\r\n+OK\r\n", "!\r\n"}) {
        for (auto& each : world.links()) each.babble(nonsense);
        const auto result = lock.acquire();
        EXPECT_THAT(result, FailsWith(Errc::no_quorum)) << nonsense;
        EXPECT_EQ(count(result, Vote::granted), 0U) << nonsense;
        for (auto& each : world.links()) each.heal();
        world.warm_up();
    }
}

// D1. The second copy of a reply is nobody's answer: the connection it came by is not used again.
TEST_P(BrokenReplies, RepeatedAtOnceEndTheConnection) {
    const auto before = link.traffic().reply_bytes;
    link.record();
    link.duplicate_replies();
    (void)lock.acquire();  // which may be over before this node has answered
    ASSERT_TRUE(wait_until([&] { return link.traffic().reply_bytes >= before + 10; }));  // "+OK", "+OK"
    link.heal();
    const auto spoilt = commands(link, "SET").front().connection;
    (void)lock.release();
    world.warm_up();
    for (const auto& command : commands(link, "SET")) {
        if (command.words.at(1) == the_resource) continue;
        EXPECT_NE(command.connection, spoilt);
    }
}

// D1. The OK of one acquire comes again later, when the connection is idle: it grants the next one nothing.
TEST_P(BrokenReplies, RepeatedLaterGrantNobodyAnything) {
    for (int i = 0; i < 10; ++i) {
        const auto before = link.traffic().reply_bytes;
        link.duplicate_replies(1ms);
        const auto resource = "orders:" + std::to_string(i);
        auto first = world.lock(resource, no_retry(60s));
        const auto acquired = first.acquire();
        ASSERT_THAT(acquired, Succeeds());
        ASSERT_TRUE(wait_until([&] { return link.traffic().reply_bytes >= before + 10; }));  // "+OK", "+OK"
        auto second = world.lock(resource, no_retry(60s));
        const auto refused = second.acquire();
        EXPECT_FALSE(refused);
        EXPECT_EQ(count(refused, Vote::granted), 0U) << refused.message();
        link.heal();
        (void)first.release();
        world.warm_up();
    }
}

// B1, A2. The SET was carried out, and the connection broke before it was answered: the release goes there
// all the same, by a new connection, and nothing is left.
TEST_P(BrokenReplies, OfASetThatWasCarriedOutAreFollowedByTheRelease) {
    FaultWorld single{1, {.node_timeout = 5s, .round = GetParam()}};
    single.warm_up();
    single.link(0).hold();
    auto orphan = single.lock(no_retry(60s));
    std::jthread acquiring{[&] { EXPECT_THAT(orphan.acquire(), FailsWith(Errc::no_quorum)); }};
    ASSERT_TRUE(wait_until([&] { return !single.clean(); }));
    single.link(0).reset();
    single.link(0).release();
    acquiring.join();
    EXPECT_TRUE(single.clean());
}

// E. A server that streams without an end fills nobody's memory: the connection ends.
TEST_P(BrokenReplies, WithoutAnEndAreNotWaitedFor) {
    link.babble("$500000000\r\n" + std::string(1'000'000, 'x'));
    auto result = lock.acquire();
    EXPECT_THAT(result, Succeeds());
    EXPECT_TRUE(wait_until([&] {
        (void)lock.release();
        result = lock.acquire();
        return result.nodes()[1].vote == Vote::unknown && result.nodes()[1].cause != Errc::not_awaited;
    }));
    EXPECT_THAT(result, Distrusts(1U));
}

}  // namespace
}  // namespace redlock::test
