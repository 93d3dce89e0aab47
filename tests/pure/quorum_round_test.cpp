// One round for one request: when each node is asked, what its reply means, and when the round ends.
#include "played_round.hpp"

namespace redlock::test::quorum_round_test {
namespace {

constexpr auto all_at_once = Round::all_at_once;
constexpr auto release = Verb::compare_and_delete;
constexpr auto extension = Verb::compare_and_expire;

// ---- Order

TEST(QuorumRound, AsksOneNodeAfterAnotherAndContinuesAfterAQuorum) {
    PlayedRound round{{}};
    for (std::size_t node = 0; node < 3; ++node) round.node(node).answers_after(10ms);
    EXPECT_THAT(round.log(), ElementsAre("0 ask 0", "10 ask 1", "20 ask 2"));
    EXPECT_EQ(round.ended(), 30ms);
    for (std::size_t node = 0; node < 3; ++node) EXPECT_EQ(round.report(node), "granted sent 10 ms");
}

TEST(QuorumRound, AsksAllNodesAtOnce) {
    for (const auto verb : {Verb::set_if_absent, Verb::set_and_count, extension, Verb::raise_count}) {
        const bool acquire = acquires(verb);
        PlayedRound round{{.verb = verb, .order = acquire ? all_at_once : Round::sequential}};
        EXPECT_THAT(round.log(), ElementsAre("0 ask 0", "0 ask 1", "0 ask 2"));
        EXPECT_EQ(round.ended(), 1ms);
    }
}

// The first node wakes the next waiter, which must find the other nodes free.
TEST(QuorumRound, AReleaseIsWrittenToTheFirstNodeLast) {
    PlayedRound round{{.verb = release}};
    EXPECT_THAT(round.log(), ElementsAre("0 ask 2", "0 ask 1", "0 ask 0"));
    EXPECT_EQ(round.ended(), 1ms);
}

// One node has the queue of waiters.
TEST(QuorumRound, OneReplyDecidesAnEntryIntoTheQueue) {
    PlayedRound round{{.nodes = 5, .verb = Verb::enter_queue}};
    round.request(0).to = NodeSet{0b00010};
    round.node(1).voting("r");
    EXPECT_THAT(round.log(), ElementsAre("0 ask 1"));
    EXPECT_EQ(round.report(1), "refused sent 1 ms");
}

TEST(QuorumRound, StopsAskingWhenAQuorumIsImpossible) {
    PlayedRound round{{.nodes = 5}};
    for (std::size_t node = 0; node < 5; ++node) round.node(node).voting(node == 1 ? "u" : "r");
    EXPECT_THAT(round.log(), ElementsAre("0 ask 0", "1 ask 1", "2 ask 2"));
    EXPECT_EQ(round.report(1), "loading sent 1 ms LOADING");
    EXPECT_EQ(round.report(4), "not_asked unsent 0 ms");
}

TEST(QuorumRound, AsksOnlyTheNodesOfTheRequest) {
    PlayedRound round{{.nodes = 5, .verb = release}};
    round.request(0).to = NodeSet{0b10010};
    EXPECT_THAT(round.log(), ElementsAre("0 ask 4", "0 ask 1"));
    EXPECT_EQ(round.report(0), "not_asked unsent 0 ms");
}

TEST(QuorumRound, AsksNoFurtherNodeAfterAStop) {
    PlayedRound round{{}};
    round.node(0).answers_after(10ms);
    round.stop_at(5ms);
    EXPECT_THAT(round.log(), ElementsAre("0 ask 0"));
    EXPECT_EQ(round.report(0), "granted sent 10 ms") << "the reply to the sent command is still awaited";
    EXPECT_EQ(round.report(1), "not_asked unsent 0 ms");
}

// ---- Time limits

TEST(QuorumRound, ASilentNodeDelaysTheRoundByOneNodeTimeout) {
    PlayedRound round{{}};
    round.node(1).silent();
    EXPECT_THAT(round.log(), ElementsAre("0 ask 0", "1 ask 1", "51 give up 1", "51 ask 2"));
    EXPECT_EQ(round.report(1), "timed_out sent 50 ms");
    EXPECT_THAT(round.blamed(), ElementsAre(1));
}

// A node that hangs must not use up the time for the others.
TEST(QuorumRound, DividesTheTimeOfTheCallerAmongTheNodes) {
    PlayedRound round{{.nodes = 5, .deadline = 100ms}};
    round.node(0).silent();
    round.node(3).silent();
    EXPECT_THAT(round.log(), ElementsAre("0 ask 0", "20 give up 0", "20 ask 1", "21 ask 2", "22 ask 3",
                                         "61 give up 3", "61 ask 4"));
    EXPECT_EQ(round.report(0), "timed_out sent 20 ms");
}

TEST(QuorumRound, ANodeIsNotBlamedForTheDeadlineOfTheCaller) {
    for (const auto verb : {Verb::set_if_absent, extension, release}) {
        PlayedRound round{{.nodes = 1, .verb = verb, .deadline = 30ms}};
        round.node(0).silent();
        EXPECT_EQ(round.report(0), "deadline sent 30 ms");
        EXPECT_THAT(round.blamed(), IsEmpty());
    }
}

// An eighth of node_timeout is too short to blame a node.
TEST(QuorumRound, ANodeIsNotBlamedIfItsShareOfTheTimeIsTooSmall) {
    PlayedRound round{{.nodes = 5, .deadline = 20ms}};
    round.node(0).silent();
    EXPECT_EQ(round.report(0), "deadline sent 4 ms");
    EXPECT_THAT(round.blamed(), IsEmpty());
}

TEST(QuorumRound, AsksNoNodeAfterTheDeadlineExceptForARelease) {
    PlayedRound acquire{{.deadline = 0ms}}, extend{{.verb = extension, .deadline = 0ms}};
    PlayedRound free{{.verb = release, .deadline = 0ms}};
    EXPECT_THAT(acquire.log(), IsEmpty());
    EXPECT_THAT(extend.log(), IsEmpty());
    EXPECT_EQ(free.report(2), "deadline sent 0 ms") << "it is sent, but not waited for";
}

TEST(QuorumRound, ReportsThatANodeWasConnecting) {
    PlayedRound round{{.nodes = 1}};
    round.node(0).connects_after(PlayedRound::never);
    EXPECT_EQ(round.report(0), "timed_out unsent 50 ms while connecting");
    EXPECT_THAT(round.blamed(), ElementsAre(0));
}

// However late this process reads the reply: it checks once more before it gives up.
TEST(QuorumRound, AReplyCountsEvenIfTheProcessStalledBeforeItRead) {
    for (const auto order : {Round::sequential, all_at_once})
        for (const auto answers : {20ms, 300ms}) {
            PlayedRound round{{.nodes = 1, .order = order}};
            round.node(0).answers_after(answers);
            round.stall_until(300ms);
            EXPECT_THAT(round.log(), ElementsAre("0 ask 0"));
            EXPECT_EQ(round.report(0), "granted sent 300 ms");
        }
}

TEST(QuorumRound, AReplyCountsEvenIfTheProcessStalledAfterTheWait) {
    for (const auto order : {Round::sequential, all_at_once}) {
        PlayedRound round{{.nodes = 1, .order = order}};
        round.node(0).answers_after(20ms);
        round.stall_after_wait_until(300ms);
        EXPECT_EQ(round.report(0), "granted sent 300 ms");
        EXPECT_THAT(round.blamed(), IsEmpty());
    }
}

// ---- Nodes that are not trusted

TEST(QuorumRound, AsksUntrustedNodesLastAndAllAtOnce) {
    PlayedRound round{{.nodes = 5}};
    round.node(0).untrusted(true).silent();
    round.node(2).untrusted(true).silent();
    for (const auto node : {1U, 3U}) round.node(node).answers_after(10ms);
    round.node(4).voting("u");
    EXPECT_THAT(round.log(), ElementsAre("0 ask 1", "10 ask 3", "20 ask 4", "21 ask 0", "21 ask 2",
                                         "71 give up 0", "71 give up 2"));
}

TEST(QuorumRound, DoesNotAwaitAnUntrustedNodeOnceDecided) {
    for (const auto verb : {Verb::set_if_absent, extension, release}) {
        PlayedRound round{{.verb = verb, .order = all_at_once}};
        round.node(0).untrusted(true).silent();
        EXPECT_EQ(round.ended(), 1ms);
        EXPECT_EQ(round.report(0), "not_awaited sent 1 ms");
        EXPECT_THAT(round.blamed(), IsEmpty());
    }
}

TEST(QuorumRound, AwaitsAnUntrustedNodeThatDecides) {
    for (const auto verb : {Verb::set_if_absent, extension, release}) {
        PlayedRound round{{.verb = verb, .order = all_at_once}};
        round.node(0).untrusted(true).answers_after(40ms);
        round.node(1).voting("u");
        EXPECT_EQ(round.ended(), 40ms);
        EXPECT_EQ(round.report(0), "granted sent 40 ms");
    }
}

// One grant and one refusal leave the decision to the third node, whichever it is. A missing reply is
// neither.
TEST(QuorumRound, AwaitsTheThirdNodeAfterAGrantAndARefusal) {
    for (std::size_t third = 0; third < 3; ++third) {
        PlayedRound silent{{.order = all_at_once}}, late{{.order = all_at_once}};
        for (auto* const round : {&silent, &late}) {
            round->node((third + 1) % 3).voting("r");
            round->node(third).answers_after(round == &silent ? PlayedRound::never : 40ms);
            EXPECT_EQ(round->raw_report((third + 1) % 3).vote, Vote::refused) << third;
            EXPECT_EQ(round->raw_report((third + 2) % 3).vote, Vote::granted) << third;
        }
        EXPECT_EQ(silent.report(third), "timed_out sent 50 ms") << third;
        EXPECT_EQ(late.report(third), "granted sent 40 ms") << third;
    }
}

// In sequential order, no further node is asked when a silent and a refusing node have decided the vote.
TEST(QuorumRound, AsksNoThirdNodeAfterASilenceAndARefusal) {
    PlayedRound round{{}};
    round.node(0).silent();
    round.node(1).voting("r");
    EXPECT_THAT(round.log(), ElementsAre("0 ask 0", "50 give up 0", "50 ask 1"));
    EXPECT_EQ(round.report(2), "not_asked unsent 0 ms");
}

TEST(QuorumRound, ARefusedAcquireLeavesUntrustedNodesAlone) {
    for (const auto order : {Round::sequential, all_at_once}) {
        PlayedRound round{{.order = order}};
        round.node(0).untrusted().silent();
        round.node(1).voting("r");
        EXPECT_LE(round.ended(), 2ms) << "it is not waited for";
        EXPECT_FALSE(round.raw_report(0).sent);
    }
}

TEST(QuorumRound, ARefusedAcquireExpectsNoVoteOfUntrustedNodes) {
    PlayedRound round{{.nodes = 5, .order = all_at_once}};
    for (const auto node : {0U, 1U}) round.node(node).untrusted();
    round.node(2).voting("r");
    round.node(4).silent();
    EXPECT_EQ(round.ended(), 1ms) << "without them there is no quorum, whatever the silent node votes";
}

TEST(QuorumRound, ARefusedAcquireAwaitsAProbeThatIsDue) {
    PlayedRound round{{}};
    round.node(0).untrusted(true).answers_after(30ms);
    round.node(1).voting("r");
    EXPECT_THAT(round.log(), ElementsAre("0 ask 1", "1 ask 2", "2 ask 0"));
    EXPECT_EQ(round.report(0), "granted sent 30 ms");
}

// Many clients may collide, and only one of them may probe the node.
TEST(QuorumRound, ARefusedAcquireDoesNotWaitForAnotherClientsProbe) {
    PlayedRound round{{}};
    round.node(0).untrusted(true).silent();
    round.node(0).probe_taken = true;
    round.node(1).voting("r");
    EXPECT_THAT(round.log(), ElementsAre("0 ask 1", "1 ask 2", "2 leave alone 0", "2 leave alone 0"));
    EXPECT_EQ(round.ended(), 2ms);
}

TEST(QuorumRound, ARefusedExtensionStillAsksTheUntrustedNodeThatDecides) {
    PlayedRound round{{.verb = extension}};
    round.node(0).untrusted();
    round.node(1).voting("r");
    EXPECT_THAT(round.log(), ElementsAre("0 ask 1", "0 ask 2", "0 leave alone 0", "1 ask 0"));
    EXPECT_EQ(round.report(0), "granted sent 1 ms");
}

// ---- Half time

struct HalfTime : testing::TestWithParam<Verb> {};

INSTANTIATE_TEST_SUITE_P(QuorumRound, HalfTime,
                         testing::Values(Verb::set_if_absent, Verb::set_and_count, extension));

TEST_P(HalfTime, AsksAnUntrustedNodeThatDecides) {
    PlayedRound round{{.verb = GetParam(), .order = all_at_once}};
    round.node(0).untrusted().answers_after(10ms);
    round.node(2).silent();
    EXPECT_THAT(round.log(), ElementsAre("0 ask 1", "0 ask 2", "0 leave alone 0", "25 ask 0"));
    EXPECT_EQ(round.report(0), "granted sent 10 ms");
    EXPECT_EQ(round.report(2), "not_awaited sent 35 ms");
}

TEST_P(HalfTime, ComesAtOnceIfNoOtherNodeCanReply) {
    PlayedRound round{{.verb = GetParam(), .order = all_at_once}};
    round.node(0).untrusted();
    round.node(2).breaks_after(5ms).silent();
    EXPECT_THAT(round.log(), ElementsAre("0 ask 1", "0 ask 2", "0 leave alone 0", "5 ask 0"));
}

TEST_P(HalfTime, DoesNotLengthenTheNodeTimeout) {
    PlayedRound round{{.verb = GetParam(), .order = all_at_once}};
    round.node(0).untrusted().silent();
    round.node(2).silent();
    EXPECT_THAT(round.log(), ElementsAre("0 ask 1", "0 ask 2", "0 leave alone 0", "25 ask 0", "50 give up 0",
                                         "50 give up 2"));
    EXPECT_EQ(round.report(0), "timed_out sent 25 ms");
}

TEST_P(HalfTime, LeavesANodeAloneThatIsNotNeeded) {
    PlayedRound round{{.nodes = 5, .verb = GetParam(), .order = all_at_once}};
    round.node(0).untrusted();
    round.node(2).answers_after(30ms);
    round.node(3).silent();
    round.node(4).answers_after(30ms);
    round.node(1).untrusted(true).answers_after(20ms);
    EXPECT_EQ(round.ended(), 30ms);
    EXPECT_EQ(round.log()[3], "0 leave alone 0") << "four other nodes are asked";
    EXPECT_EQ(round.log().back(), "25 ask 0") << "by then only one has answered";
}

TEST_P(HalfTime, HasNoEffectOnceDecided) {
    PlayedRound round{{.verb = GetParam(), .order = all_at_once}};
    round.node(0).untrusted();
    EXPECT_THAT(round.log(), ElementsAre("0 ask 1", "0 ask 2", "0 leave alone 0", "1 leave alone 0"));
    EXPECT_EQ(round.report(0), "backing_off unsent 0 ms") << "it took no time";
}

// The refusals come later than the instant at which the node is left alone.
TEST(QuorumRound, ReportsNoTimeForANodeThatIsLeftAlone) {
    PlayedRound round{{.order = all_at_once}};
    round.node(0).untrusted();
    for (const auto node : {1U, 2U}) round.node(node).voting("r").answers_after(20ms);
    EXPECT_THAT(round.log(), ElementsAre("0 ask 1", "0 ask 2", "0 leave alone 0"));
    EXPECT_EQ(round.ended(), 20ms);
    EXPECT_EQ(round.report(0), "backing_off unsent 0 ms");
}

// ---- What is awaited

// A lock on exactly a quorum cannot survive the loss of another node.
TEST(QuorumRound, LimitsTheTimeToConnectOnceDecided) {
    for (const auto verb : {Verb::set_if_absent, extension}) {
        PlayedRound round{{.verb = verb, .order = all_at_once, .node_timeout = 80ms}};
        round.node(2).connects_after(PlayedRound::never);
        EXPECT_EQ(round.ended(), 10ms) << "an eighth of the node_timeout";
        EXPECT_EQ(round.report(2), "timed_out unsent 10 ms while connecting");
    }
}

TEST(QuorumRound, SendsToATrustedNodeThatConnectsSoonAfterTheDecision) {
    PlayedRound round{{.verb = extension, .node_timeout = 80ms}};
    round.node(2).connects_after(9ms);
    EXPECT_EQ(round.ended(), 9ms);
    EXPECT_EQ(round.report(2), "not_awaited sent 9 ms");
}

TEST(QuorumRound, DoesNotWaitForAnUntrustedNodeToConnectOnceDecided) {
    PlayedRound round{{.verb = extension, .node_timeout = 80ms}};
    round.node(2).untrusted(true).connects_after(5ms);
    EXPECT_EQ(round.ended(), 1ms);
    EXPECT_EQ(round.report(2), "not_awaited unsent 1 ms");
}

TEST(QuorumRound, AllowsTheFullNodeTimeoutToConnectWhileUndecided) {
    PlayedRound round{{.order = all_at_once}};
    round.node(1).voting("u");
    round.node(2).connects_after(45ms);
    EXPECT_EQ(round.report(2), "granted sent 46 ms");
}

TEST(QuorumRound, EndsWhenTheVotesAreDecided) {
    for (const char* const vote : {"g", "r"}) {
        PlayedRound round{{.order = all_at_once}};
        round.node(0).voting(vote).answers_after(2ms);
        round.node(1).voting(vote).answers_after(3ms);
        round.node(2).silent();
        EXPECT_EQ(round.ended(), 3ms) << vote;
        EXPECT_EQ(round.report(2), "not_awaited sent 3 ms");
    }
}

// ---- Counts

TEST(QuorumRound, ReportsTheCountOfAGrant) {
    PlayedRound round{{.nodes = 1, .verb = Verb::set_and_count}};
    round.node(0).voting("c");
    EXPECT_EQ(round.report(0), "granted sent 1 ms count 7");
}

// ---- Connections that rounds share

/// A round with one node, whose connection is not free for another command at first.
struct ARoundThatIsHeldBack : testing::Test {
    using Kind = detail::QuorumRound::Step::Kind;

