// A release that a node may not have received when its connection breaks, although the round of the release
// is over. It is sent again on another connection.
#include "memory_loop_world.hpp"
#include "round_driver_world.hpp"
#include "shared_world.hpp"

#include <redlock/lock.hpp>
#include <redlock/query.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "round/hash_slot.hpp"
#include "round/kept_releases.hpp"

namespace redlock::test::repeated_release_test {
namespace {

/// Breaks the connections of a server, which has not executed the commands that it has received.
void break_connections(MemoryNetwork& network, std::size_t node) {
    auto& server = network.server(node);
    server.close_connections(network.clock().now());
    server.resume(network.clock().now());
}

/// The server is busy with a script. The user may not call PING, and PING is answered as always.
void make_busy(MemoryServer& server) {
    server.answers = {{"PING", "-NOPERM this user has no permissions to run PING\r\n"},
                      {"", "-BUSY Redis is busy running a script.\r\n"}};
}

constexpr std::array refusals{"BUSY Redis is busy running a script.",
                              "LOADING Redis is loading its data.",
                              "NOREPLICAS Not enough good replicas to write.",
                              "MISCONF Redis is configured to save RDB snapshots",
                              "TRYAGAIN Multiple keys request during rehashing of slot",
                              "MASTERDOWN Link with MASTER is down",
                              "CLUSTERDOWN The cluster is down",
                              "OOM command not allowed",
                              "READONLY You can't write against a read only replica.",
                              "ERR Connection refused"};

/// The server refuses scripts for now, and so releases, with this error. Its connections are in order.
void refuse_releases(MemoryServer& server, const std::string& error) {
    for (const auto* const kind : {"EVAL", "EVALSHA"}) server.answers[kind] = "-" + error + "\r\n";
}

std::ptrdiff_t releases_sent_to(const MemoryServer& server) {
    return std::ranges::count_if(server.log(), [](auto& it) { return it.find(" EVAL") != it.npos; });
}

// ---- The rounds share connections

struct RepeatedRelease : SharedWorld {
    using SharedWorld::SharedWorld;

    void SetUp() override { connect(); }
    /// Acquires on all nodes.
    void acquire_and_settle() {
        acquire("r", "A");
        settle();
    }
    /// Node 1 then executes nothing any more.
    void acquire_and_silence() {
        acquire_and_settle();
        server.paused = true;
    }
    /// Begins a release, and ends its round at once.
    void release_without_waiting() {
        begin(Verb::compare_and_delete, "r", "A", {.awaits_answers = false});
        end_rounds();
    }
    /// Node 1 does not execute a release whose round has ended.
    void release_at_silent_server() {
        acquire_and_silence();
        release_without_waiting();
    }
    /// Node 1 is busy when the release comes.
    void acquire_and_release_at_busy_server() {
        acquire_and_settle();
        make_busy(server);
        release_without_waiting();
    }
    /// The first round probes the node if it is not trusted.
    void ask(int times = 2) {
        for (int i = 0; i < times; ++i) {
            begin(Verb::query, "another", "A");
            settle();
        }
    }
    void expect_to_be_sent_by_rounds() {
        server.answers.clear();
        network.pass(2s);
        ask();
        EXPECT_EQ(value(1, "r"), "");
    }
    void expect_to_be_sent_by_acquisitions() {
        for (int i = 0; i < 3; ++i) {
            network.pass(2s);
            acquire("more", "owner " + std::to_string(i));
            run();
            run_for(20ms);
        }
        EXPECT_EQ(value(1, "r"), "");
    }
    void expect_to_be_sent_by_the_destructor() {
        group.~NodeGroup();
        EXPECT_EQ(value(1, "r"), "");
        new (&group) NodeGroup{network.configs(), {}, network};
    }
    /// Acquires other resources during this time, which shows that the nodes answer.
    void acquire_for(Clock::duration span) {
        for (const auto end = network.clock().now() + span; network.clock().now() < end; run_for(20ms)) {
            acquire("another " + std::to_string(rounds.size()), "A");
            run();
        }
    }
    void end_rounds() {
        for (const auto& round : rounds) loop.forget(*round);
        rounds.clear();
        (void)group.write_collected(network.clock().now());
    }

