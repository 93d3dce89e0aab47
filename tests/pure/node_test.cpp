// The connections of a node between rounds: which one a command gets, and which ones are kept or replaced.
#include "round_driver_world.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace redlock::test::node_test {
namespace {

struct NodeTest : testing::Test, RoundDriverWorld {
    explicit NodeTest(NodesOptions options = {}) : RoundDriverWorld(1, options) {}
    MemoryServer& server() { return network.server(0); }
    /// Sends a SET over a ready connection, and lets the round end without a reply.
    void acquire_late(std::string_view owner, std::chrono::milliseconds ttl = 10s) {
        if (server().connections() == 0) (void)extend("nobody");
        server().forget_log();
        server().paused = true;
        const auto tally = ask({request(Verb::set_if_absent, owner, ttl)}).front();
        EXPECT_EQ(tally[0].cause, Errc::timed_out);
        EXPECT_TRUE(tally[0].sent);
    }
};

// ---- Order

// B5. The connection may be forgotten by now. But the server may also be frozen, and execute the SET later.
TEST_F(NodeTest, AReleaseStaysBehindItsPendingSetAlsoAfterALongSilence) {
    acquire_late("A", 10min);
    network.pass(5min);
    EXPECT_EQ(release("A")[0].cause, Errc::timed_out);
    EXPECT_EQ(server().connections(), 1U);
    network.resume(0);
    EXPECT_THAT(server().log(), ElementsAre("1 SET", "1 EVAL"));
    EXPECT_EQ(holder(0), "");
}

// A device on the way has forgotten the connection, and swallows what comes.
TEST_F(NodeTest, ASecondReleaseUsesANewConnection) {
    (void)acquire("A");
    server().forget_connections();
    EXPECT_EQ(release("A")[0].cause, Errc::timed_out);
    EXPECT_EQ(release("A")[0].vote, Vote::granted);
    EXPECT_EQ(holder(0), "");
    EXPECT_EQ(server().connections(), 2U);
}

// Otherwise each release would cost another descriptor.
TEST_F(NodeTest, FurtherReleasesToAFrozenServerShareANewConnection) {
    (void)acquire("A");
    server().paused = true;
    for (int i = 0; i < 20; ++i) (void)release("A");
    EXPECT_EQ(server().connections(), 2U);
    network.resume(0);
    EXPECT_EQ(holder(0), "");
}

// B5: over another connection the release would overtake the SET.
TEST_F(NodeTest, AReleaseFollowsTheSetOfItsOwnOwner) {
    acquire_late("A");
    server().paused = false;  // for new connections
    (void)extend("nobody");
    acquire_late("B");
    EXPECT_TRUE(release("B")[0].sent);
    EXPECT_TRUE(release("A")[0].sent);
    network.resume(0);
    EXPECT_THAT(server().log(), ElementsAre("1 SET", "1 EVAL", "2 SET", "2 EVAL"));
    EXPECT_EQ(holder(0), "");
}

TEST_F(NodeTest, AnExtensionDoesNotOvertakeItsPendingSet) {
    acquire_late("A");
    EXPECT_EQ(extend("A")[0].detail, detail::earlier_is_pending);
    network.resume(0);
    EXPECT_THAT(server().log(), ElementsAre("1 SET"));
    EXPECT_EQ(holder(0), "A");
}

// The acquisition of a waiter takes its ticket out of the queue. If it overtook the pending enter_queue, the
// ticket would enter the queue after its waiter has left.
TEST_F(NodeTest, TheAcquisitionOfAWaiterDoesNotOvertakeItsPendingTicket) {
    (void)extend("nobody");
    server().forget_log();
    server().paused = true;
    const QueueTerms terms{.ticket = "channel|1", .home = 0, .reservation_ttl = 100ms};
    auto question = request(Verb::enter_queue, terms.ticket);
    question.command.queue = &terms;
    EXPECT_TRUE(ask({question}).front()[0].sent);
    server().paused = false;  // for new connections
    (void)extend("nobody");
    auto acquisition = request(Verb::set_if_absent, "A");
    acquisition.command.queue = &terms;
    EXPECT_EQ(ask({acquisition}).front()[0].detail, detail::earlier_is_pending);
    network.resume(0);
    EXPECT_THAT(server().log(), ElementsAre("2 PING", "2 EVAL", "1 EVAL"));
}

// Between a SET and its release there may be only commands of the same owner.
TEST_F(NodeTest, NoOtherCommandFollowsAPendingSet) {
    acquire_late("A");
    (void)release("B");
    (void)extend("B");
    network.resume(0);
    EXPECT_THAT(server().log(), Not(Contains("1 EVAL")));
    EXPECT_THAT(server().log(), Contains("2 EVAL"));
}

// B1, D4. The SET was executed, and its reply is lost.
TEST_F(NodeTest, AReleaseUsesANewConnectionIfThatOfItsSetBroke) {
    (void)extend("nobody");
    server().latency = 1s;
    EXPECT_EQ(acquire("A")[0].cause, Errc::timed_out);
    server().latency = 1ms;
    server().close_connections(network.clock().now());
    EXPECT_EQ(holder(0), "A");
    EXPECT_EQ(release("A")[0].vote, Vote::granted);
    EXPECT_EQ(holder(0), "");
    EXPECT_EQ(server().connections(), 2u);
}

// This holds whatever other locks sent meanwhile, and however often this lock was extended.
TEST_F(NodeTest, AReleaseFollowsItsSetBehindManyOtherCommands) {
    acquire_late("A", 10min);
    for (int i = 0; i < 100; ++i) {
        (void)extend("A");
        (void)release("other " + std::to_string(i));
    }
    EXPECT_TRUE(release("A")[0].sent);
    network.resume(0);
    EXPECT_EQ(holder(0), "");
}

// On another connection the removal could come before the release. It would find the lock, and would write
// the description instead, which would then stay after the release.
TEST_F(NodeTest, TheRemovalOfADescriptionFollowsThePendingRelease) {
    const std::string owner(40, 'A');
    const std::vector<std::string> another{"another resource"};
    const auto ask_in_vain = [&](Request request) {
        (void)ask({std::move(request)}, {.awaits_answers = false});
    };
    auto elsewhere = request(Verb::compare_and_delete, owner);
    elsewhere.command.resources = another;
    auto describe = request(Verb::describe_holder, owner);
    describe.command.description = "host=web1";
    const auto description = [&] { return text_of(server().redis->execute({"GET", "{r}:holder"}, {})); };

    EXPECT_EQ(acquire(owner)[0].vote, Vote::granted);
    ask_in_vain(describe);
    server().paused = true;
    ask_in_vain(elsewhere);  // occupies the first connection, so that a second one is made
    server().paused = false;
    (void)extend(owner);
    network.resume(0);
    EXPECT_EQ(description(), owner + " host=web1");

    server().paused = true;
    ask_in_vain(elsewhere);
    ask_in_vain(request(Verb::compare_and_delete, owner));
    describe.command.ttl = 0s;
    ask_in_vain(describe);
    network.resume(0);
    EXPECT_EQ(holder(0), "");
    EXPECT_EQ(description(), "(nil)");
}

TEST_F(NodeTest, AReleaseFollowsTheHandshakeWithASilentServer) {
    server().paused = true;
    EXPECT_EQ(release("A")[0].cause, Errc::timed_out);
    EXPECT_EQ(server().connections(), 1u);
    network.resume(0);
    EXPECT_THAT(server().log(), ElementsAre("1 PING", "1 EVAL"));
}

TEST_F(NodeTest, AnAcquireDoesNotFollowTheHandshake) {
    server().paused = true;
    const auto tally = acquire("A");
    EXPECT_FALSE(tally[0].sent);
    EXPECT_EQ(tally[0].detail, "while connecting");
    network.resume(0);
    EXPECT_THAT(server().log(), ElementsAre("1 PING"));
}

// D1. A plain lock was released without waiting, and a lock with fencing follows on the same connection. Its
// vote needs the run id of the server, whose reply comes behind that to the release.
TEST_F(NodeTest, ALateReplyIsNotTakenForTheRunId) {
    EXPECT_EQ(acquire("A")[0].vote, Vote::granted);
    server().forget_log();
    server().paused = true;
    (void)ask({request(Verb::compare_and_delete, "A")}, {.awaits_answers = false});
    network.clock().after(10ms, [&] { network.server(0).resume(network.clock().now()); });
    const auto tally = ask({request(Verb::set_and_count, "B")}).front();
    EXPECT_EQ(tally[0].vote, Vote::granted) << tally[0].detail;
    EXPECT_THAT(server().log(), ElementsAre("1 EVAL", "1 INFO", "1 EVAL"));
}

// ---- Draining

// D1.
TEST_F(NodeTest, ALateGrantIsNotTakenForAnotherReply) {
    EXPECT_EQ(acquire("0")[0].vote, Vote::granted);
    acquire_late("A");  // refused, but late
    network.resume(0);
    EXPECT_EQ(release("0")[0].vote, Vote::granted);
    EXPECT_EQ(acquire("B")[0].vote, Vote::granted);
    EXPECT_EQ(acquire("C")[0].vote, Vote::refused);
    EXPECT_EQ(server().connections(), 1u) << "the drained connection is used on";
}

TEST_F(NodeTest, AConnectionDrainsAsLongAsItsKeyCanLive) {
    acquire_late("A", 10min);
    network.pass(10min - 1s);
    (void)release("B");
    EXPECT_THAT(log.lines, Not(Contains(HasSubstr("pending for too long"))));
    network.pass(2s);
    (void)release("C");
    EXPECT_THAT(log.lines, Contains(HasSubstr("disconnected: " + make_error_code(Errc::timed_out).message() +
                                              ", replies were pending for too long")));
}

// D4. The server would execute the SET long after its owner has given up.
TEST_F(NodeTest, AnUndeliveredCommandIsDroppedWithItsConnection) {
    (void)extend("nobody");
    server().cut_off = true;
    EXPECT_TRUE(acquire("A")[0].sent);
    network.pass(2min);
    (void)release("B");
    server().reach_again(network.clock().now());
    EXPECT_THAT(server().log(), Contains("2 EVAL")) << "on a connection that is not given up";
    EXPECT_THAT(server().log(), Not(Contains("1 SET")));
    EXPECT_EQ(holder(0), "");
}

// The node is silent, and the releases would become more and more.
TEST_F(NodeTest, AReleaseThatWasPendingForTooLongIsNotSentAgain) {
    (void)extend("nobody");
    server().forget_log();
    server().cut_off = true;
    (void)ask({request(Verb::compare_and_delete, "A")}, {.awaits_answers = false});
    network.pass(2min);
    (void)acquire("B");
    EXPECT_THAT(log.lines, Contains(HasSubstr("replies were pending for too long")));
    server().reach_again(network.clock().now());
    EXPECT_THAT(server().log(), ElementsAre("2 PING"));
}

// ---- Idle connections

TEST_F(NodeTest, AnIdleConnectionThatWasClosedIsReplaced) {
    EXPECT_EQ(acquire("A")[0].vote, Vote::granted);
    server().close_connections(network.clock().now());
    network.pass(1s);
    log.lines.clear();
    EXPECT_EQ(extend("A")[0].vote, Vote::granted);
    EXPECT_THAT(log.lines,
                ElementsAre("n0 disconnected: " + make_error_code(Errc::connection_failed).message() +
                                ", closed by the server",
                            "n0 connecting", "round of A: 1 granted"));
}

struct ANodeWithOneIdleConnection : NodeTest {
    ANodeWithOneIdleConnection() : NodeTest({.max_idle = 1}) {}
};

TEST_F(ANodeWithOneIdleConnection, ClosesFurtherConnections) {
    acquire_late("A");
    server().paused = false;
    EXPECT_EQ(release("B")[0].vote, Vote::refused) << "over a second connection";
    ASSERT_EQ(server().open_connections(), 2u);
    network.resume(0);
    log.lines.clear();
    EXPECT_EQ(extend("A")[0].vote, Vote::granted);
    EXPECT_EQ(server().open_connections(), 1u);
    EXPECT_THAT(log.lines, ElementsAre("n0 disconnected", "round of A: 1 granted")) << "for no cause";
}

// ---- Secrets

/// The password is "open sesame". The server replies to the first command of this name with this error, or
/// with this list.
struct Repetition {
    const char* name;
    std::string command;
    std::string words;
};

auto with_password(const std::string& password) {
    return [password](auto& configs) { configs[0].endpoint.password = password; };
}

struct AServerThatRepeatsThePassword : testing::TestWithParam<Repetition>, RoundDriverWorld {
    AServerThatRepeatsThePassword() : RoundDriverWorld(1, {}, with_password("open sesame")) {
        network.server(0).answers["AUTH"] = "+OK\r\n";
        const auto& words = GetParam().words;
        network.server(0).answers[GetParam().command] = (words.starts_with('*') ? "" : "-") + words + "\r\n";
    }
};

INSTANTIATE_TEST_SUITE_P(
    Passwords, AServerThatRepeatsThePassword,
    testing::Values(Repetition{"AfterAuth", "AUTH", "ERR wrong: open sesame"},
                    Repetition{"AfterAuthInPart", "AUTH", "ERR unknown words: sesame"},
                    Repetition{"AfterAuthInAList", "AUTH", "*2\r\n$3\r\nERR\r\n$6\r\nsesame"},
                    Repetition{"AfterAuthAtOnce", "AUTH", "open sesame is wrong"},
                    Repetition{"AfterAuthInOtherLetters", "AUTH", "ERR wrong: OPEN SESAME"},
                    Repetition{"AfterPing", "PING", "ERR said after open sesame"},
                    Repetition{"AfterPingInPart", "PING", "sesame"},
                    Repetition{"AfterACommand", "SET", "ERR said after open sesame"},
                    Repetition{"AfterACommandInPart", "SET", "sesame"}),
    [](const auto& it) { return it.param.name; });

// D11
TEST_P(AServerThatRepeatsThePassword, IsNotQuoted) {
    const auto tally = acquire("A");
    ASSERT_EQ(tally[0].vote, Vote::unknown);
    log.lines.push_back(tally[0].detail);
    EXPECT_FALSE(tally[0].detail.empty());
    for (const auto* const secret : {"open", "sesame", "OPEN", "SESAME"})
        EXPECT_THAT(log.lines, testing::Each(testing::Not(testing::HasSubstr(secret))));
}

/// Old servers report a wrong password by an error without a word of its own.
struct AnOldServerWithAPassword : testing::Test, RoundDriverWorld {
    AnOldServerWithAPassword() : RoundDriverWorld(1, {}, with_password("ERRATIC")) {}
    NodeReport report_if(const std::string& command, const std::string& error = "ERR invalid password") {
        network.server(0).answers = {{"AUTH", "+OK\r\n"}};
        network.server(0).answers[command] = "-" + error + "\r\n";
        return acquire("A")[0];
    }
};

TEST_F(AnOldServerWithAPassword, MayFailLaterForAnotherReason) {
    EXPECT_EQ(report_if("PING", "MOVED 42 10.0.0.1:6379").cause, Errc::server_error);
}

// D11. "ERR" tells nothing about a password that contains it, and an operator has to know it.
TEST_F(AnOldServerWithAPassword, RejectsItForGoodAndIsQuotedWithItsWords) {
    const auto report = report_if("AUTH");
    EXPECT_EQ(report.cause, Errc::authentication_failed);
    EXPECT_EQ(report.detail, "ERR invalid password");
}

// D11. Of an error that may repeat the password, only words that every server says are shown.
TEST_F(AnOldServerWithAPassword, IsQuotedWithTheFirstWordIfTheOthersMayRepeatThePassword) {
    EXPECT_EQ(report_if("AUTH", "ERR no erratic users").detail, "ERR");
    network.pass(2s);
    EXPECT_EQ(report_if("AUTH", "ERRATIC is wrong").detail, "the text contains the password");
    network.pass(2s);
    EXPECT_EQ(report_if("AUTH", "ERR invalid password, and no erratic users").detail, "ERR invalid password");
}

TEST_F(AnOldServerWithAPassword, IsQuotedWithTheFirstWordIfTheOthersMayRepeatATokenOfTheProgram) {
    auto configs = network.configs();
    configs[0].credentials = [](auto) { return Credentials{"", "TOKEN"}; };
    group = std::make_unique<LanesOfATest>(configs, NodesOptions{}, network);
    EXPECT_EQ(report_if("AUTH", "ERR what is tok?").detail, "ERR");
}

TEST_F(AnOldServerWithAPassword, IsQuotedIfItHasNoPasswordOrIsProtected) {
    const auto no_password = report_if(
        "AUTH",
        "ERR AUTH <password> called without any password configured for the default user. Are you sure?");
    EXPECT_EQ(no_password.cause, Errc::authentication_failed);
    EXPECT_THAT(
        no_password.detail,
        StartsWith("ERR AUTH <password> called without any password configured for the default user."));
    network.pass(2s);
    network.server(0).last_words =
        "-DENIED Redis is running in protected mode because no password is set.\r\n";
    const auto denied = acquire("A")[0];
    EXPECT_EQ(denied.cause, Errc::connection_failed);
    EXPECT_EQ(denied.detail, "DENIED Redis is running in protected mode because no password is set.");
}

TEST_F(AnOldServerWithAPassword, DoesNotRejectItByATransientError) {
    for (const auto* const error :
         {"LOADING Redis is loading", "BUSY Redis is busy", "MASTERDOWN Link is down",
          "ERR Connection refused", "upstream failure"}) {
        EXPECT_TRUE(is_transient(report_if("AUTH", error).cause)) << error;
        network.pass(2s);
    }
}

// The error takes the place of the reply to AUTH, although the server has not read the password. So it is no
// failed login, and all of its words may be shown.
TEST_F(AnOldServerWithAPassword, DoesNotRejectItIfThereAreTooManyClients) {
    network.server(0).last_words = too_many_clients;
    const auto report = acquire("A")[0];
    EXPECT_EQ(report.cause, Errc::connection_failed);
    EXPECT_EQ(report.detail, "ERR max number of clients reached");
    network.server(0).last_words = "";
    network.pass(2s);
    EXPECT_EQ(report_if("SELECT").vote, Vote::granted);
}

// ---- Replicas

struct ANodeWithAQuarantine : NodeTest {
    ANodeWithAQuarantine() : NodeTest({.quarantine = 1h}) {}
};

TEST_F(ANodeWithAQuarantine, AReplicaHasNoVote) {
    server().redis->demote();
    const auto tally = acquire("A");
    EXPECT_EQ(tally[0].cause, Errc::read_only);
    EXPECT_THAT(tally[0].detail, testing::HasSubstr("role:master"));
}

// A name or a proxy in front of a master and its replicas leads to the new master, but only a new connection.
TEST_F(NodeTest, AReplicaIsDisconnected) {
    (void)extend("nobody");
    server().instead = "-READONLY You can't write against a read only replica.\r\n";
    const auto tally = acquire("A");
    EXPECT_EQ(tally[0].cause, Errc::read_only);
    EXPECT_EQ(server().open_connections(), 0U);
    EXPECT_EQ(extend("A")[0].vote, Vote::granted);
    EXPECT_EQ(server().connections(), 2U);
}

// B1. A release needs no vote.
TEST_F(ANodeWithAQuarantine, DeletesKeysWithoutAVote) {
    server().redis->execute({"SET", "r", "A"}, {});
    EXPECT_EQ(extend("A")[0].cause, Errc::quarantined);
    EXPECT_EQ(release("A")[0].vote, Vote::granted);
    EXPECT_EQ(holder(0), "");
}

// ---- Scripts

// D6.
TEST_F(NodeTest, AServerThatForgotOneScriptGetsEachInFull) {
    (void)extend("A");
    (void)release("A");
    server().forget_log();
    server().redis->restart("run-0", server().redis->keys());
    EXPECT_EQ(extend("A")[0].vote, Vote::refused);
    EXPECT_EQ(release("A")[0].vote, Vote::refused);
    EXPECT_THAT(server().log(), ElementsAre("1 EVALSHA", "1 EVAL", "1 EVAL"));
}

// The replies may come after the round, and then nothing would send the script a second time.
TEST_F(NodeTest, AScriptIsSentInFullIfRepliesArePending) {
    (void)release("nobody");
    acquire_late("A");
    (void)release("A");
    server().redis->restart("run-0", server().redis->keys());
    network.resume(0);
    EXPECT_THAT(server().log(), ElementsAre("1 SET", "1 EVAL"));
    EXPECT_EQ(holder(0), "");
}

// B5. The report comes while a later round waits for its own reply. No further round may follow.
TEST_F(NodeTest, AReleaseIsSentInFullAsSoonAsALaterRoundReadsThatItsScriptIsForgotten) {
    (void)release("nobody");
    (void)acquire("A");
    server().redis->restart("run-0", server().redis->keys());
    server().paused = true;
    (void)ask({request(Verb::compare_and_delete, "A")}, {.deadline = network.clock().now() + 10ms});
    network.clock().after(5ms, [&] { server().resume(network.clock().now()); });
    EXPECT_EQ(acquire("B")[0].vote, Vote::refused);
    EXPECT_EQ(holder(0), "");
}

// B5. The server has forgotten the script, and reports this when the round of the release is over.
// D1. The release is repeated only when nothing is pending, so that no reply is taken for that of another
// command.
TEST_F(NodeTest, ARepeatedReleaseDoesNotMixUpReplies) {
    (void)release("nobody");
    (void)acquire("A");
    server().redis->restart("run-0", server().redis->keys());
    server().paused = true;
    (void)release("A");
    (void)release("B");
    network.resume(0);
    EXPECT_EQ(release("A")[0].vote, Vote::refused) << "it was repeated before";
    EXPECT_EQ(holder(0), "");
    EXPECT_EQ(acquire("C")[0].vote, Vote::granted);
}

// A server may reply with an error before it has read the script.
TEST_F(NodeTest, AScriptIsSentInFullAgainAfterAnError) {
    (void)acquire("A");
    server().instead = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    EXPECT_EQ(extend("A")[0].vote, Vote::unknown);
    EXPECT_EQ(extend("A")[0].vote, Vote::granted);
    EXPECT_EQ(extend("A")[0].vote, Vote::granted);
    EXPECT_THAT(server().log(), ElementsAre("1 PING", "1 SET", "1 EVAL", "1 EVAL", "1 EVALSHA"));
}

TEST_F(NodeTest, ABatchSendsAScriptInFullOnlyOnce) {
    (void)acquire("A");
    server().forget_log();
    const std::vector batch(3, request(Verb::compare_and_expire, "A"));
    for (const auto& tally : ask(batch)) EXPECT_EQ(tally[0].vote, Vote::granted);
    for (const auto& tally : ask(batch)) EXPECT_EQ(tally[0].vote, Vote::granted);
    EXPECT_THAT(server().log(),
                ElementsAre("1 EVAL", "1 EVALSHA", "1 EVALSHA", "1 EVALSHA", "1 EVALSHA", "1 EVALSHA"));
}

TEST_F(NodeTest, ABatchWithAForgottenScriptIsSentInFull) {
    (void)acquire("A");
    const std::vector batch(3, request(Verb::compare_and_expire, "A"));
    (void)ask(batch);
    server().redis->restart("run-0", server().redis->keys());
    for (const auto& tally : ask(batch)) EXPECT_EQ(tally[0].vote, Vote::granted);
}

/// The server answers each command by digest with this error.
struct AServerThatRefusesDigests : testing::TestWithParam<const char*>, RoundDriverWorld {
    AServerThatRefusesDigests() : RoundDriverWorld(1) {
        network.server(0).answers["EVALSHA"] = "-" + std::string{GetParam()} + "\r\n";
        (void)acquire("A");
        network.server(0).forget_log();
    }
};

INSTANTIATE_TEST_SUITE_P(Errors, AServerThatRefusesDigests,
                         testing::Values("ERR unknown command 'EVALSHA', with args beginning with: '2'",
                                         "NOPERM this user has no permissions to run the 'evalsha' command"));

// D6.
TEST_P(AServerThatRefusesDigests, GetsScriptsInFullAndIsAskedOnce) {
    for (int i = 0; i < 4; ++i) EXPECT_EQ(extend("A")[0].vote, Vote::granted);
    EXPECT_EQ(release("A")[0].vote, Vote::granted);
    EXPECT_THAT(network.server(0).log(),
                ElementsAre("1 EVAL", "1 EVALSHA", "1 EVAL", "1 EVAL", "1 EVAL", "1 EVAL"));
}

TEST_P(AServerThatRefusesDigests, GetsEachScriptOfABatchInFull) {
    (void)acquire("B");
    const std::vector batch{request(Verb::compare_and_expire, "A"), request(Verb::compare_and_expire, "B"),
                            request(Verb::compare_and_expire, "A")};
    for (int i = 0; i < 2; ++i) {
        const auto tallies = ask(batch);
        EXPECT_EQ(tallies[0][0].vote, Vote::granted);
        EXPECT_EQ(tallies[1][0].vote, Vote::refused);
        EXPECT_EQ(tallies[2][0].vote, Vote::granted);
    }
    EXPECT_EQ(std::ranges::count(network.server(0).log(), "1 EVALSHA"), 2) << "behind the first one only";
}

// A release whose round is over is sent again by its connection.
TEST_P(AServerThatRefusesDigests, GetsALateReleaseInFull) {
    (void)release("nobody");
    network.server(0).paused = true;
    (void)release("A");
    network.resume(0);
    for (const auto* const owner : {"B", "C", "D"}) {
        (void)acquire(owner);
        network.pass(1ms);
    }
    EXPECT_NE(holder(0), "A");
}

// PING only has to be answered.
TEST_F(NodeTest, AServerWithoutPingIsReady) {
    server().answers["PING"] = "-ERR unknown command 'PING'\r\n";
    EXPECT_EQ(acquire("A")[0].vote, Vote::granted);
}

// A server that could not save its data also answers PING with an error. It is reached, and it accepts no
// SET.
TEST_F(NodeTest, AServerThatCannotSaveItsDataIsReached) {
    server().answers[""] = "-MISCONF Redis is configured to save RDB snapshots\r\n";
    const auto tally = acquire("A");
    EXPECT_TRUE(tally[0].sent);
    EXPECT_EQ(tally[0].cause, Errc::server_busy);
    server().answers.clear();
    EXPECT_EQ(acquire("A")[0].vote, Vote::granted);
    EXPECT_EQ(server().connections(), 1u);
}

TEST_F(NodeTest, ASentinelInPlaceOfAServerIsNamed) {
    server().answers["SET"] = "-ERR unknown command 'SET', with args beginning with: 'r' 'A'\r\n";
    EXPECT_EQ(
        acquire("A")[0].detail,
        "ERR unknown command 'SET', with args beginning with: 'r' 'A'; if a Sentinel answers at this port, "
        "write redis+sentinel://HOST:PORT/MASTER");
}

// ---- A shortage of descriptors

// Each round tries to send the release again. The first connection ends without a failure of the node.
TEST_F(NodeTest, AReleaseThatLacksADescriptorIsKeptAndTheNodeHasNotFailed) {
    (void)acquire("A");
    std::string refusal = "-BUSY running a script\r\n";
    server().refuses_command = [&](const auto& words) {
        return words[0].starts_with("EVAL") ? refusal : std::string{};
    };
    (void)release("A");
    refusal = "-READONLY replica\r\n";
    (void)extend("nobody");
    refusal.clear();
    network.has_no_descriptor = true;
    network.pass(2s);
    log.lines.clear();
    for (int i = 0; i < 20; ++i) EXPECT_EQ(extend("nobody")[0].cause, Errc::connection_failed);
    EXPECT_THAT(log.lines, Not(Contains(HasSubstr("backing off"))));
    EXPECT_LE(std::ranges::count(log.lines, "n0 connecting"), 60);
    network.has_no_descriptor = false;
    (void)extend("nobody");
    EXPECT_EQ(holder(0), "");
}

// A name could not be resolved, or the Sentinels could not be asked.
TEST(AResolutionThatLacksADescriptor, IsNoFailureOfTheNode) {
    bool lacks = true;
    RoundDriverWorld world{1, {}, [&lacks](auto& configs) {
                               configs[0] = at_two_addresses(configs[0]);
                               configs[0].asks_sentinels = [&lacks, find = configs[0].asks_sentinels] {
                                   return lacks ? Resolution::known({.cause = shortage()}) : find();
                               };
                           }};
    EXPECT_EQ(world.acquire("A")[0].cause, Errc::connection_failed);
    lacks = false;
    EXPECT_EQ(world.acquire("A")[0].vote, Vote::granted);
    EXPECT_THAT(world.log.lines, Not(Contains(HasSubstr("backing off"))));
}

}  // namespace
}  // namespace redlock::test::node_test
