// The interface to the nodes: lists of nodes, tallies, and implementations by users.
#include "world.hpp"

#include <new>
#include <system_error>

namespace redlock::test::nodes_test {
namespace {

/// The example at the top of nodes.hpp: a fake for a user's own tests.
class WillingNodes : public Nodes {
public:
    explicit WillingNodes(std::vector<std::string> names, milliseconds node_timeout = 0ms,
                          milliseconds quarantine = 0ms)
        : Nodes(std::move(names), node_timeout, quarantine) {}

    void ask(std::span<const Request> requests, const RoundLimits&, std::span<Tally> tallies) override {
        for (std::size_t i = 0; i < requests.size(); ++i)
            for (std::size_t node = 0; node < size(); ++node)
                if (requests[i].to[node]) tallies[i].grant(node);
    }
};

// Such nodes have no node_timeout unless they set one. Then any ttl above the drift is valid.
TEST(UserDefinedNodes, CanReplaceTheNetwork) {
    World world;
    WillingNodes nodes{{"a", "b", "c"}};
    EXPECT_EQ(nodes.node_timeout(), 0ms);
    Lock lock{nodes, the_resource, {.ttl = 3ms, .drift_factor = 0}, world.clock, world.entropy};
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
}

// B1. If the release of a failed attempt finds no memory, acquire() sends it once more.
TEST(UserDefinedNodes, GetTheReleaseThatAnAttemptHasLeftEvenWithoutANodeTimeout) {
    World nodes{3, 0ms};
    nodes.before_round = [rounds = 0](auto&&...) mutable {
        if (++rounds == 2) throw std::bad_alloc{};
    };
    nodes.cut(0, 1);
    auto lock = nodes.lock({.retry = {.attempts = 1}});
    EXPECT_EQ(lock.acquire().error(), std::errc::not_enough_memory);
    EXPECT_TRUE(nodes.clean());
}

// A10. Impossible values are rejected by the constructor.
TEST(UserDefinedNodes, RejectImpossibleValues) {
    const auto refusal_of = [](std::vector<std::string> names, milliseconds node_timeout = 0ms) {
        return refusal([&] { const WillingNodes nodes{std::move(names), node_timeout}; });
    };
    EXPECT_EQ(refusal_of({"a"}, 1h), "");
    for (const auto node_timeout : {-1ms, milliseconds{1h} + 1ms, milliseconds::max(), milliseconds::min()})
        EXPECT_THAT(refusal_of({"a"}, node_timeout), HasSubstr("node_timeout")) << text(node_timeout);
    EXPECT_THAT(refusal_of({}), HasSubstr("list of nodes is empty"));
    EXPECT_EQ(refusal_of(std::vector<std::string>(max_nodes)), "");
    EXPECT_THAT(refusal_of(std::vector<std::string>(max_nodes + 1)),
                HasSubstr("list of nodes has 16 entries"));
}

// A10, S30. A ttl longer than the quarantine would make the quarantine useless.
TEST(UserDefinedNodes, RejectATtlLongerThanTheirQuarantine) {
    World world;
    WillingNodes nodes{{"a"}, 0ms, 3s};
    Lock lock{nodes, the_resource, {.ttl = 3s}, world.clock, world.entropy};
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_THAT(refusal([&] { (void)lock.extend(3001ms); }), HasSubstr("NodesOptions::quarantine, 3000 ms"));
    EXPECT_THAT(refusal([&] { (void)Lock{nodes, "a", {.ttl = 3001ms}}; }), HasSubstr("LockOptions::ttl"));
}

TEST(UserDefinedNodes, HaveNamesInTheConfiguredOrder) {
    const WillingNodes nodes{{"a", "b", "c"}};
    EXPECT_EQ(nodes.size(), 3U);
    EXPECT_EQ(nodes.name(0), "a");
    EXPECT_EQ(nodes.name(2), "c");
    EXPECT_THROW((void)nodes.name(3), std::out_of_range);
}

// ---- Tallies.

struct ATally : testing::Test {
    WillingNodes nodes{{"a", "b", "c"}};
    Tally tally = nodes.blank_tally();
};

// A7. The vote of a node is unknown in the beginning: it has neither granted nor refused, and was sent
// nothing.
TEST_F(ATally, StartsUnknown) {
    for (const auto& report : tally.reports()) {
        EXPECT_EQ(report.vote, Vote::unknown);
        EXPECT_EQ(report.cause, Errc::not_asked);
        EXPECT_FALSE(report.sent);
    }
    EXPECT_EQ(tally.granted(), 0U);
    EXPECT_EQ(tally.refused(), 0U);
    EXPECT_TRUE(tally.sent().none());
    EXPECT_EQ(tally.size(), 3U);
    EXPECT_EQ(Tally{}.size(), 0U);
}

// B1. A release must reach every node that voted or may have received a byte. A vote has no cause.
TEST_F(ATally, CountsVotesAndTheNodesThatMayHaveGotAByte) {
    tally.grant(0);
    tally.refuse(1);
    EXPECT_EQ(tally.granted(), 1U);
    EXPECT_EQ(tally.refused(), 1U);
    EXPECT_FALSE(tally[0].cause || tally[1].cause);
    EXPECT_EQ(tally.sent(), NodeSet{0b011});
    tally.mark_unknown(1, Errc::timed_out);
    tally.mark_not_sent(2, Errc::connection_failed);
    EXPECT_EQ(tally.refused(), 0U);
    EXPECT_EQ(tally[1].vote, Vote::unknown);
    EXPECT_EQ(tally[1].cause, Errc::timed_out);
    EXPECT_EQ(tally.sent(), NodeSet{0b011});
}

// By default a request goes to every node, without a deadline and without a stop token.
TEST(ARequest, GoesToEveryNodeWithoutLimitsByDefault) {
    const RoundLimits limits;
    EXPECT_TRUE(Request{}.to.all());
    EXPECT_EQ(limits.deadline, Clock::never());
    EXPECT_FALSE(limits.stop.stop_possible());
}

}  // namespace
}  // namespace redlock::test::nodes_test
