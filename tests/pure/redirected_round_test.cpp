// A round on a node that is a Redis Cluster: which redirections it follows.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "round/quorum_round.hpp"

namespace redlock::detail::redirected_round_test {
namespace {

using namespace std::chrono_literals;
constexpr bool moved = false;  // Redirection::asking
constexpr bool ask = true;

constexpr Clock::time_point start{1h};

/// A round on one node, which was asked and has got the command.
struct RedirectedRound : testing::Test {
    RedirectedRound() {
        (void)round.next(start);
        round.on_join(0, true);
        round.on_sent(0);
    }

    const std::vector<std::string> resources{"r"};
    const std::array<Request, 1> requests{Request{.command = {.resources = resources, .owner = "me"}}};
    const RoundLimits limits{};
    std::array<Tally, 1> tallies{Tally{std::make_shared<const std::vector<std::string>>(1, "a")}};
    QuorumRound round{requests, limits, 50ms, Round::sequential, 1, tallies};
};

TEST_F(RedirectedRound, FollowsOneMovedAndOneAsk) {
    EXPECT_TRUE(round.on_redirected(0, moved, start));
    EXPECT_TRUE(round.on_redirected(0, ask, start));
    EXPECT_FALSE(round.on_redirected(0, moved, start));
    EXPECT_FALSE(round.on_redirected(0, ask, start));
}

TEST_F(RedirectedRound, HasSentNothingToTheServerThatHasRedirectedIt) {
    EXPECT_TRUE(tallies[0][0].sent);
    EXPECT_TRUE(round.on_redirected(0, moved, start));
    EXPECT_FALSE(tallies[0][0].sent);
    round.on_join(0, true);
    EXPECT_TRUE(round.is_connecting(0));
    round.on_sent(0);
    EXPECT_TRUE(tallies[0][0].sent);
    EXPECT_TRUE(round.on_vote(0, {Vote::granted}, {}, start));
    EXPECT_EQ(round.next(start).kind, QuorumRound::Step::Kind::done);
    EXPECT_EQ(tallies[0][0].vote, Vote::granted);
}

TEST_F(RedirectedRound, FollowsNothingAfterItsDeadline) {
    EXPECT_FALSE(round.on_redirected(0, moved, start + 50ms));
    EXPECT_TRUE(tallies[0][0].sent) << "the vote will say what has become of the command";
}

TEST_F(RedirectedRound, TriesOtherServersOnlyBeforeItHasSent) {
    EXPECT_FALSE(round.on_unreachable(0, start));
    round.on_join(0, true);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(round.on_unreachable(0, start));
    EXPECT_FALSE(round.on_unreachable(0, start)) << "not for ever";
}

TEST_F(RedirectedRound, TriesNoOtherServerAfterItsDeadline) {
    round.on_join(0, true);
    EXPECT_FALSE(round.on_unreachable(0, start + 50ms));
}

}  // namespace
}  // namespace redlock::detail::redirected_round_test
