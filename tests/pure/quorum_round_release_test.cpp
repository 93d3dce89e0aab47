// One round of releases: it goes to every node, waits for the trusted ones, and is repeated once.
#include "played_round.hpp"

namespace redlock::test::quorum_round_release_test {
namespace {

constexpr auto all_at_once = Round::all_at_once;
constexpr auto release = Verb::compare_and_delete;
constexpr auto extension = Verb::compare_and_expire;

TEST(QuorumRound, AReleaseAwaitsEveryTrustedNode) {
    for (const char* const vote : {"g", "r"}) {
        PlayedRound round{{.verb = release}};
        for (std::size_t node = 0; node < 3; ++node) round.node(node).voting(vote);
        round.node(2).answers_after(40ms);
        EXPECT_EQ(round.ended(), 40ms) << vote;
    }
}

// This holds whatever the other nodes replied, and within one node_timeout.
TEST(QuorumRound, AQueryAwaitsEveryTrustedNode) {
    PlayedRound round{{.nodes = 5, .verb = Verb::query}};
    round.node(0).voting("e");
    round.node(2).answers_after(40ms);
    round.node(3).silent();
    round.node(4).connects = PlayedRound::never;
    EXPECT_EQ(round.report(2), "granted sent 40 ms");
    EXPECT_EQ(round.ended(), 50ms);
}

TEST(QuorumRound, AHolderDescriptionAwaitsNoReply) {
    PlayedRound round{{.verb = Verb::describe_holder, .awaits_answers = false}};
    round.node(1).connects_after(5ms);
    EXPECT_EQ(round.ended(), 0ms);
    EXPECT_TRUE(round.raw_report(0).sent);
    EXPECT_FALSE(round.raw_report(1).sent);
}

// The release stays queued on the connection. An eighth of node_timeout is too short to blame a node.
TEST(QuorumRound, AnUnawaitedReleaseBlamesNoNodeForASlowConnection) {
    PlayedRound round{{.verb = release, .node_timeout = 80ms, .awaits_answers = false}};
    round.node(2).connects_after(PlayedRound::never);
    EXPECT_EQ(round.ended(), 10ms);
    EXPECT_EQ(round.report(2), "not_awaited unsent 10 ms while connecting");
    EXPECT_THAT(round.blamed(), IsEmpty());
}

TEST(QuorumRound, AReleaseGivesTrustedNodesANodeTimeoutToConnect) {
    PlayedRound round{{.verb = release}};
    round.node(2).connects_after(45ms);
    EXPECT_EQ(round.report(2), "granted sent 46 ms");
}

TEST(QuorumRound, AReleaseGoesToEveryNodeWhateverTheVotes) {
    PlayedRound round{{.nodes = 5, .verb = release}};
    for (const auto node : {0U, 1U, 2U}) round.node(node).voting("r");
    round.node(3).untrusted();
    round.node(4).untrusted(true);
    round.stop_at(0ms);
    for (std::size_t node = 0; node < 5; ++node) EXPECT_TRUE(round.raw_report(node).sent) << node;
}

// Deleting twice does no harm.
TEST(QuorumRound, AReleaseIsRepeatedOnceIfItsConnectionBreaks) {
    PlayedRound once{{.verb = release}}, twice{{.verb = release}}, in_protocol{{.verb = release}};
    once.node(1).breaks_after(5ms).answers_after(10ms);
    twice.node(1).breaks_after(5ms).silent().breaks_times = 2;
    in_protocol.node(1).breaks_after(5ms).silent().disconnects = false;
    EXPECT_EQ(once.log().back(), "5 repeat 1");
    EXPECT_EQ(once.report(1), "granted sent 15 ms");
    EXPECT_EQ(twice.log().back(), "5 repeat 1");
    EXPECT_EQ(twice.report(1), "connection_failed sent 10 ms reset");
    EXPECT_EQ(in_protocol.log().back(), "0 ask 0");
}

// The node may have executed the first release, whose reply was lost. The second one then finds no key.
TEST(QuorumRound, ARefusalOfARepeatedReleaseIsAConfirmation) {
    PlayedRound round{{.verb = release}};
    round.node(1).breaks_after(5ms).answers_after(10ms).voting("r");
    round.node(2).voting("r");
    EXPECT_EQ(round.report(1), "granted sent 15 ms");
    EXPECT_EQ(round.raw_report(2).vote, Vote::refused);
}

TEST(QuorumRound, AWrongTypeConfirmsARepeatedReleaseWithoutACause) {
    PlayedRound round{{.verb = release}};
    round.node(1).breaks_after(5ms).answers_after(10ms).voting("w");
    round.node(2).voting("w");
    EXPECT_EQ(round.report(1), "granted sent 15 ms");
    EXPECT_EQ(round.raw_report(1).cause, std::error_code{});
    EXPECT_EQ(round.report(2), "refused sent 1 ms WRONGTYPE");
    EXPECT_EQ(round.raw_report(2).cause, Errc::wrong_type);
}

TEST(QuorumRound, AReleaseIsNotRepeatedAfterItsDeadline) {
    PlayedRound round{{.verb = release}};
    round.node(1).breaks_after(50ms).silent();
    EXPECT_EQ(round.log().back(), "0 ask 0");
    EXPECT_EQ(round.report(1), "connection_failed sent 50 ms reset");
}

TEST(QuorumRound, OtherCommandsAreNotRepeated) {
    for (const auto verb : {Verb::set_if_absent, Verb::set_and_count, extension, Verb::raise_count}) {
        PlayedRound round{{.verb = verb, .order = all_at_once}};
        round.node(0).breaks_after(5ms).silent();
        round.node(1).answers_after(10ms);
        EXPECT_THAT(round.log(), ElementsAre("0 ask 0", "0 ask 1", "0 ask 2"));
        EXPECT_EQ(round.report(0), "connection_failed sent 5 ms reset");
    }
}

}  // namespace
}  // namespace redlock::test::quorum_round_release_test
