// The rounds of an event loop share one connection to each node.
#include "shared_world.hpp"

#include "redis/listener.hpp"
#include "round/write_choice.hpp"

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace redlock::test::shared_connections_test {
namespace {

using testing::Pair;

using NewSharedConnections = SharedWorld;

struct SharedConnections : SharedWorld {
    void SetUp() override { connect(); }

    MemoryServer& first_server = network.server(0);
    MemoryServer& second_server = network.server(1);
};

/// Makes a round that the test advances itself.
struct Nobody final : RoundDriver::Maker {
    void wake() noexcept override {}
} nobody;

TEST_F(NewSharedConnections, ManyRoundsUseOneConnectionToEachNode) {
    for (int i = 0; i < 100; ++i) acquire("r" + std::to_string(i), "owner " + std::to_string(i));
    run();
    for (int i = 0; i < 100; ++i) {
        EXPECT_GE(rounds[static_cast<std::size_t>(i)]->tally().granted(), 2u);
        EXPECT_EQ(value(0, "r" + std::to_string(i)), "owner " + std::to_string(i));
    }
    for (std::size_t node = 0; node < size; ++node) EXPECT_EQ(network.server(node).connections(), 1u);
}

// D1.
TEST_F(SharedConnections, EachRoundGetsTheReplyToItsOwnCommand) {
    for (std::size_t node = 0; node < size; ++node)
        for (int i = 0; i < 60; i += 3)
            network.server(node).redis->execute({"SET", "r" + std::to_string(i), "another"}, {});
    std::vector<SharedRound*> begun;
    for (int i = 0; i < 60; ++i) begun.push_back(&acquire("r" + std::to_string(i), "A"));
    run();
    for (std::size_t i = 0; i < begun.size(); ++i) {
        const auto& tally = begun[i]->tally();
        EXPECT_EQ(tally.granted() > 0, i % 3 != 0) << i;
        EXPECT_EQ(tally.refused() > 0, i % 3 == 0) << i;
    }
}

TEST_F(SharedConnections, ARoundThatLeavesLeavesItsReplyBehind) {
    loop.forget(acquire("r", "A"));
    rounds.pop_back();
    auto& later = acquire("r", "B");
    run();
    EXPECT_GE(later.tally().refused(), 2u) << "it was written behind the SET of A";
    EXPECT_EQ(value(0, "r"), "A");
    release("r", "A");
    run();
    EXPECT_EQ(value(0, "r"), "");
}

// Each server sends a reply to the first of two commands, and the beginning of a reply to the second.
TEST_F(SharedConnections, ARoundThatLeavesAfterOneOfTwoRepliesLeavesTheOtherBehind) {
    for (std::size_t node = 0; node < size; ++node)
        network.server(node).refuses_command = [count = 0](const auto&) mutable {
            return ++count == 2 ? "$1\r\n" : "";
        };
    const std::vector<std::string> resource{"r"};
    const Request extension{
        .command = {.verb = Verb::compare_and_expire, .resources = resource, .owner = "A", .ttl = 10s}};
    const std::array requests{extension, extension};
    std::array tallies{Tally{names}, Tally{names}};
    const RoundLimits limits{};
    {
        RoundDriver round{group, nobody, requests, limits, tallies};
        (void)round.advance();
        run_for(5ms);
        EXPECT_EQ(tallies[0].refused(), size);
        detail::LateReplies late;
        group.add_late_replies(late);
        EXPECT_FALSE(late.any);
    }
    detail::LateReplies late;
    group.add_late_replies(late);
    EXPECT_TRUE(late.any);
}

// D1, D4. The server executes the first of two commands that it got in one write, and freezes. The reply to
// the second one comes while a release waits behind it for its own reply.
TEST_F(SharedConnections, AServerThatFreezesBetweenTwoCommandsOfAWriteFailsTheSecondOnly) {
    network.server(2).redis->execute({"SET", "second", "another"},
                                     {});  // the vote of the frozen server decides
    second_server.pauses_after = 1;
    const auto writes = second_server.writes;
    const auto start = network.clock().now();
    const auto& first = acquire("first", "A");
    const auto& second = acquire("second", "B");
    run();
    EXPECT_EQ(second_server.writes, writes + 1);
    EXPECT_LE(network.clock().now(), start + 50ms) << "one node_timeout";
    EXPECT_EQ(first.tally()[1].vote, Vote::granted);
    EXPECT_EQ(second.tally()[1].vote, Vote::unknown);
    EXPECT_EQ(second.tally()[1].cause, Errc::timed_out);
    EXPECT_TRUE(second.tally()[1].sent) << "so a release must go to this node";

    network.server(2).paused = true;  // otherwise the release would not wait for the frozen server
    const auto& released = release("second", "B");
    turn(network.clock().now() + 1ms);
    EXPECT_THAT(second_server.log(), ElementsAre("1 SET"));
    second_server.instead = "$-1\r\n";  // a refusal, unlike the reply to the release
    network.resume(1);
    run_for(5ms);
    EXPECT_FALSE(released.over());
    network.resume(2);
    run();
    EXPECT_EQ(released.tally()[1].vote, Vote::granted);
    EXPECT_THAT(second_server.log(), ElementsAre("1 SET", "1 SET", "1 EVALSHA"));
    EXPECT_EQ(value(1, "first"), "A");
    EXPECT_EQ(value(1, "second"), "");
}

// The server begins a long script between two of the commands that it got in one write.
TEST_F(SharedConnections, ARefusalForNowTakesNoVoteFromTheOtherCommandsOfItsWrite) {
    second_server.refuses_command = [count = 0](const auto&) mutable {
        return ++count == 2 ? "-BUSY Redis is busy running a script.\r\n" : "";
    };
    const auto writes = second_server.writes;
    const std::array begun{&acquire("first", "A"), &acquire("second", "B"), &acquire("third", "C")};
    run();
    EXPECT_EQ(second_server.writes, writes + 1);
    EXPECT_EQ(begun[0]->tally()[1].vote, Vote::granted);
    EXPECT_EQ(begun[1]->tally()[1].cause, Errc::server_busy);
    EXPECT_EQ(begun[2]->tally()[1].vote, Vote::granted);
    EXPECT_EQ(second_server.connections(), 1U);
}

// B5: a release is written behind its SET, even if this was given up.
TEST_F(SharedConnections, AReleaseFollowsItsSetOnTheDrainingConnection) {
    second_server.paused = true;
    const auto& given_up = begin(Verb::set_if_absent, "r", "A");
    const auto& query = begin(Verb::query, "r", "A");
    run();
    EXPECT_EQ(query.tally()[1].cause, Errc::timed_out);
    EXPECT_EQ(given_up.tally()[1].vote, Vote::unknown);
    release("r", "A");
    run();
    reconnect(second_server);
    acquire("another", "B");
    run();
    EXPECT_EQ(second_server.connections(), 2u) << "nothing new on the connection that drains";
    EXPECT_EQ(value(1, "another"), "B");
    second_server.forget_log();
    network.resume(1);
    EXPECT_THAT(second_server.log(), ElementsAre("1 SET", "1 EVAL", "1 EVALSHA"));
    EXPECT_EQ(value(1, "r"), "");
}

// The first connection breaks when the release is written, and the second one before it is established.
TEST_F(NewSharedConnections, AReleaseEndsIfItsSecondConnectionBreaks) {
    auto& server = network.server(1);
    server.paused = true;  // does not answer the handshake
    acquire("r", "A");
    run();
    server.close_connections(network.clock().now());
    server.unreachable = true;
    const auto& round = release("r", "A");
    server.unreachable = false;
    server.refuses = true;
    run();
    EXPECT_EQ(round.tally().granted(), 2U);
    EXPECT_EQ(round.tally()[1].cause, Errc::connection_failed);
}

// ---- The life of a connection

// The node is silent, and the releases would become more and more.
// The servers are frozen, and each group tries once a second whether they run again.
TEST_F(NewSharedConnections, GroupsHaveABoundedNumberOfDrainingConnectionsTogether) {
    const auto configs = for_one_process(network.configs());
    std::deque<NodeGroup> groups;
    for (int i = 0; i < 8; ++i)
        groups.emplace_back(configs, NodesOptions{.round = Round::all_at_once}, network);
    network.server(1).paused = network.server(2).paused = true;
    const std::vector<std::string> resource{"r"};
    const Request request{
        .command = {.verb = Verb::set_if_absent, .resources = resource, .owner = "A", .ttl = 10s}};
    for (int i = 0; i < 20; ++i) {
        for (auto& each : groups) {
            support::RoundLoop of_group{each, network.clock()};
            SharedRound round{each, names, request};
            of_group.begin(round);
            while (!round.over())
                of_group.turn(
                    [&](auto entries, auto until) { network.wait(entries, network.clock().now(), until); });
        }
        network.pass(1100ms);
    }
    EXPECT_GE(network.server(1).connections(), 120u) << "or this shows nothing";
    EXPECT_LE(network.server(1).open_connections(), max_draining + 2 * groups.size());
    groups.clear();
    EXPECT_EQ(configs[1].server->draining(), 0U);
}

TEST_F(SharedConnections, AReleaseOnOneOfTooManyDrainingConnectionsIsNotSentAgain) {
    for (int i = 0; i < 80; ++i) {
        second_server.paused = true;
        const auto owner = std::to_string(i);
        begin(Verb::set_if_absent, "r", owner, {}, 1h);
        begin(Verb::compare_and_delete, "r", owner, {}, 1h);
        run();
        reconnect(second_server);
    }
    EXPECT_GE(second_server.connections(), 80U);
    EXPECT_LE(second_server.open_connections(), 66U);
    EXPECT_THAT(second_server.log(), Each(Not(HasSubstr("EVAL"))));
}

// As with own connections: if the release is answered late, the next probe would come after another pause.
TEST_F(SharedConnections, AReleaseIsNoProbe) {
    second_server.paused = true;
    begin(Verb::query, "r", "A");
    run();
    network.pass(2s);
    release("r", "A");
    const auto& probe = begin(Verb::query, "r", "A");
    run();
    EXPECT_NE(probe.tally()[1].cause, Errc::backing_off);
}

// The failure was that of another group. In this group, the connection is in order, and goes on to be used.
TEST_F(SharedConnections, ALateReplyShowsThatANodeAnswersThatHasFailedOnAnotherGroup) {
    acquire("r", "A");
    settle();
    loop.forget(begin(Verb::compare_and_delete, "r", "A", {.awaits_answers = false}));
    rounds.pop_back();
    auto& node = *group.nodes()[1];
    node.config().failed({Errc::timed_out, "on another group"}, network.clock().now(), network.entropy());
    network.pass(5ms);
    EXPECT_FALSE(node.trusted(network.clock().now())) << "nobody has read the reply";
    run_for(1s);
    EXPECT_TRUE(node.trusted(network.clock().now()));
    EXPECT_EQ(second_server.connections(), 1U);
}

// No round uses the connection any more when the server answers.
TEST_F(SharedConnections, ANodeThatAnswersHandshakesWithBusyIsProbedAboutOnceASecond) {
    second_server.latency = 3ms;
    second_server.answers[""] = "-BUSY Redis is busy running a script.\r\n";
    second_server.close_connections(network.clock().now());
    const auto before = second_server.connections();
    for (int i = 0; i < 1000; ++i) {
        acquire("r", "A");
        run();
        rounds.clear();
        run_for(10ms);
    }
    EXPECT_LE(second_server.connections() - before, 30U) << "in ten seconds";
}

TEST_F(NewSharedConnections, AConnectionThatIsInTheMakingForASecondIsReplaced) {
    auto& server = network.server(1);
    server.paused = true;  // it accepts the connection, and does not answer the handshake
    begin(Verb::query, "r", "A");
    run();
    network.pass(200ms);
    begin(Verb::query, "r", "A");
    run();
    EXPECT_EQ(server.connections(), 1u) << "a timeout is not enough";
    network.pass(1s);
    begin(Verb::query, "r", "A");
    run();
    EXPECT_EQ(server.connections(), 2u);
    network.resume(1);
    run_for(5ms);
    EXPECT_EQ(server.open_connections(), 1u);
}

TEST_F(SharedConnections, AConnectionThatHasDrainedServesAgain) {
    second_server.paused = true;
    begin(Verb::query, "r", "A");
    run();
    network.resume(1);
    run_for(5ms);
    network.pass(1s);
    const auto& later = begin(Verb::query, "r", "A");
    run();
    EXPECT_EQ(later.tally()[1].vote, Vote::granted);
    EXPECT_EQ(second_server.connections(), 1u);
}

TEST_F(SharedConnections, AreUsedAgainIfTheirRepliesHaveComeBetweenTheRounds) {
    begin(Verb::query, "r", "A");
    run();
    second_server.paused = true;
    begin(Verb::query, "r", "A");
    run();
    network.resume(1);
    network.pass(2s);
    begin(Verb::query, "r", "A");
    run();
    EXPECT_EQ(second_server.connections(), 1U);
}

TEST_F(SharedConnections, KnowTheRequestsOfARoundThatMustNotOvertakeASet) {
    second_server.paused = true;
    acquire("r", "A");
    begin(Verb::query, "r", "A");
    run();
    const std::vector<std::string> resources{"r"};
    EXPECT_FALSE(group.nodes()[1]->could_overtake({.resources = resources, .owner = "B"}));
    EXPECT_TRUE(group.nodes()[1]->could_overtake({.resources = resources, .owner = "A"}));
}

// ---- Collecting and its bounds

struct WriteLog : Observer {
    void wrote(std::string_view, std::size_t commands, std::chrono::nanoseconds waited) noexcept override {
        writes.emplace_back(commands, waited);
    }
    void disconnected(std::string_view, std::error_code cause, std::string_view) noexcept override {
        ends.push_back(cause);
    }
    std::vector<std::pair<std::size_t, std::chrono::nanoseconds>> writes;
    std::vector<std::error_code> ends;  // the causes for which connections have ended
};

struct ObservedSharedConnections : private WriteLog, SharedWorld {
    ObservedSharedConnections() : SharedWorld({}, this) {}
    void release_on_first(std::string_view resource) {
        const std::vector<std::string> resources{std::string{resource}};
        begin({.command = {.verb = Verb::compare_and_delete, .resources = resources, .owner = "A"},
               .to = NodeSet{0b001}});
        write();
    }
    void write() { (void)group.write_collected(network.clock().now()); }
    using WriteLog::ends;
    using WriteLog::writes;
};

// The node owes the reply to the first command when the others come.
TEST_F(ObservedSharedConnections, ReportTheirWrites) {
    connect();
    writes.clear();
    network.server(0).paused = true;
    release_on_first("r0");
    release_on_first("r1");
    network.pass(300us);
    release_on_first("r2");
    network.pass(detail::max_collecting);
    write();
    network.resume(0);
    run();
    const auto waited = detail::max_collecting + 300us;
    EXPECT_THAT(writes, ElementsAre(Pair(1U, 0ns), Pair(2U, waited)));
}

// The full buffer is written at once. The last command comes later, and is the first of the next write.
TEST_F(ObservedSharedConnections, CollectAnewAfterAFullBuffer) {
    connect();
    writes.clear();
    network.server(0).paused = true;
    for (std::size_t i = 0; i <= detail::max_collected_commands; ++i)
        release_on_first("r" + std::to_string(i));
    network.pass(20ms);
    release_on_first("last");
    network.pass(detail::max_collecting);
    write();
    network.resume(0);
    run();
    EXPECT_THAT(writes, ElementsAre(Pair(1U, 0ns), Pair(detail::max_collected_commands + 1,
                                                        Clock::duration{detail::max_collecting})));
}

TEST_F(ObservedSharedConnections, EndWithoutACauseWhenTheyHaveDrained) {
    connect();
    auto& server = network.server(1);
    server.paused = true;
    begin(Verb::query, "r", "A");
    run();
    reconnect(server);
    network.resume(1);
    run_for(5ms);
    acquire("another", "B");
    run();
    EXPECT_EQ(server.open_connections(), 1U);
    EXPECT_THAT(ends, ElementsAre(std::error_code{}));
}

TEST_F(SharedConnections, AReplyLetsTheCollectedCommandsGo) {
    acquire("r0", "A");
    (void)group.write_collected(network.clock().now());
    first_server.paused = true;
    acquire("r1", "A");
    (void)group.write_collected(network.clock().now());
    network.pass(detail::max_collecting);
    (void)group.write_collected(network.clock().now());
    acquire("r2", "A");
    turn(network.clock().now());  // reads the reply for r0
    (void)group.write_collected(network.clock().now());
    first_server.resume(network.clock().now());
    EXPECT_EQ(first_server.log().size(), 3u);
}

// It mostly is the home node of the waiters. A waiter that a release wakes there finds the others free.
TEST_F(SharedConnections, TheFirstNodeIsWrittenLast) {
    acquire("r", "A");
    (void)group.write_collected(network.clock().now());
    EXPECT_GT(first_server.executed().back().number, second_server.executed().back().number);
    EXPECT_GT(second_server.executed().back().number, network.server(2).executed().back().number);
}

TEST_F(SharedConnections, AWriteHasABoundedNumberOfCommands) {
    acquire("r", "A");
    (void)group.write_collected(network.clock().now());
    for (std::size_t i = 1; i < detail::max_collected_commands; ++i) acquire("r" + std::to_string(i), "A");
    EXPECT_EQ(first_server.log().size(), 1u);
    acquire("last", "A");
    EXPECT_EQ(first_server.log().size(), 1 + detail::max_collected_commands);
}

TEST_F(SharedConnections, AWriteHasABoundedNumberOfBytes) {
    acquire("r", "A");
    (void)group.write_collected(network.clock().now());
    const std::string longish(1000, 'r');
    std::size_t bytes = 0;
    for (int i = 0; first_server.log().size() == 1; ++i, bytes += longish.size())
        acquire(longish + std::to_string(i), "A");
    EXPECT_THAT(bytes, IsBetween(detail::max_collected_bytes / 2, detail::max_collected_bytes));
}

TEST_F(SharedConnections, ACommandBeyondThePendingOnesWaitsAndReportsIt) {
    first_server.paused = true;
    const auto& first = begin(Verb::query, "r", "A");
    for (std::size_t i = 1; i < detail::max_shared_pending; ++i) begin(Verb::query, "r", "A");
    const auto& waits = begin(Verb::query, "r", "A");
    const auto& limited = begin(Verb::query, "r", "A", {.deadline = network.clock().now() + 20ms});
    run_for(30ms);
    EXPECT_EQ(limited.tally()[0].cause, Errc::deadline);
    EXPECT_FALSE(waits.over());
    EXPECT_FALSE(waits.tally()[0].sent);
    run();
    EXPECT_EQ(first.tally()[0].cause, Errc::timed_out);
    EXPECT_EQ(waits.tally()[0].cause, Errc::not_asked);
    EXPECT_EQ(waits.tally()[0].detail, "its connection was not free for another command");
}

TEST_F(SharedConnections, ANodeThatHangsWithACommandThatHasWaitedHasFailed) {
    first_server.paused = true;
    for (std::size_t i = 0; i < detail::max_shared_pending; ++i) begin(Verb::query, "r", "A");
    const auto& waits = begin(Verb::query, "r", "A");
    (void)group.write_collected(network.clock().now());
    network.resume(0);
    first_server.paused = true;
    run();
    EXPECT_TRUE(waits.tally()[0].sent);
    EXPECT_EQ(waits.tally()[0].cause, Errc::timed_out);
    const auto& next = begin(Verb::query, "r", "A");
    run();
    EXPECT_EQ(next.tally()[0].cause, Errc::backing_off);
}

TEST_F(SharedConnections, ACommandThatHasWaitedIsWrittenWhenThereIsRoom) {
    first_server.paused = true;
    std::vector<SharedRound*> begun;
    for (std::size_t i = 0; i < detail::max_shared_pending + 50; ++i)
        begun.push_back(&begin(Verb::query, "r", "A"));
    (void)group.write_collected(network.clock().now());
    first_server.resume(network.clock().now());
    run();
    for (const auto* const round : begun) EXPECT_EQ(round->tally()[0].vote, Vote::granted);
}

// D1. The reply comes before the command is written.
TEST_F(SharedConnections, AReplyToNothingIsNotTheReplyToACollectedCommand) {
    first_server.latency = 10ms;
    first_server.instead = "+OK\r\n+OK\r\n";
    acquire("r0", "A");
    (void)group.write_collected(network.clock().now());
    run_for(9500us);
    const auto& second = acquire("r1", "A");
    run();
    EXPECT_EQ(second.tally()[0].vote, Vote::unknown);
    EXPECT_EQ(second.tally()[0].cause, Errc::unexpected_reply);
}

// A read takes a part of the replies. They have come in time, but the process was suspended.
TEST_F(SharedConnections, AllRepliesAreReadBeforeTheirNodeIsJudged) {
    acquire("r", std::string(1000, 'A'));
    begin(Verb::query, "r", "B");  // so that the servers know the script, and get all commands in one write
    settle();
    for (int i = 0; i < 100; ++i) begin(Verb::query, "r", "B");
    (void)group.write_collected(network.clock().now());
    network.pass(500ms);
    const auto& next = begin(Verb::query, "r", "B");
    run();
    EXPECT_EQ(next.tally()[0].vote, Vote::granted) << next.tally()[0].detail;
    for (std::size_t node = 0; node < size; ++node) EXPECT_EQ(network.server(node).connections(), 1U);
}

// The server takes a part of the bytes. Then the process is suspended before it writes the rest.
TEST_F(SharedConnections, ANodeIsNotJudgedByCommandsThatItCouldNotGet) {
    for (std::size_t node = 0; node < size; ++node) network.server(node).takes_at_once = 10;
    acquire("r", "A");
    (void)group.write_collected(network.clock().now());
    network.pass(500ms);
    for (std::size_t node = 0; node < size; ++node) network.server(node).takes_at_once = 65'536;
    const auto& next = begin(Verb::query, "r", "A");
    run();
    EXPECT_EQ(next.tally()[0].vote, Vote::granted) << next.tally()[0].detail;
}

// Otherwise each round would be slower than the one before.
TEST_F(ObservedSharedConnections, AreForgottenWhenTheyAreBrokenAndUnused) {
    for (std::size_t node = 0; node < size; ++node) network.server(node).refuses = true;
    for (int i = 0; i < 100; ++i) acquire("r" + std::to_string(i), "A");  // in one turn of the loop
    EXPECT_GE(ends.size(), 99 * quorum(size));
}

// Each of them leaves the connection while the node lets the others continue. The last six wait until they
// may be written.
TEST_F(SharedConnections, AllCommandsFailWithTheirConnection) {
    first_server.paused = true;
    std::vector<const SharedRound*> begun;
    for (std::size_t i = 0; i < detail::max_shared_pending + 6; ++i)
        begun.push_back(&begin(Verb::query, "r", "A"));
    (void)group.write_collected(network.clock().now());
    first_server.close_connections(network.clock().now());
    run();
    for (const auto* const round : begun) EXPECT_EQ(round->tally()[0].cause, Errc::connection_failed);
}

TEST_F(SharedConnections, TheDestructorOfTheNodesWritesCollectedReleases) {
    acquire("r", "A");
    settle();
    acquire("another", "A");
    (void)group.write_collected(network.clock().now());
    begin(Verb::compare_and_delete, "r", "A", {.awaits_answers = false});
    rounds.clear();
    EXPECT_EQ(value(0, "r"), "A");
    group.~NodeGroup();
    EXPECT_EQ(value(0, "r"), "");
    new (&group) NodeGroup{network.configs(), {}, network};
}

/// A node with two addresses, and a server at each. The addresses are found like those of a master.
struct ASharedNodeWithTwoAddresses : SharedWorld {
    ASharedNodeWithTwoAddresses() : SharedWorld({at_two_addresses(MemoryNetwork{1}.configs()[0])}) {}
};

// While rounds share connections, only listeners use the other ones, so no round would leave the address.
TEST_F(ASharedNodeWithTwoAddresses, LeavesTheAddressOfAListenerThatCouldNotConnect) {
    network.server(0).unreachable = true;
    auto& pool = *group.listeners()[0];
    auto first = pool.check_out(network.clock().now(), false);
    ASSERT_NE(first, nullptr);
    first->connection().fail(Errc::timed_out, "while it was to listen");
    pool.drop(std::move(first));
    const auto second = pool.check_out(network.clock().now(), false);
    ASSERT_NE(second, nullptr);
    for (int i = 0; i < 10 && !second->listens(); ++i) {
        network.pass(1ms);
        second->advance();
    }
    EXPECT_TRUE(second->listens());
}

// ---- The users of a connection

/// A round that waits until it may write on the connection of a node, and may leave it when it is called.
class WaitingUser final : public ConnectionUser, detail::NotCopied {
public:
    WaitingUser(Node& node, Clock& clock) : node_(node), clock_(clock) {
        const std::vector<std::string> resources{"r"};
        joined_ =
            node_.join({.verb = Verb::query, .resources = resources, .owner = "A"}, clock_.now(), false);
        joined_.connection->wait_to_write(*this);
    }
    ~WaitingUser() { leave(); }

    void leave() {
        if (joined_.connection) joined_.connection->leave(*this);
        joined_.connection = nullptr;
    }
    bool on_progress(std::size_t, Clock::time_point) noexcept override {
        ++calls;
        if (breaks) breaks->fail(Errc::connection_failed, {});
        if (leaves) leaves->leave();
        return true;  // also after it has left this connection, because it may wait on another one now
    }

    Link& connection() const { return *joined_.connection; }

    WaitingUser* leaves = nullptr;  // the user that leaves when this one is called
    Link* breaks = nullptr;         // the connection that breaks then
    int calls = 0;

private:
    Node& node_;
    Clock& clock_;
    JoinedLink joined_{};
};

struct UsersOfASharedConnection : testing::Test {
    /// Lets the server answer, and calls the users that wait.
    void progress() {
        network.pass(1ms);
        std::vector<PollEntry> entries;
        node.append_poll_entries(entries, Node::Polled::all);
        for (const auto& entry : entries) node.take_ready(entry.fd, network.clock().now());
    }

    MemoryNetwork network{1};
    Node node{network.configs().front(), network, {}};
    WaitingUser first{node, network.clock()};
    WaitingUser second{node, network.clock()};
    WaitingUser third{node, network.clock()};
};

TEST_F(UsersOfASharedConnection, AreCalledWhileTheyWait) {
    for (int i = 1; i <= 3; ++i) {
        progress();
        for (const auto* const it : {&first, &second, &third}) EXPECT_EQ(it->calls, i);
    }
}

TEST_F(UsersOfASharedConnection, AreNotCalledAfterTheyHaveLeftWhenTheyWereCalled) {
    first.leaves = &first;
    third.leaves = &third;
    for (int i = 1; i <= 3; ++i) {
        progress();
        EXPECT_EQ(first.calls, 1);
        EXPECT_EQ(second.calls, i);
        EXPECT_EQ(third.calls, 1);
    }
}

TEST_F(UsersOfASharedConnection, AreNotCalledAfterTheyHaveLeftWhenAnotherWasCalled) {
    first.leaves = &second;
    for (int i = 1; i <= 3; ++i) {
        progress();
        EXPECT_EQ(first.calls, i);
        EXPECT_EQ(second.calls, 0);
        EXPECT_EQ(third.calls, i);
    }
}

TEST_F(UsersOfASharedConnection, AreCalledAtOnceIfAUserOfALaterConnectionBreaksTheirs) {
    first.connection().start_draining(network.clock().now());
    WaitingUser later{node, network.clock()};
    for (auto* const it : {&first, &second, &third, &later}) it->leaves = it;
    later.breaks = &first.connection();
    later.connection().fail(Errc::connection_failed, {});
    (void)node.write_collected(network.clock().now());
    for (const auto* const it : {&first, &second, &third, &later}) EXPECT_EQ(it->calls, 1);
}

}  // namespace
}  // namespace redlock::test::shared_connections_test