    MemoryServer& server = network.server(1);
};

TEST_F(RepeatedRelease, IsSentAgainAfterAMajorityHasAnswered) {
    acquire_and_silence();
    const auto& round = release("r", "A");
    run();
    EXPECT_EQ(round.tally().granted(), 2U);
    EXPECT_EQ(round.tally()[1].vote, Vote::unknown);
    end_rounds();
    break_connections(network, 1);
    run_for(10ms);
    EXPECT_EQ(value(1, "r"), "");
}

// The second connection breaks before the server has answered its handshake.
TEST_F(RepeatedRelease, WaitsUntilTheNodeAnswersIfTheSecondConnectionBreaks) {
    release_at_silent_server();
    for (int i = 0; i < 5; ++i) {
        server.close_connections(network.clock().now());
        run_for(10ms);
        EXPECT_EQ(value(1, "r"), "A");
    }
    EXPECT_EQ(server.connections(), 2U);
    network.resume(1);
    expect_to_be_sent_by_rounds();
}

TEST_F(RepeatedRelease, IsSentAgainToAServerThatRefusedConnectionsMeanwhile) {
    release_at_silent_server();
    server.refuses = true;
    break_connections(network, 1);
    run_for(1s);
    const auto connections = server.connections();
    server.refuses = false;
    run_for(1s);
    EXPECT_EQ(server.connections(), connections) << "until a round asks the node again";
    ask();
    EXPECT_EQ(value(1, "r"), "");
}

TEST_F(RepeatedRelease, OfAServerThatRefusesConnectionsIsSentWhenItAcceptsThem) {
    acquire_and_silence();
    server.refuses = true;
    break_connections(network, 1);
    run_for(5ms);
    const auto& round = release("r", "A");
    run();
    EXPECT_EQ(round.tally().granted(), 2U);
    end_rounds();
    server.refuses = false;
    expect_to_be_sent_by_rounds();
}

// Its connection is found to be silent before its round gives it up.
TEST_F(RepeatedRelease, IsSentAgainIfItsRoundIsOverAfterItsConnection) {
    const auto check_silence = [this] {
        network.pass(60ms);
        (void)group.check_silence(network.clock().now());
    };
    acquire_and_settle();
    server.forget_connections();
    const auto& round = release("r", "A");
    (void)group.write_collected(network.clock().now());
    check_silence();
    run();
    EXPECT_EQ(round.tally()[1].cause, Errc::timed_out);
    check_silence();
    run_for(10ms);
    EXPECT_EQ(value(1, "r"), "");
}

// Otherwise the SET could be refused because of our own old key.
TEST_F(RepeatedRelease, PrecedesTheNextSetOfItsResource) {
    release_at_silent_server();
    server.forget_log();
    break_connections(network, 1);
    const auto& next = acquire("r", "B");
    run();
    run_for(10ms);
    acquire("r", "B");
    run();
    EXPECT_THAT(server.log(), ElementsAre("2 PING", "2 EVAL", "2 SET"));
    EXPECT_GE(next.tally().granted(), 2U);
}

TEST_F(RepeatedRelease, IsNotSentAgainIfItWasAnswered) {
    release_at_silent_server();
    network.resume(1);
    run_for(5ms);
    server.forget_log();
    break_connections(network, 1);
    run_for(10ms);
    acquire("another", "A");
    run();
    EXPECT_THAT(server.log(), ElementsAre("2 PING", "2 SET"));
}

// The current connection is not the one that has broken. Its rounds are over before the server answers.
TEST_F(RepeatedRelease, IsSentAgainAlthoughNoRoundWaitsForTheServer) {
    server.paused = true;
    acquire("r", "A");  // its connection is the only one for the release
    end_rounds();
    release_without_waiting();
    release("another", "A");
    run();
    server.paused = false;  // for a new connection
    network.pass(2s);
    ask();
    refuse_releases(server, "BUSY Redis is busy running a script.");
    network.resume(1);
    run_for(5ms);
    server.answers.clear();
    ASSERT_EQ(value(1, "r"), "A");
    server.latency = 10ms;
    expect_to_be_sent_by_acquisitions();
}

TEST_F(RepeatedRelease, IsSentAgainAlthoughNoRoundHasWaitedForItsRefusal) {
    acquire_and_settle();
    refuse_releases(server, "BUSY Redis is busy running a script.");
    release_without_waiting();
    run_for(5ms);
    server.answers.clear();
    server.latency = 10ms;
    ASSERT_EQ(value(1, "r"), "A");
    expect_to_be_sent_by_acquisitions();
}

// The release of a broken connection is sent again on the connection of a round, which breaks as well.
TEST_F(RepeatedRelease, ARoundLearnsAtOnceThatItsConnectionBreaks) {
    const std::vector<std::string> resources{"r"};
    const auto release_on_node_1 = [&](std::string_view owner, RoundLimits limits) -> auto& {
        return begin(
            {.command = {.verb = Verb::compare_and_delete, .resources = resources, .owner = owner}, .to = 2},
            std::move(limits));
    };
    server.paused = true;
    acquire("r", "A");
    release("another", "B");
    run();  // node 1 does not answer, so the connection drains
    const auto& round = release_on_node_1("B", {});
    turn(network.clock().now());
    release_on_node_1("A", {.awaits_answers = false});
    loop.forget(*rounds.back());
    rounds.pop_back();
    server.paused = false;
    server.latency = 1s;
    server.close_connections(network.clock().now());
    server.latency = 1ms;
    const auto before = network.clock().now();
    while (!round.over()) turn(before + 1s);
    EXPECT_LE(network.clock().now() - before, 10ms);
    EXPECT_EQ(round.tally()[1].vote, Vote::granted) << "the refusal of the second release";
}

/// The server answers each release with bytes after which the client has to disconnect.
void answer_releases_with_garbage(MemoryNetwork& network, std::size_t node) {
    for (const auto* const kind : {"EVAL", "EVALSHA"}) network.server(node).answers[kind] = "?\r\n";
}

// Its connection leads to a dead address, or its first packets were lost. New connections reach the node.
TEST_F(RepeatedRelease, IsSentAgainIfItsConnectionIsNeverMade) {
    begin(Verb::set_if_absent, "r", "A", {}, 10min);
    settle();
    server.close_connections(network.clock().now());
    run_for(5ms);
    server.swallows = true;
    release("r", "A");
    run();
    server.swallows = false;
    ASSERT_EQ(value(1, "r"), "A");
    acquire_for(5s);
    EXPECT_EQ(value(1, "r"), "");
}

// The connection goes on to be used, but one to a former master may lead to its replica for ever.
TEST_F(RepeatedRelease, IsSentAgainIfTheServerHasRefusedIt) {
    for (const std::string error : refusals)
        for (const bool waits : {true, false}) {
            acquire_and_settle();
            const auto connections = server.connections();
            refuse_releases(server, error);
            const auto& round = release("r", "A");
            if (waits) {
                run();
                EXPECT_EQ(round.tally()[1].vote, Vote::unknown) << error;
            }
            end_rounds();
            run_for(5ms);
            ASSERT_EQ(value(1, "r"), "A");
            server.answers.clear();
            network.pass(2s);
            ask();
            EXPECT_EQ(value(1, "r"), "") << error << (waits ? ", in its round" : ", later");
            EXPECT_EQ(server.connections() > connections, error.starts_with("READONLY")) << error;
        }
}

TEST_F(RepeatedRelease, IsSentAboutOnceASecondToAServerThatRefusesIt) {
    for (const auto* const error :
         {"NOREPLICAS Not enough good replicas to write.", "LOADING Redis is loading its data."}) {
        acquire_and_settle();
        refuse_releases(server, error);
        server.forget_log();
        release("r", "A");
        acquire_for(20s);
        EXPECT_THAT(releases_sent_to(server), IsBetween(15, 22));
        server.answers.clear();
        acquire_for(2s);
        EXPECT_EQ(value(1, "r"), "");
    }
}

// The error does not go away by itself.
TEST_F(RepeatedRelease, IsNotSentAgainIfTheServerRefusesItForGood) {
    for (const bool waits : {true, false}) {
        acquire_and_settle();
        refuse_releases(server, "NOAUTH Authentication required.");
        server.forget_log();
        if (waits) {
            release("r", "A");
            run();
            end_rounds();
        } else {
            release_without_waiting();
        }
        acquire_for(5s);
        EXPECT_EQ(releases_sent_to(server), 1);
        server.answers.clear();
    }
}

// Nobody knows whether the error goes away.
TEST_F(RepeatedRelease, IsGivenUpIfTheServerAnswersItWithAnUnknownErrorAgainAndAgain) {
    acquire_and_settle();
    refuse_releases(server, "upstream failure");
    release("r", "A");
    acquire_for(20s);
    EXPECT_EQ(releases_sent_to(server), 1 + detail::max_release_repeats);
}

// Otherwise the client would make new connections without a pause for ever.
TEST_F(RepeatedRelease, IsNotSentAgainAndAgainToAServerThatEndsTheConnectionEachTime) {
    acquire_and_settle();
    answer_releases_with_garbage(network, 1);
    release_without_waiting();
    run_for(1s);
    EXPECT_LE(server.connections(), 10U);
}

/// On such a lane, commands are not collected.
struct RepeatedReleaseWrittenAtOnce : RepeatedRelease {
    RepeatedReleaseWrittenAtOnce() : RepeatedRelease({}, nullptr, NodeGroup::Writes::at_once) {}
};

// The server ends two connections. When the release of the first one is sent again on the second one, this
// reads its last reply: the refusal of another release, which is to be sent again, too.
TEST_F(RepeatedReleaseWrittenAtOnce, GoesOverAConnectionThatHasJustEnded) {
    server.paused = true;
    acquire("r", "A");
    begin(Verb::query, "r", "A");
    run();
    release_without_waiting();
    server.paused = false;  // for new connections
    network.pass(2s);
    acquire("a probe", "B");
    run();
    run_for(5ms);
    acquire("another", "B");
    run();
    run_for(5ms);
    ASSERT_EQ(value(1, "another"), "B");
    refuse_releases(server, "MISCONF Redis is configured to save RDB snapshots");
    begin(Verb::compare_and_delete, "another", "B", {.awaits_answers = false});
    end_rounds();
    server.close_connections(network.clock().now());
    network.pass(2ms);
    std::vector<PollEntry> entries;
    group.append_poll_entries(entries);
    std::ranges::find(entries, 1, &PollEntry::node)->ready = true;  // the end of the second one comes later
    group.take_ready(entries, network.clock().now());
    (void)group.write_collected(network.clock().now());
    expect_to_be_sent_by_rounds();
    EXPECT_EQ(value(1, "another"), "");
}

TEST_F(RepeatedRelease, IsSentByTheDestructorOfTheNodes) {
    release_at_silent_server();
    network.clock().after(10ms, [this] { break_connections(network, 1); });
    expect_to_be_sent_by_the_destructor();
}

// A round reads the answer, or the destructor is the first to read it.
TEST_F(RepeatedRelease, IsSentByTheDestructorOfTheNodesAfterTheServerWasBusy) {
    for (const bool is_read : {true, false}) {
        acquire_and_release_at_busy_server();
        is_read ? run_for(1s) : network.pass(1s);
        ASSERT_EQ(value(1, "r"), "A");
        server.answers.clear();
        expect_to_be_sent_by_the_destructor();
    }
}

TEST_F(RepeatedRelease, IsSentByTheDestructorOfTheNodesToAServerThatIsBusyForAMoment) {
    acquire_and_release_at_busy_server();
    network.clock().after(20ms, [this] { server.answers.clear(); });
    expect_to_be_sent_by_the_destructor();
}

// Another server does not answer at all.
TEST_F(RepeatedRelease, IsSentByTheDestructorOfTheNodesAlthoughAnotherServerIsSilent) {
    acquire_and_settle();
    make_busy(server);
    server.latency = 5ms;
    network.server(2).paused = true;
    release_without_waiting();
    network.clock().after(10ms, [&] { server.answers.clear(); });  // the first attempt has read the refusal
    network.clock().after(45ms, [&] { server.cut_off = true; });   // what is written later does not arrive
    expect_to_be_sent_by_the_destructor();
}

TEST_F(RepeatedRelease, DelaysTheDestructorOfTheNodesForAServerThatHasEndedByNoNodeTimeout) {
    release_at_silent_server();
    server.refuses = true;
    break_connections(network, 1);
    EXPECT_LE(time_taken(network, [this] { group.~NodeGroup(); }), 25ms);
    new (&group) NodeGroup{network.configs(), {}, network};
}

// ---- An event loop that has nothing else to do

struct RepeatedReleaseInALoop : testing::Test, MemoryLoopWorld {
    void acquire() {
        ASSERT_TRUE(end_of([this](Completion done) { lock->acquire(std::move(done)); }));
        run_for(5ms);
    }
    /// The connection to node 1 is still being made when the loop ends.
    void release_at_unreachable_server() {
        acquire();
        server.close_connections(now());
        run_for(5ms);
        server.unreachable = true;
        lock.reset();
        run_for(1ms);
        of_loop.reset();
    }
    /// The first round shows that the node answers.
    void ask_twice() {
        for (int i = 0; i < 2; ++i) (void)query(*nodes, "another");
        network.pass(50ms);
    }

