// The seam to the network: lists of nodes, tallies, and that anybody can stand in for the network.
#include "world.hpp"

namespace redlock::test {
namespace {

/// The example at the top of nodes.hpp: a fake for tests of one's own.
class WillingNodes : public Nodes {
public:
    explicit WillingNodes(std::vector<std::string> names, milliseconds node_timeout = 0ms)
        : Nodes(std::move(names), node_timeout) {}

    void ask(std::span<const Request> requests, const RoundLimits&, std::span<Tally> tallies) override {
        for (std::size_t i = 0; i < requests.size(); ++i)
            for (std::size_t node = 0; node < size(); ++node)
                if (requests[i].to[node]) tallies[i].grant(node);
    }
};

TEST(NodesOfOnesOwn, CanStandInForTheNetwork) {
    World world;
    WillingNodes nodes{{"a", "b", "c"}};
    Lock lock{nodes, the_resource, {}, world.clock, world.entropy};
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
}

// They have no budget unless they say so; then any ttl above the drift will do.
TEST(NodesOfOnesOwn, NeedNoBudget) {
    World world;
    WillingNodes nodes{{"a"}};
    EXPECT_EQ(nodes.node_timeout(), 0ms);
    EXPECT_NO_THROW((Lock{nodes, the_resource, {.ttl = 3ms, .drift_factor = 0}, world.clock, world.entropy}));
}

// A10. A budget that cannot work is refused where it is given.
TEST(NodesOfOnesOwn, RefuseABudgetThatCannotWork) {
    EXPECT_NO_THROW(WillingNodes({"a"}, 1h));
    for (const auto budget : {-1ms, milliseconds{1h} + 1ms, milliseconds::max(), milliseconds::min()}) {
        try {
            const WillingNodes nodes{{"a"}, budget};
            ADD_FAILURE() << text(budget) << " was accepted";
        } catch (const std::invalid_argument& refused) {
            EXPECT_THAT(refused.what(), HasSubstr("node_timeout"));
        }
    }
}

TEST(NodesOfOnesOwn, AreNamedInTheOrderConfigured) {
    const WillingNodes nodes{{"a", "b", "c"}};
    EXPECT_EQ(nodes.size(), 3U);
    EXPECT_EQ(nodes.name(0), "a");
    EXPECT_EQ(nodes.name(2), "c");
    EXPECT_THROW((void)nodes.name(3), std::out_of_range);
}

TEST(AListOfNodes, MayNotBeEmpty) {
    try {
        const WillingNodes none{{}};
        ADD_FAILURE() << "accepted";
    } catch (const std::invalid_argument& refused) {
        EXPECT_THAT(refused.what(), HasSubstr("list of nodes is empty"));
    }
}

TEST(AListOfNodes, MayNotBeTooLong) {
    EXPECT_NO_THROW(WillingNodes{std::vector<std::string>(max_nodes)});
    try {
        const WillingNodes many{std::vector<std::string>(max_nodes + 1)};
        ADD_FAILURE() << "accepted";
    } catch (const std::invalid_argument& refused) {
        EXPECT_THAT(refused.what(), HasSubstr("list of nodes has 16 entries"));
    }
}

// ---- Tallies.

struct ATally : testing::Test {
    WillingNodes nodes{{"a", "b", "c"}};
    Tally tally = nodes.blank_tally();
};

// A7. Blank is unknown: a node that nothing was heard of has not granted, nor refused, nor been sent
// anything.
TEST_F(ATally, StartsUnknown) {
    for (const auto& report : tally.reports()) {
        EXPECT_EQ(report.vote, Vote::unknown);
        EXPECT_EQ(report.cause, Errc::not_asked);
        EXPECT_FALSE(report.sent);
    }
    EXPECT_EQ(tally.granted(), 0U);
    EXPECT_EQ(tally.refused(), 0U);
    EXPECT_TRUE(tally.sent().none());
}

TEST_F(ATally, CountsVotes) {
    tally.grant(0);
    tally.refuse(1);
    tally.mark_unknown(2, Errc::timed_out);
    EXPECT_EQ(tally.granted(), 1U);
    EXPECT_EQ(tally.refused(), 1U);
    EXPECT_EQ(tally[2].vote, Vote::unknown);
    EXPECT_EQ(tally[2].cause, Errc::timed_out);
}

// A vote has no cause of being unknown.
TEST_F(ATally, ClearsTheCauseOfAVote) {
    tally.grant(0);
    tally.refuse(1);
    EXPECT_FALSE(tally[0].cause);
    EXPECT_FALSE(tally[1].cause);
}

// B1. Whoever voted, or may have received a byte, has to be reached by a release.
TEST_F(ATally, KnowsWhereAByteMayHaveGone) {
    tally.grant(0);
    tally.mark_unknown(1, Errc::timed_out);
    tally.mark_not_sent(2, Errc::connection_failed);
    EXPECT_EQ(tally.sent(), NodeSet{0b011});
}

TEST_F(ATally, HasOneReportForEachNodeConfigured) {
    EXPECT_EQ(tally.size(), 3U);
    EXPECT_THAT(tally.reports(), SizeIs(3));
    EXPECT_EQ(tally.reports()[1].name, "b");
    EXPECT_EQ(Tally{}.size(), 0U);
}

// Every node, no deadline, no stop.
TEST(ARequest, GoesToEveryNodeWithoutLimitsByDefault) {
    const RoundLimits limits;
    EXPECT_TRUE(Request{}.to.all());
    EXPECT_EQ(limits.deadline, Clock::never());
    EXPECT_FALSE(limits.stop.stop_possible());
}

}  // namespace
}  // namespace redlock::test
