// One round for many requests, as a watchdog sends them: pipelined extensions of several locks.
#include "played_round.hpp"

namespace redlock::test::quorum_round_batch_test {
namespace {

PlayedRound batch(std::size_t requests, std::size_t nodes = 3) {
    return PlayedRound{{.nodes = nodes, .verb = Verb::compare_and_expire, .requests = requests}};
}

TEST(QuorumRoundBatch, CountsEachRequestByItself) {
    auto round = batch(3);
    round.node(0).voting("grg");
    round.node(1).voting("gru");
    round.node(2).voting("rgr");
    EXPECT_EQ(round.ended(), 3ms);
    EXPECT_EQ(round.report(0, 1), "refused sent 2 ms");
    EXPECT_EQ(round.report(1, 2), "loading sent 3 ms LOADING");
    EXPECT_EQ(round.report(2, 1), "granted sent 2 ms");
}

TEST(QuorumRoundBatch, ContinuesUntilTheLastRequestIsDecided) {
    auto round = batch(2);
    round.node(1).voting("gr");
    round.node(2).answers_after(20ms);
    EXPECT_EQ(round.ended(), 40ms) << "the first request was decided after 1 ms";
    EXPECT_EQ(round.report(2, 1), "granted sent 40 ms");
}

TEST(QuorumRoundBatch, EndsWhenEveryRequestIsDecided) {
    auto round = batch(2);
    for (const auto node : {0U, 1U}) round.node(node).voting("gr");
    round.node(2).silent();
    EXPECT_EQ(round.ended(), 2ms);
    for (const auto request : {0U, 1U}) EXPECT_EQ(round.report(2, request), "not_awaited sent 2 ms");
}

TEST(QuorumRoundBatch, CanHaveHundredsOfRequests) {
    constexpr std::size_t requests = 600;
    auto round = batch(requests);
    for (std::size_t node = 0; node < 3; ++node) round.node(node).answers_after(0ms);
    round.node(2).answers_after(PlayedRound::never);
    round.node(1).votes = std::string(299, 'g') + "r" + std::string(300, 'g');
    EXPECT_EQ(round.report(1, 298), "granted sent 0 ms");
    EXPECT_EQ(round.report(1, 299), "refused sent 0 ms");
    EXPECT_EQ(round.report(0, 599), "granted sent 0 ms");
    EXPECT_EQ(round.ended(), 50ms) << "the silent node decides one of them";
}

TEST(QuorumRoundBatch, SendsEachRequestToItsOwnNodes) {
    auto round = batch(2);
    round.request(0).to = NodeSet{0b011};
    round.request(1).to = NodeSet{0b110};
    EXPECT_EQ(round.report(0, 1), "not_asked unsent 0 ms");
    EXPECT_EQ(round.report(2, 0), "not_asked unsent 0 ms");
    EXPECT_EQ(round.report(2, 1), "granted sent 1 ms") << "its first answer is to the second request";
}

// The driver sends these requests again if the server refuses the form of one of them.
TEST(QuorumRoundBatch, KnowsTheRequestsWhoseVotesAreMissing) {
    const std::vector<Request> requests(3, {.command = {.verb = Verb::compare_and_expire}});
    const RoundLimits limits{};
    std::vector<Tally> tallies(3, Tally{std::make_shared<const std::vector<std::string>>(1, "0")});
    detail::QuorumRound round{requests, limits, 50ms, Round::all_at_once, 1, tallies};
    EXPECT_TRUE(round.exclude(0, 1, "excluded", {}));
    round.on_join(0, true);
    round.on_sent(0);
    EXPECT_FALSE(round.on_vote(0, {Vote::granted}, {}, {}));
    EXPECT_FALSE(round.lacks_vote(0, 0)) << "it has been answered";
    EXPECT_FALSE(round.lacks_vote(0, 1)) << "it was not sent";
    EXPECT_TRUE(round.lacks_vote(0, 2));
}

// ---- Timeouts

// A node that has replied to some of its commands is alive. The other requests are left to the next round.
TEST(QuorumRoundBatch, DoesNotBlameANodeThatRepliedToSomeCommands) {
    auto round = batch(3, 1);
    round.node(0).answers_at_most = 2;
    EXPECT_EQ(round.report(0, 0), "granted sent 1 ms");
    EXPECT_EQ(round.report(0, 1), "granted sent 2 ms");
    EXPECT_EQ(round.report(0, 2), "timed_out sent 50 ms after it had answered others");
    EXPECT_THAT(round.blamed(), IsEmpty());
}

TEST(QuorumRoundBatch, BlamesNoNodeForTheDeadlineOfTheCaller) {
    PlayedRound round{{.nodes = 1, .verb = Verb::compare_and_expire, .deadline = 30ms, .requests = 2}};
    round.node(0).answers_at_most = 1;
    EXPECT_EQ(round.report(0, 1), "deadline sent 30 ms");
    EXPECT_THAT(round.blamed(), IsEmpty());
}

TEST(QuorumRoundBatch, CountsRepliesFromBeforeTheConnectionBroke) {
    auto round = batch(2, 1);
    round.node(0).breaks_after(5ms).answers_at_most = 1;
    EXPECT_EQ(round.report(0, 0), "granted sent 1 ms");
    EXPECT_EQ(round.report(0, 1), "connection_failed sent 5 ms reset");
}

// ---- Requests that are not sent to a node, because they would overtake their own SET.

TEST(QuorumRoundBatch, DoesNotSendAnExcludedRequest) {
    auto round = batch(3, 1);
    round.node(0).excludes = {1};
    EXPECT_THAT(round.log(), ElementsAre("0 ask 0")) << "the replies belong to the other requests";
    EXPECT_EQ(round.report(0, 0), "granted sent 1 ms");
    EXPECT_EQ(round.report(0, 1), "not_asked unsent 0 ms excluded");
    EXPECT_EQ(round.report(0, 2), "granted sent 2 ms");
    EXPECT_EQ(round.ended(), 2ms);
}

TEST(QuorumRoundBatch, DoesNotAskANodeThatExcludesAllRequests) {
    auto round = batch(2, 1);
    round.node(0).excludes = {0, 1};
    EXPECT_THAT(round.log(), IsEmpty());
    EXPECT_EQ(round.ended(), 0ms);
}

TEST(QuorumRoundBatch, DoesNotCountAnExclusionAsAReply) {
    for (const std::size_t excluded : {0U, 1U}) {
        auto round = batch(2, 1);
        round.node(0).silent().excludes = {excluded};
        EXPECT_EQ(round.report(0, 1 - excluded), "timed_out sent 50 ms");
        EXPECT_THAT(round.blamed(), ElementsAre(0));
    }
}

// A node that has answered one of the commands is alive.
TEST(QuorumRoundBatch, DoesNotBlameANodeThatHasAnsweredBesideAnExclusion) {
    auto round = batch(3, 1);
    round.node(0).excludes = {0};
    round.node(0).answers_at_most = 1;
    EXPECT_EQ(round.report(0, 1), "granted sent 1 ms");
    EXPECT_EQ(round.report(0, 2), "timed_out sent 50 ms after it had answered others");
    EXPECT_THAT(round.blamed(), IsEmpty());
}

TEST(QuorumRoundBatch, EndsIfExclusionsMakeARequestImpossible) {
    auto round = batch(2);
    for (const auto node : {0U, 1U}) round.node(node).excludes = {0};
    round.node(2).silent();
    EXPECT_EQ(round.ended(), 1ms) << "the other request is decided, this one lost";
}

// ---- Half time

TEST(QuorumRoundBatch, AsksAnUntrustedNodeThatDecidesOneRequest) {
    auto round = batch(2);
    round.node(0).untrusted();
    round.node(1).answers_after(1ms);
    round.node(2).answers_at_most = 1;
    EXPECT_THAT(round.log(), ElementsAre("0 ask 1", "0 ask 2", "0 leave alone 0", "25 ask 0"));
    EXPECT_EQ(round.ended(), 27ms);
    EXPECT_EQ(round.report(2, 1), "not_awaited sent 27 ms");
}

TEST(QuorumRoundBatch, AsksAnUntrustedNodeThatDecidesAtOnce) {
    auto round = batch(2);
    round.node(0).untrusted();
    round.node(1).untrusted();
    EXPECT_THAT(round.log(), ElementsAre("0 ask 2", "0 ask 0", "0 leave alone 1", "2 leave alone 1"));
}

TEST(QuorumRoundBatch, LeavesANodeAloneThatOnlyALostRequestNeeds) {
    auto round = batch(2, 5);
    round.node(0).untrusted();
    for (const auto node : {1U, 2U, 3U, 4U}) round.node(node).voting("gr");
    EXPECT_THAT(round.log(), ElementsAre("0 ask 1", "0 ask 2", "0 ask 3", "0 ask 4", "0 leave alone 0",
                                         "2 leave alone 0"));
}

TEST(QuorumRoundBatch, LeavesANodeAloneThatExcludesTheUndecidedRequest) {
    auto round = batch(2);
    round.node(0).untrusted().excludes = {1};
    round.node(2).voting("gu");
    EXPECT_EQ(round.log().back(), "2 leave alone 0") << "the request that lacks its vote is lost";
}

}  // namespace
}  // namespace redlock::test::quorum_round_batch_test