    MemoryServer& server = network.server(1);
    std::optional<AsyncLock> lock{std::in_place, *of_loop, "r", LockOptions{.ttl = 10min}};
};

TEST_F(RepeatedReleaseInALoop, IsSentAgain) {
    acquire();
    server.paused = true;
    lock.reset();
    run_for(10ms);
    ASSERT_EQ(holder(0), "(nil)") << "it was sent";
    ASSERT_NE(holder(1), "(nil)");
    break_connections(network, 1);
    run_for(10ms);
    EXPECT_EQ(holder(1), "(nil)");
}

TEST_F(RepeatedReleaseInALoop, IsSentByARoundOfAThreadAfterTheServerWasBusy) {
    acquire();
    make_busy(server);
    lock.reset();
    run_for(1s);
    ASSERT_NE(holder(1), "(nil)");
    server.answers.clear();
    ask_twice();
    EXPECT_EQ(holder(1), "(nil)");
}

// The limit after which an idle loop does not watch an unwritten release follows from its own locks.
TEST_F(RepeatedReleaseInALoop, OfAThreadIsNotForgottenByALoopThatHasEnded) {
    Lock of_thread{*nodes, "r", {.ttl = 10min}, network.clock(), entropy};
    ASSERT_TRUE(of_thread.acquire());
    network.pass(5ms);
    make_busy(server);
    (void)of_thread.release();
    network.pass(2s);
    server.answers.clear();
    server.close_connections(now());
    server.unreachable = true;
    AsyncLock brief{*of_loop, "brief", {.ttl = 400ms}};
    EXPECT_TRUE(end_of([&](Completion done) { brief.acquire(std::move(done)); }));
    EXPECT_TRUE(end_of([&](Completion done) { brief.release(std::move(done)); }));
    run_for(600ms);
    EXPECT_FALSE(loop.watches_anything());
    server.unreachable = false;
    ASSERT_NE(holder(1), "(nil)") << "or this test shows nothing";
    for (int i = 0; i < 3; ++i) {
        ask_twice();
        network.pass(1s);
    }
    EXPECT_EQ(holder(1), "(nil)");
}

TEST_F(RepeatedReleaseInALoop, IsSentAgainAfterTheConnectionsOfAFormerLoopAreClosed) {
    release_at_unreachable_server();
    network.pass(60ms);
    // Closes the connections of the former loop.
    AsyncNodes{*nodes, loop, network.clock(), entropy}.shut_down();
    server.unreachable = false;
    ASSERT_NE(holder(1), "(nil)");
    ask_twice();
    EXPECT_EQ(holder(1), "(nil)");
}

// Otherwise a redirection of a Redis Cluster could have too little time.
TEST_F(RepeatedReleaseInALoop, IsSentAtOnceAtTheEndIfNobodyHasReadItsRefusal) {
    acquire();
    make_busy(server);
    server.latency = 5ms;
    lock.reset();
    of_loop.reset();
    network.pass(60ms);
    server.answers.clear();
    server.latency = {};
    ASSERT_NE(holder(1), "(nil)");
    EXPECT_LT(time_taken(network, [this] { nodes.reset(); }), 25ms) << "half of a node_timeout";
    EXPECT_EQ(holder(1), "(nil)");
}

// Nothing waits for the sockets then. They accept the bytes at once.
TEST_F(RepeatedReleaseInALoop, IsSentByAFormerLoopWhenAnotherLoopEnds) {
    release_at_unreachable_server();
    ASSERT_NE(holder(1), "(nil)");
    server.unreachable = false;
    for (int i = 0; i < 5; ++i) {
        network.pass(2ms);
        AsyncNodes{*nodes, loop, network.clock(), entropy}.shut_down();
    }
    EXPECT_EQ(holder(1), "(nil)");
}

// The server may still read the release there.
TEST_F(RepeatedReleaseInALoop, LeavesAConnectionOfAFormerLoopOpenForOneNodeTimeout) {
    acquire();
    server.paused = true;
    lock.reset();
    run_for(1ms);
    of_loop.reset();
    const auto close_former_loops = [this] {
        AsyncNodes{*nodes, loop, network.clock(), entropy}.shut_down();
    };
    close_former_loops();
    EXPECT_EQ(server.open_connections(), 1U);
    network.pass(60ms);
    close_former_loops();
    EXPECT_EQ(server.open_connections(), 0U);
}

struct RepeatedReleaseInManyLoops : RepeatedReleaseInALoop {
    /// The server has this fault when the release comes. Each new loop asks the node, too. Expects that the
    /// destructor of the nodes sends the release.
    void expect_to_be_sent_after_many_loops_with(const std::function<void(MemoryServer&)>& begin_fault) {
        acquire();
        begin_fault(server);
        lock.reset();
        run_for(1s);
        of_loop.reset();
        network.pass(60ms);
        for (int i = 0; i < 12; ++i) {
            MemoryLoop another{network};
            AsyncNodes of_another{*nodes, another, network.clock(), entropy};
            AsyncLock other{of_another, "another"};
            bool called = false;
            other.acquire([&](const Result&) { called = true; });
            while (!called && another.run_once(now() + 1min)) {
            }
            of_another.shut_down();
            network.pass(60ms);
        }
        ASSERT_NE(holder(1), "(nil)");
        server.answers.clear();
        server.refuses = server.unreachable = false;
        nodes.reset();
        EXPECT_EQ(holder(1), "(nil)");
    }
};

TEST_F(RepeatedReleaseInManyLoops, IsNotGivenUpIfTheServerAnswersEachHandshakeWithBusy) {
    expect_to_be_sent_after_many_loops_with(
        [](auto& server) { server.answers[""] = "-BUSY Redis is busy running a script.\r\n"; });
}

TEST_F(RepeatedReleaseInManyLoops, IsNotGivenUpIfTheServerRefusesConnections) {
    expect_to_be_sent_after_many_loops_with([this](auto& server) {
        server.refuses = true;
        server.close_connections(now());
    });
}

TEST_F(RepeatedReleaseInManyLoops, IsNotGivenUpIfTheServerCannotBeReached) {
    expect_to_be_sent_after_many_loops_with([this](auto& server) {
        server.unreachable = true;
        server.close_connections(now());
    });
}

TEST_F(RepeatedReleaseInALoop, DelaysTheDestructorOfTheNodesByOneNodeTimeoutAtMost) {
    acquire();
    Lock of_thread{*nodes, "of a thread", {.ttl = 10min}, network.clock(), entropy};
    ASSERT_TRUE(of_thread.acquire());
    network.pass(2ms);
    server.paused = true;
    lock.reset();
    of_thread.unlock();
    of_loop->shut_down();
    EXPECT_LE(time_taken(network, [this] { nodes.reset(); }), 50ms);
}

TEST_F(RepeatedReleaseInALoop, IsNotSentAgainAndAgainToAServerThatEndsTheConnectionEachTime) {
    acquire();
    answer_releases_with_garbage(network, 1);
    lock.reset();
    run_for(1s);
    EXPECT_LE(server.connections(), 10U);
}

TEST_F(RepeatedReleaseInALoop, KeepsTheLoopBusyForOneNodeTimeoutAtMost) {
    acquire();
    server.paused = true;
    lock.reset();
    run_for(40ms);
    EXPECT_TRUE(loop.watches_anything());
    run_for(15ms);
    EXPECT_FALSE(loop.watches_anything());
}

// ---- Each round has connections of its own

struct RepeatedReleaseOfAThread : testing::Test, WaitingWorld {
    Lock held(const std::string& resource = "r") {
        Lock it{nodes, resource, {.ttl = 10min}, network.clock(), entropy};
        EXPECT_TRUE(it.acquire());
        network.pass(2ms);
        return it;
    }
    /// The first rounds probe the nodes that are not trusted.
    void expect_to_be_sent_by_rounds() {
        server.answers.clear();
        for (int i = 0; i < 3; ++i) {
            network.pass(2s);
            (void)query(nodes, "another");
        }
        network.pass(50ms);
        EXPECT_EQ(keys(), 0U);
    }
    std::size_t keys() { return network.keys(); }

