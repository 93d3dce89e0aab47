// What the rounds of an event loop write to a server that the Sentinels have named. It may have been frozen
// and replaced since, and still execute what reaches it before it notices.
#include "shared_world.hpp"

#include "loop/round_places.hpp"
#include "redis/lane.hpp"

namespace redlock::test::shared_former_master_test {
namespace {

class SharedFormerMaster : public SharedWorld {
protected:
    SharedFormerMaster()
        : SharedWorld{{NodeConfig{.endpoint = {.host = "127.0.0.1", .port = 1},
                                  .node_timeout = 50ms,
                                  .sentinels = std::make_shared<const std::vector<NodeConfig>>(1),
                                  .asks_sentinels = [this] {
                                      ++asked;
                                      return Resolution::of_host("127.0.0.1", named);
                                  }}}} {}
    void SetUp() override { connect(); }
    MemoryServer& server() { return network.server(0); }
    Clock::time_point write() { return group.write_collected(network.clock().now()); }

    int asked = 0;
    std::uint16_t named = 1;
};

TEST_F(SharedFormerMaster, GetsTheCommandsThatAreReadyInOneWrite) {
    constexpr auto rounds = loop::RoundPlaces::size;  // a full loop
    for (std::size_t i = 0; i < rounds; ++i) acquire("r" + std::to_string(i), "A");
    (void)write();
    EXPECT_EQ(server().log().size(), rounds);
    run();
    EXPECT_EQ(asked, 1);
}

TEST_F(SharedFormerMaster, GetsNoLeaseBehindAnOutstandingCommand) {
    auto& server = this->server();
    server.latency = 10ms;
    acquire("r0", "A");
    (void)write();
    const auto& extension = begin(Verb::compare_and_expire, "first", "A");
    acquire("r1", "A");
    release("r0", "A");
    run_for(9ms);
    EXPECT_THAT(server.log(), ElementsAre("1 SET")) << "a release would keep the reply to itself outstanding";
    run();
    EXPECT_THAT(server.log(), ElementsAre("1 SET", "1 EVALSHA", "1 EVAL", "1 SET"));
    EXPECT_TRUE(extension.tally()[0].sent);
}

TEST_F(SharedFormerMaster, GetsNoLeaseAfterASecondOfSilence) {
    network.pass(990ms);
    acquire("r0", "A");
    run();
    network.pass(990ms);
    acquire("r1", "A");
    run();
    EXPECT_EQ(asked, 1);
    network.pass(1s);
    EXPECT_EQ(acquire("r2", "A").tally()[0].cause, Errc::not_asked) << "not yet";
    run();
    EXPECT_EQ(value(0, "r2"), "A");
    EXPECT_THAT(server().log(), ElementsAre("1 SET", "1 SET", "2 PING", "2 SET"));
    EXPECT_EQ(asked, 2);
}

TEST_F(SharedFormerMaster, GetsReleasesAtAnyTime) {
    acquire("r", "A");
    run();
    network.pass(1s);
    release("r", "A");
    run();
    EXPECT_EQ(value(0, "r"), "");
    acquire("r", "B");
    run();
    EXPECT_THAT(server().log(), ElementsAre("1 SET", "1 EVALSHA", "2 PING", "2 SET"));
}

// Otherwise the SET would keep the release from a server that is silent.
TEST_F(SharedFormerMaster, GetsAReleaseAfterHalfANodeTimeoutThoughALeaseWaits) {
    server().latency = 1h;
    acquire("r0", "A");
    (void)write();
    acquire("r1", "A");
    release("r2", "A");
    run_for(24ms);
    EXPECT_THAT(server().log(), ElementsAre("1 SET"));
    run_for(2ms);
    EXPECT_THAT(server().log(), ElementsAre("1 SET", "1 EVALSHA"));
    run();
}

// A description makes no lease, and its round is over before its turn comes.
TEST_F(SharedFormerMaster, GetsTheDescriptionOfAHolderBehindAnOutstandingCommand) {
    auto& server = this->server();
    server.latency = 10ms;
    acquire("r", "A");
    (void)write();
    const auto& waits = acquire("another", "B");
    for (const auto ttl : {10s, 0s}) begin(Verb::describe_holder, "r", "A", {.awaits_answers = false}, ttl);
    run_for(9ms);
    EXPECT_THAT(server.log(), ElementsAre("1 SET")) << "another command waits";
    EXPECT_FALSE(waits.over());
    run();
    EXPECT_THAT(server.log(), ElementsAre("1 SET", "1 EVAL", "1 EVAL", "1 SET"));
}

// The reply to the release does not show that the server is still the master, so the connection is left. The
// next one is being made when the round of the deletion ends.
TEST_F(SharedFormerMaster, GetsTheDeletionOfADescriptionAfterASecondOfSilence) {
    network.pass(1s);
    release("r", "A");
    run();
    begin(Verb::describe_holder, "r", "A", {.awaits_answers = false}, 0s);
    run_for(20ms);
    EXPECT_THAT(server().log(), ElementsAre("1 EVALSHA", "2 PING", "2 EVAL"));
}

// The acquisition waits for its turn behind an outstanding command. A waiter asks the Sentinels meanwhile.
TEST_F(SharedFormerMaster, IsLeftByACommandThatWaits) {
    server().latency = 1h;
    release("r0", "A");
    (void)write();
    const auto& waits = acquire("r1", "A");
    named = 2;
    (void)group.listeners()[0]->check_out(network.clock().now(), false);
    acquire("r2", "B");
    run_for(5ms);
    EXPECT_TRUE(waits.over());
    EXPECT_EQ(waits.tally()[0].cause, Errc::connection_failed);
}

// For example because the process was suspended between the two.
TEST_F(SharedFormerMaster, GetsNoCollectedLeaseAfterASecondOfSilence) {
    const auto& round = acquire("r", "A");
    network.pass(1s);
    run();
    EXPECT_THAT(server().log(), ElementsAre());
    EXPECT_EQ(round.tally()[0].cause, Errc::connection_failed);
}

TEST_F(SharedFormerMaster, GetsNoRestOfALeaseAfterASecondOfSilence) {
    server().takes_at_once = 40;
    const auto& round = acquire("r", "A");
    (void)write();
    release("r0", "B");
    network.pass(1s);
    run();
    EXPECT_THAT(server().log(), Not(Contains("1 SET")));
    EXPECT_EQ(round.tally()[0].vote, Vote::unknown);
}

// The server has just been thawed.
TEST_F(SharedFormerMaster, GetsNoLeaseAfterItsRepliesArrivedLate) {
    server().paused = true;
    acquire("r0", "A");
    (void)write();
    network.pass(1s);
    server().resume(network.clock().now());
    settle();
    acquire("r1", "A");
    run();
    EXPECT_THAT(server().log(), ElementsAre("1 SET", "2 PING", "2 SET"));
}

// The server answers the first of two commands that it got in one write, and freezes. This is no sign of life
// while it owes the reply to the second one.
TEST_F(SharedFormerMaster, GetsNoLeaseAfterOneOfTwoRepliesArrivedLate) {
    network.pass(500ms);
    server().pauses_after = 1;
    const auto& first = acquire("r0", "A");
    const auto& second = acquire("r1", "A");
    run();
    EXPECT_EQ(first.tally()[0].vote, Vote::granted);
    EXPECT_EQ(second.tally()[0].cause, Errc::timed_out);
    network.pass(600ms);
    server().resume(network.clock().now());
    run_for(5ms);
    acquire("r2", "A");
    run();
    EXPECT_THAT(server().log(), ElementsAre("1 SET", "1 SET", "2 PING", "2 SET"));
}

// The replies that have come are signs of life, whatever has been collected behind them meanwhile.
TEST_F(SharedFormerMaster, IsNotLeftWhileItAnswersUnderSteadyLoad) {
    server().latency = 10ms;
    const auto* acquisition = &acquire("r0", "A");
    (void)write();
    for (int i = 1; i < 200; ++i) {
        run_for(9500us);
        release("x", "A");  // is collected
        const auto& next = acquire("r" + std::to_string(i), "A");
        run_for(500us);
        ASSERT_EQ(acquisition->tally()[0].vote, Vote::granted) << "after " << i * 10 << " ms";
        acquisition = &next;
    }
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(server().connections(), 1u);
}

// ---- Threads that share connections. The leading thread reads from all connections from time to time.

/// Configurations whose servers are named by Sentinels.
std::vector<NodeConfig> with_sentinels(std::vector<NodeConfig> configs, int& asked) {
    for (std::size_t i = 0; i < configs.size(); ++i) {
        configs[i].sentinels = std::make_shared<const std::vector<NodeConfig>>(1);
        configs[i].asks_sentinels = [&asked, i] {
            ++asked;
            return Resolution::of_host("127.0.0.1", static_cast<std::uint16_t>(1 + i));
        };
    }
    return configs;
}

struct AFormerMasterOfThreads : testing::Test {
    Tally ask(Lane& rounds, Verb verb, const std::string& resource, const std::string& owner, NodeSet to) {
        const std::vector<std::string> resources{resource};
        const Request request{.command = {.verb = verb, .resources = resources, .owner = owner, .ttl = 10s},
                              .to = to};
        const RoundLimits limits{};
        Tally tally{names_of(3)};
        rounds.ask({&request, 1}, limits, {&tally, 1});
        return tally;
    }
    /// Returns rounds that have a used connection to each node.
    std::unique_ptr<Lane> connected(Round order) {
        NodesOptions options{};
        options.round = order;
        auto rounds = std::make_unique<Lane>(with_sentinels(memory.configs(), asked), options, memory);
        ask(*rounds, Verb::set_if_absent, "first", "A", all);
        ask(*rounds, Verb::compare_and_delete, "first", "A", all);
        return rounds;
    }

