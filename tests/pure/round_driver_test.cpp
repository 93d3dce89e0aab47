// Rounds over real nodes and connections: batches, duplicate servers, broken connections, nodes in back-off.
#include "round_driver_world.hpp"

namespace redlock::test::round_driver_test {
namespace {

constexpr auto extension = Verb::compare_and_expire;

// ---- Waiting

TEST(RoundDriver, AReplyCountsUntilTheEndOfTheNodeTimeout) {
    for (const auto span : {1ms, 10ms, 26ms, 49ms}) {
        RoundDriverWorld world{1};
        (void)world.extend("A");
        world.network.server(0).latency = span;
        const auto tally = world.acquire("A");
        EXPECT_EQ(tally[0].vote, Vote::granted);
        EXPECT_EQ(tally[0].took, span);
    }
}

// If the socket accepts only a part of a command, the rest is sent while the round waits for the reply. The
// handshake is also written seven bytes at a time.
TEST(RoundDriver, ACommandIsWrittenToItsEndWhileItsReplyIsAwaited) {
    RoundDriverWorld world{1, {.round = Round::sequential}};
    world.network.server(0).takes_at_once = 7;
    EXPECT_EQ(world.extend("A")[0].vote, Vote::refused);
    const auto acquire = [&] { EXPECT_EQ(world.acquire("A")[0].vote, Vote::granted); };
    EXPECT_LT(time_taken(world.network, acquire), 15ms);
}

// ---- Several addresses

struct ANodeWithTwoAddresses : testing::Test, RoundDriverWorld {
    ANodeWithTwoAddresses()
        : RoundDriverWorld(2, {}, [](Configs& configs) { configs = {at_two_addresses(configs[0])}; }) {}
    /// Returns how long the acquisition on new connections takes that must succeed.
    Clock::duration acquires(const std::string& owner) {
        for (std::size_t server = 0; server < 2; ++server)
            network.server(server).close_connections(network.clock().now());
        network.pass(2s);
        const auto start = network.clock().now();
        const auto tally = acquire(owner);
        EXPECT_EQ(tally[0].vote, Vote::granted) << tally[0].cause.message() << ", " << tally[0].detail;
        const auto took = network.clock().now() - start;
        (void)release(owner);
        return took;
    }
};

TEST_F(ANodeWithTwoAddresses, IsReachedInTheSameRoundIfTheFirstOneIsSilent) {
    network.server(0).unreachable = true;
    EXPECT_LT(acquires("A"), 20ms);
    EXPECT_LT(acquires("B"), 5ms) << "the address that has answered is tried first";
}

TEST_F(ANodeWithTwoAddresses, MovesOnIfTheOneThatHasAnsweredBecomesSilent) {
    EXPECT_LT(acquires("A"), 5ms);
    network.server(0).unreachable = true;
    EXPECT_LT(acquires("B"), 20ms);
    network.server(0).unreachable = false;
    network.server(1).unreachable = true;
    EXPECT_LT(acquires("C"), 20ms);
}

// The server at the first address accepts the connection, and is frozen.
TEST_F(ANodeWithTwoAddresses, DoesNotTryADeadAddressFirstAgain) {
    network.server(0).paused = true;
    EXPECT_EQ(acquire("A")[0].cause, Errc::timed_out);
    network.pass(2s);
    EXPECT_EQ(acquire("A")[0].vote, Vote::granted);
    EXPECT_EQ(holder(1), "A");
}

// The first address accepts after 30 ms. That is more than its share of node_timeout.
TEST_F(ANodeWithTwoAddresses, IsReachedByALaterRoundIfTheFirstOneIsSlow) {
    network.server(1).unreachable = true;
    const auto accept_late = [this] {
        network.server(0).unreachable = true;
        network.clock().after(30ms, [this] { network.server(0).unreachable = false; });
    };
    accept_late();
    EXPECT_EQ(acquire("A")[0].cause, Errc::timed_out);
    for (const auto* const owner : {"B", "C"}) {
        network.clock().after(2s, accept_late);
        EXPECT_LT(acquires(owner), 40ms);
    }
}

// The Sentinels that have named these addresses are not to blame.
TEST_F(ANodeWithTwoAddresses, NamesTheMasterThatRefuses) {
    for (const std::size_t server : {0U, 1U}) network.server(server).refuses = true;
    const auto tally = acquire("A");
    EXPECT_EQ(tally[0].cause, Errc::connection_failed);
    EXPECT_EQ(
        tally[0].detail,
        "the Sentinels answer, and the master that they name, 127.0.0.1:2, does not: Connection refused");
}

TEST_F(ANodeWithTwoAddresses, NamesTheMasterThatIsSilent) {
    for (const std::size_t server : {0U, 1U}) network.server(server).unreachable = true;
    EXPECT_EQ(acquire("A")[0].detail,
              "while connecting: the Sentinels answer, and the master that they name, 127.0.0.1:2, does not");
}

TEST_F(ANodeWithTwoAddresses, TakesOneNodeTimeoutIfBothAreSilent) {
    for (const std::size_t server : {0U, 1U}) network.server(server).unreachable = true;
    for (int round = 0; round < 4; ++round) {
        EXPECT_EQ(time_taken(network, [&] { EXPECT_EQ(acquire("A")[0].cause, Errc::timed_out); }), 50ms);
        network.pass(2s);
    }
}

// ---- Batches

TEST(RoundDriver, ABatchDoesNotSendAnExtensionThatCouldOvertakeItsSet) {
    RoundDriverWorld world{1};
    auto& server = world.network.server(0);
    server.redis->execute({"SET", "r", "B"}, {});
    EXPECT_EQ(world.extend("B")[0].vote, Vote::granted);
    server.paused = true;
    (void)world.acquire("A");
    server.paused = false;  // for new connections: the SET is still pending
    const auto tallies = world.ask({world.request(extension, "A"), world.request(extension, "B")});
    EXPECT_EQ(tallies[0][0].cause, Errc::not_asked);
    EXPECT_EQ(tallies[0][0].detail, detail::earlier_is_pending);
    EXPECT_FALSE(tallies[0][0].sent);
    EXPECT_EQ(tallies[1][0].vote, Vote::granted);
}

TEST(RoundDriver, ABatchOfOnlySuchExtensionsAsksNoNode) {
    RoundDriverWorld world{1};
    (void)world.acquire("0");
    world.network.server(0).paused = true;
    (void)world.acquire("A");
    const std::vector both(2, world.request(extension, "A"));
    for (const auto& tally : world.ask(both)) EXPECT_EQ(tally[0].cause, Errc::not_asked);
    EXPECT_EQ(world.network.server(0).connections(), 1u);
}

TEST(RoundDriver, ABatchNotifiesTheObserverOfEachRequest) {
    RoundDriverWorld world{3};
    (void)world.acquire("A");
    world.network.server(1).refuses = true;
    world.network.server(1).close_connections(world.network.clock().now());
    world.network.pass(1s);
    world.log.lines.clear();
    (void)world.ask({world.request(extension, "A"), world.request(extension, "B")});
    const auto why = make_error_code(Errc::connection_failed).message();
    EXPECT_THAT(world.log.lines, ElementsAre("n1 disconnected: " + why + ", closed by the server",
                                             "n1 connecting", "n1 backing off: " + why + ", 10 ms",
                                             "n1 disconnected: " + why + ", Connection refused",
                                             "round of A: 2 granted", "round of B: 0 granted"));
}

// B5. A connection remembers one pending SET.
TEST(RoundDriver, EachReleaseFollowsItsOwnSet) {
    RoundDriverWorld world{1};
    (void)world.extend("nobody");
    world.network.server(0).paused = true;
    const auto set = Verb::set_if_absent, release = Verb::compare_and_delete;
    (void)world.ask({world.request(set, "A"), world.request(set, "B")});
    for (const auto& tally : world.ask({world.request(release, "A"), world.request(release, "B")}))
        EXPECT_TRUE(tally[0].sent);
    world.network.resume(0);
    EXPECT_EQ(world.holder(0), "");
}

TEST(RoundDriver, RepliesAreReadAccordingToTheVerbOfTheirRequest) {
    RoundDriverWorld world{1};
    const auto tallies = world.ask(
        {world.request(Verb::compare_and_expire, "A"), world.request(Verb::set_if_absent, "A"),
         world.request(Verb::compare_and_expire, "A"), world.request(Verb::compare_and_delete, "A")});
    std::string votes;
    for (const auto& tally : tallies) votes += tally.granted() > 0 ? 'g' : tally.refused() > 0 ? 'r' : '?';
    EXPECT_EQ(votes, "rggg");
}

// ---- D8

TEST(RoundDriver, AServerBehindTwoNodesHasOneVote) {
    for (const std::size_t requests : {1U, 2U}) {
        RoundDriverWorld world{3, {.quarantine = 1h}};
        world.network.server(2).redis = world.network.server(0).redis;
        const std::vector batch(requests, world.request(extension, "A"));
        for (const auto& tally : world.ask(batch)) {
            EXPECT_EQ(tally[2].cause, Errc::same_server);
            EXPECT_EQ(tally[2].detail, "as 127.0.0.1:1");
            EXPECT_FALSE(tally[2].sent);
            EXPECT_NE(tally[0].cause, Errc::same_server) << "the first keeps its vote";
        }
        EXPECT_TRUE(world.release("A")[2].sent) << "the release is still sent to it";
    }
}

// A count also depends on the identity of the server. Two votes of one server would be worse, even without a
// quarantine.
TEST(RoundDriver, AServerBehindTwoNodesCountsOnceWithFencingAlone) {
    RoundDriverWorld world{3};
    world.network.server(2).redis = world.network.server(0).redis;
    const auto tally = world.ask({world.request(Verb::set_and_count, "A")}).front();
    EXPECT_EQ(tally.granted(), 2u);
    EXPECT_EQ(tally[2].cause, Errc::same_server);
    EXPECT_FALSE(tally[2].sent);
}

// Otherwise it could have the votes of two nodes.
TEST(RoundDriver, AServerThatHidesItsIdentityHasNoVoteWithFencing) {
    for (const std::string info : {"$17\r\nredis_version:7\r\n\r\n", "+OK\r\n", "$-1\r\n"}) {
        RoundDriverWorld world{1};
        world.network.server(0).answers["INFO"] = info;
        const auto report = world.ask({world.request(Verb::set_and_count, "A")}).front()[0];
        EXPECT_EQ(report.cause, Errc::unexpected_reply) << info;
        EXPECT_FALSE(report.sent);
        EXPECT_EQ(world.acquire("A")[0].vote, Vote::granted) << "a vote that needs no identity";
    }
}

// The server is reached at the address of another node, whose own server is gone.
TEST(RoundDriver, AServerVotesForAnotherNodeOnceItsFormerNodeIsGone) {
    RoundDriverWorld world{3};
    const auto count = [&](std::string_view owner) {
        return world.ask({world.request(Verb::set_and_count, owner)}).front();
    };
    auto& gone = world.network.server(0);
    auto& next = world.network.server(2);
    EXPECT_EQ(count("A").granted(), 3u);
    EXPECT_TRUE(world.release("A")[1].sent);
    gone.refuses = true;
    next.redis = gone.redis;
    for (auto* const server : {&gone, &next}) server->close_connections(world.network.clock().now());
    (void)count("B");          // finds that the connections were closed
    world.network.pass(1min);  // its key on node 1 has expired
    EXPECT_EQ(count("C")[2].vote, Vote::granted);
}

// ---- Broken connections

TEST(RoundDriver, AReleaseIsRepeatedOverASecondConnection) {
    RoundDriverWorld world{1};
    (void)world.acquire("A");
    auto& server = world.network.server(0);
    server.close_connections(world.network.clock().now());  // noticed only when something is written to it
    EXPECT_EQ(world.release("A")[0].vote, Vote::granted);
    EXPECT_EQ(server.connections(), 2u);
    EXPECT_EQ(world.holder(0), "");
}

// A server that has too many clients says so, and closes the connection before it has received a command.
TEST(RoundDriver, TheLastWordsOfAServerAreReported) {
    RoundDriverWorld world{1};
    world.network.server(0).last_words = too_many_clients;
    const auto report = world.acquire("A")[0];
    EXPECT_EQ(report.detail, "ERR max number of clients reached");
    EXPECT_EQ(report.cause, Errc::connection_failed);
    EXPECT_FALSE(report.sent);
}

// A7, D1.
TEST(RoundDriver, AnInvalidReplyIsNotCountedAndEndsTheConnection) {
    for (const std::string reply : {"+QUEUED\r\n", ":1\r\n", "+OK\r\n+OK\r\n", "OK\r\n", "*1\r\n+OK\r\n"}) {
        RoundDriverWorld world{1};
        (void)world.extend("A");
        auto& server = world.network.server(0);
        server.instead = reply;
        EXPECT_EQ(world.acquire("A")[0].cause, Errc::unexpected_reply) << reply;
        EXPECT_EQ(server.open_connections(), 0u);
        EXPECT_EQ(world.acquire("B")[0].vote, Vote::refused) << "the SET was carried out";
        EXPECT_EQ(server.connections(), 2u);
    }
}

TEST(RoundDriver, AReleaseIsRepeatedAfterAnInvalidReply) {
    RoundDriverWorld world{1};
    (void)world.acquire("A");
    world.network.server(0).instead = "+OK\r\n";
    EXPECT_EQ(world.release("A")[0].vote, Vote::granted) << "the first had deleted it";
    EXPECT_EQ(world.network.server(0).connections(), 2u);
}

// ---- Nodes in back-off

/// Rounds of extensions for a minute over three nodes. One of them does not accept connections.
struct OutageWorld : RoundDriverWorld {
    OutageWorld() : RoundDriverWorld(3) {}
    std::size_t connections_in_a_minute() {
        for (const auto end = network.clock().now() + 1min; network.clock().now() < end; network.pass(20ms))
            EXPECT_EQ(extend("A").refused(), 2u);
        return static_cast<std::size_t>(std::ranges::count(log.lines, "n0 connecting"));
    }
};
struct Outage : testing::Test, OutageWorld {};

TEST_F(Outage, ANodeIsProbedAboutOnceASecond) {
    for (const auto cause : {&MemoryServer::refuses, &MemoryServer::unreachable}) {
        OutageWorld world;
        world.network.server(0).*cause = true;
        EXPECT_LE(world.connections_in_a_minute(), 8U + 60U);
        world.log.lines.clear();
        EXPECT_GE(world.connections_in_a_minute(), 50U);
    }
}

TEST_F(Outage, AReplyResetsThePauses) {
    network.server(0).refuses = true;
    (void)connections_in_a_minute();
    network.server(0).refuses = false;
    for (const auto end = network.clock().now() + 1s; network.clock().now() < end; network.pass(5ms))
        (void)extend("A");
    EXPECT_EQ(extend("A")[0].vote, Vote::refused) << "the next probe has ended it";
    network.server(0).refuses = true;
    network.server(0).close_connections(network.clock().now());
    network.pass(1s);
    log.lines.clear();
    (void)extend("A");
    const auto why = make_error_code(Errc::connection_failed).message();
    EXPECT_THAT(log.lines, Contains("n0 backing off: " + why + ", 10 ms"));
}

TEST_F(Outage, ReportsWhyANodeIsLeftAlone) {
    network.server(0).refuses = true;
    (void)extend("A");
    const auto report = extend("A")[0];
    EXPECT_EQ(report.cause, Errc::backing_off);
    EXPECT_EQ(report.detail,
              "after: " + make_error_code(Errc::connection_failed).message() + ", Connection refused");
    EXPECT_FALSE(report.sent);
}

// Only the old connection may have failed. The reply to the release says whether the key is gone.
TEST_F(Outage, AReleaseWaitsForANewConnectionDuringABackOff) {
    network.server(0).refuses = true;
    (void)extend("A");
    network.server(0).refuses = false;
    network.server(0).latency = 5ms;
    ASSERT_EQ(extend("A")[0].cause, Errc::backing_off);
    network.server(0).redis->execute({"SET", "r", "A"}, {});
    EXPECT_EQ(release("A")[0].vote, Vote::granted);
    EXPECT_EQ(holder(0), "");
}

TEST_F(Outage, OneProbeIsUnderWayAtATime) {
    network.server(0).unreachable = true;
    network.server(1).redis->execute({"SET", "r", "B"}, {});
    (void)extend("A");
    network.pass(20ms);
    EXPECT_EQ(extend("A")[0].cause, Errc::not_awaited) << "the probe is begun";
    const auto start = network.clock().now();
    EXPECT_EQ(acquire("A")[0].cause, Errc::backing_off) << "refused elsewhere, and no probe is due";
    EXPECT_EQ(network.clock().now() - start, 1ms);
}

TEST_F(Outage, ALateReplyEndsItAfterThePause) {
    (void)extend("A");
    network.server(0).paused = true;
    EXPECT_EQ(acquire("A")[0].cause, Errc::timed_out);
    network.resume(0);
    EXPECT_EQ(extend("A")[0].cause, Errc::backing_off);
    network.pass(10ms);
    EXPECT_EQ(extend("A")[0].vote, Vote::granted);
    EXPECT_EQ(network.server(0).connections(), 1u) << "over the same connection";
}

TEST_F(Outage, ANodeThatDecidesIsAskedAtOnce) {
    for (const auto node : {0U, 1U}) network.server(node).refuses = true;
    (void)extend("A");
    for (const auto node : {0U, 1U}) network.server(node).refuses = false;
    EXPECT_GE(extend("A").refused(), 2u) << "the vote hangs on it, so that it is asked at once";
}

// D7. If the report said `backing_off`, the caller would retry until its deadline.
TEST(RoundDriver, APermanentCauseIsReportedForANodeThatIsLeftAlone) {
    RoundDriverWorld world{3};
    world.network.server(0).instead = "-NOAUTH Authentication required.\r\n";
    EXPECT_EQ(world.acquire("A")[0].cause, Errc::authentication_failed);
    const auto report = world.extend("A")[0];
    EXPECT_EQ(report.cause, Errc::authentication_failed);
    EXPECT_EQ(report.detail, "after: authentication failed, NOAUTH Authentication required.");
    EXPECT_FALSE(report.sent);
}

}  // namespace
}  // namespace redlock::test::round_driver_test