    MemoryServer& server = network.server(1);
    MemoryNodes& nodes = client();
};

TEST_F(RepeatedReleaseOfAThread, IsSentAgainInTheBackground) {
    auto it = held();
    server.paused = true;
    it.unlock();
    network.pass(20ms);
    break_connections(network, 1);
    network.pass(5ms);
    (void)query(nodes, "another");
    network.pass(50ms);
    EXPECT_EQ(keys(), 0U);
}

// The other nodes refuse each acquisition, so none of them probes the node.
TEST_F(RepeatedReleaseOfAThread, ProbesTheNodeIfNoRoundDoes) {
    auto it = held();
    server.paused = server.refuses = true;
    it.unlock();
    break_connections(network, 1);
    Lock of_another{client(), "taken", {.ttl = 10min}, network.clock(), entropy};
    ASSERT_TRUE(of_another.acquire());
    const auto acquire_in_vain = [&] {
        network.pass(2s);
        Lock taken{nodes, "taken", {.retry = {.attempts = 1}}, network.clock(), entropy};
        EXPECT_EQ(taken.acquire().error(), Errc::held_by_other);
    };
    for (int i = 0; i < 3; ++i) acquire_in_vain();
    server.refuses = false;
    forget_log();
    acquire_in_vain();
    network.pass(50ms);
    EXPECT_THAT(verbs(1), ElementsAre("delete"));
    EXPECT_EQ(network.text_at(1, "r"), "");
}

TEST_F(RepeatedReleaseOfAThread, IsSentByTheDestructorOfTheNodesAfterTheServerHasRefusedIt) {
    auto it = held();
    refuse_releases(server, "NOREPLICAS Not enough good replicas to write.");
    it.unlock();
    network.pass(5ms);
    (void)query(nodes, "another");
    ASSERT_EQ(keys(), 1U);
    server.answers.clear();
    destroy_clients();
    EXPECT_EQ(keys(), 0U);
}

TEST_F(RepeatedReleaseOfAThread, IsNotSentAgainAndAgainByTheDestructorOfTheNodesToABusyServer) {
    auto it = held();
    make_busy(server);
    it.unlock();
    network.pass(1s);
    (void)query(nodes, "another");
    server.forget_log();
    EXPECT_LE(time_taken(network, [this] { destroy_clients(); }), 50ms);
    EXPECT_LE(std::ranges::count_if(server.log(), [](auto& log) { return log.ends_with(" EVAL"); }), 4)
        << "twice for each lane";
}

struct RepeatedReleaseOfASingleNode : testing::Test, WaitingWorld {
    RepeatedReleaseOfASingleNode() : WaitingWorld(1) {}
};

// B4. The server deletes the key, and the connection ends before the reply. The round sends the release
// again, which finds no key.
TEST_F(RepeatedReleaseOfASingleNode, ConfirmsAReleaseWhoseReplyWasLost) {
    for (const bool fair : {false, true}) {
        Lock it{client(), "r", {.ttl = 10min, .fair = fair}, network.clock(), entropy};
        ASSERT_TRUE(it.acquire());
        network.pass(2ms);
        auto hides = std::make_shared<bool>(true);
        network.server(0).hides_reply = [hides](const auto&) { return std::exchange(*hides, false); };
        forget_log();
        const auto result = it.release();
        EXPECT_TRUE(result) << result.message();
        EXPECT_THAT(verbs(0), SizeIs(2)) << "it was sent twice";
        EXPECT_EQ(holder(0), "(nil)");
        EXPECT_EQ(it.release().error(), Errc::not_held);
    }
}

// A minimum hold time is not made longer by the time for which its release was not sent.
TEST_F(RepeatedReleaseOfAThread, KeepsTheResourceForTheRestOfTheMinimumHoldTime) {
    Lock it{nodes, "r", {.ttl = 10min, .min_hold = 10s}, network.clock(), entropy};
    ASSERT_TRUE(it.acquire());
    network.pass(2ms);
    server.paused = true;
    it.unlock();
    network.pass(20ms);
    server.refuses = true;
    break_connections(network, 1);
    network.pass(5s);
    (void)query(nodes, "another");
    server.refuses = false;
    for (int i = 0; i < 2; ++i) {
        network.pass(1200ms);
        (void)query(nodes, "another");
    }
    network.pass(50ms);
    EXPECT_EQ(holder(1), "redlock:min-hold");
    network.pass(3s);
    EXPECT_EQ(holder(1), "(nil)");
}

TEST_F(RepeatedReleaseOfAThread, IsNotSentToAServerThatWasTooBusyForTheSet) {
    for (const auto node : {0U, 2U}) network.server(node).redis->execute({"SET", "r", "B"}, {});
    make_busy(server);
    Lock it{nodes, "r", {.ttl = 10min, .retry = {.attempts = 1}}, network.clock(), entropy};
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(it.acquire().error(), Errc::held_by_other);
        network.pass(100ms);
    }
    EXPECT_EQ(server.connections(), 1U);
    EXPECT_EQ(std::ranges::count_if(server.log(), [](auto& it) { return it.ends_with(" EVAL"); }), 0);
}

// The keys of a slot that is being moved are on two servers, so none of them can execute the release of both.
TEST_F(RepeatedReleaseOfAThread, OfTwoResourcesIsSentForEachOfThemIfTheirSlotIsBeingMoved) {
    const std::vector<std::string> resources{"r", "s"};
    Lock it{nodes, resources, {.ttl = 10min}, network.clock(), entropy};
    ASSERT_TRUE(it.acquire());
    network.pass(2ms);
    server.refuses_command = [](const auto& words) {
        const bool is_refused = words[0].starts_with("EVAL") && words[2] == "2";
        return is_refused ? "-TRYAGAIN Multiple keys request during rehashing of slot\r\n" : "";
    };
    it.unlock();
    expect_to_be_sent_by_rounds();
}

TEST_F(RepeatedReleaseOfAThread, IsNotGivenUpIfTheBusyServerHasRefusedManyOthers) {
    std::deque<Lock> locks;
    for (int i = 0; i < 100; ++i) locks.push_back(held("r" + std::to_string(i)));
    make_busy(server);
    for (auto& it : locks) EXPECT_TRUE(it.release());
    ASSERT_EQ(keys(), 100U);
    expect_to_be_sent_by_rounds();
}

// It gets the connection of another release, which the busy server refuses.
TEST_F(RepeatedReleaseOfAThread, IsSentAgainIfItsConnectionBreaksBecauseOfAnotherOne) {
    auto it = held("r");
    auto other = held("s");
    server.close_connections(now());
    network.pass(20ms);
    make_busy(server);
    server.latency = 10ms;
    other.unlock();
    network.pass(2ms);
    EXPECT_TRUE(it.release());
    server.latency = 1ms;
    expect_to_be_sent_by_rounds();
}

// ---- A node that is a Redis Cluster

/// A Redis Cluster of two servers.
struct RepeatedReleaseInACluster : testing::Test, RoundDriverWorld {
    RepeatedReleaseInACluster()
        : RoundDriverWorld(2, {}, [](Configs& configs) {
              configs.resize(1);
              configs[0].endpoint.seeds = {configs[0].endpoint};
          }) {}
    /// The server redirects the next script, such as a release, to the other one.
    void redirect_once_at(std::size_t server) {
        auto moved = "-MOVED " + std::to_string(detail::hash_slot_of("r")) +
                     " 127.0.0.1:" + std::to_string(2 - server) + "\r\n";
        network.server(server).refuses_command = [moved = std::move(moved)](const auto& words) mutable {
            return words.front().starts_with("EVAL") ? std::exchange(moved, {}) : "";
        };
    }
};

// The round does not follow the second one, because two servers could redirect it for ever.
TEST_F(RepeatedReleaseInACluster, IsSentAfterTheRoundToTheServerThatTheSecondRedirectionNames) {
    ASSERT_EQ(acquire("A")[0].vote, Vote::granted);
    redirect_once_at(0);
    redirect_once_at(1);
    EXPECT_EQ(release("A")[0].vote, Vote::unknown);
    network.pass(2s);
    (void)extend("nobody");
    EXPECT_EQ(holder(0), "");
}

// The round is over before the redirection comes.
TEST_F(RepeatedReleaseInACluster, ThatNobodyAwaitsIsSentToTheServerThatARedirectionNames) {
    ASSERT_EQ(acquire("A")[0].vote, Vote::granted);
    network.server(1).redis->execute({"SET", "r", "A"}, {});  // the slot has been moved
    redirect_once_at(0);
    (void)ask({request(Verb::compare_and_delete, "A")}, {.awaits_answers = false});
    for (int i = 0; i < 2; ++i) {
        network.pass(2s);
        (void)extend("nobody");
    }
    EXPECT_EQ(holder(0), "A") << "it was redirected";
    EXPECT_EQ(holder(1), "");
}

}  // namespace
}  // namespace redlock::test::repeated_release_test