    const NodeSet all{0b111};
    MemoryNetwork memory{3};
    int asked = 0;
};

TEST_F(AFormerMasterOfThreads, GivesNoSignOfLifeIfItIsOnlyRead) {
    const auto rounds = connected(Round::all_at_once);
    ASSERT_EQ(asked, 3);
    for (int i = 0; i < 10; ++i) {
        memory.pass(900ms);
        ask(*rounds, Verb::query, "first", "A", NodeSet{0b001});
    }
    for (std::size_t node = 0; node < 3; ++node) memory.server(node).forget_log();
    ask(*rounds, Verb::set_if_absent, "r", "A", all);
    EXPECT_THAT(memory.server(1).log(), ElementsAre("2 PING", "2 SET"))
        << "the last reply of this server came 9 s ago";
    EXPECT_EQ(asked, 5);
}

// A sequential client makes attempts while another client holds the lock on two of three nodes.
TEST_F(AFormerMasterOfThreads, GetsNoLeaseIfItWasNotAskedForLong) {
    const auto rounds = connected(Round::sequential);
    for (std::size_t node = 0; node < 2; ++node)
        memory.server(node).redis->execute({"SET", "r", "other"}, {});
    for (std::size_t node = 0; node < 3; ++node) memory.server(node).forget_log();
    for (int i = 0; i < 20; ++i) {
        memory.pass(500ms);
        const auto tally = ask(*rounds, Verb::set_if_absent, "r", "A", all);
        ASSERT_FALSE(tally[2].sent);
        ask(*rounds, Verb::compare_and_delete, "r", "A", tally.sent());
    }
    EXPECT_THAT(memory.server(2).log(), ElementsAre());
    for (std::size_t node = 0; node < 2; ++node) memory.server(node).redis->execute({"DEL", "r"}, {});
    memory.pass(500ms);
    ask(*rounds, Verb::set_if_absent, "r", "A", all);
    EXPECT_THAT(memory.server(2).log(), ElementsAre("2 PING", "2 SET")) << "it has been silent for 10 s";
}

}  // namespace
}  // namespace redlock::test::shared_former_master_test