    ARoundThatIsHeldBack() {
        round.set_health(0, true, false);
        EXPECT_EQ(round.next(start).kind, Kind::ask);
        round.on_join(0, true);
        round.on_held_back(0);
    }
    /// Waits until the time of the node is over, and once more. Returns the next step.
    detail::QuorumRound::Step end_of_wait() {
        for (const auto span : {0ms, 50ms}) EXPECT_EQ(round.next(start + span).kind, Kind::wait);
        return round.next(start + 50ms);
    }

    const Clock::time_point start{1h};
    const std::vector<Request> requests{{.command = {.verb = extension, .owner = "A"}}};
    const RoundLimits limits{};
    std::vector<Tally> tallies{Tally{std::make_shared<const std::vector<std::string>>(1, "n")}};
    detail::QuorumRound round{requests, limits, 50ms, all_at_once, 1, tallies};
};

TEST_F(ARoundThatIsHeldBack, DoesNotBlameTheNode) {
    const auto step = end_of_wait();
    EXPECT_FALSE(step.timed_out);
    EXPECT_EQ(step.cause, Errc::not_asked);
}

TEST_F(ARoundThatIsHeldBack, BlamesANodeThatHangsAfterItHasGotTheCommand) {
    round.on_sent(0);
    const auto step = end_of_wait();
    EXPECT_TRUE(step.timed_out);
    EXPECT_EQ(step.cause, Errc::timed_out);
}

}  // namespace
}  // namespace redlock::test::quorum_round_test
