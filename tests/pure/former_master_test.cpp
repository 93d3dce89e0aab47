// What is sent to a server that the Sentinels have named. It may have been frozen and replaced since, and
// still execute what reaches it before it notices.
#include "round_driver_world.hpp"

#include <functional>

namespace redlock::test::former_master_test {
namespace {

struct FormerMaster : testing::Test, RoundDriverWorld {
    FormerMaster()
        : RoundDriverWorld(1, {}, [this](Configs& configs) {
              configs[0].sentinels = std::make_shared<const std::vector<NodeConfig>>(1);
              configs[0].asks_sentinels = [this] {
                  ++asked;
                  return Resolution::of_host("127.0.0.1", 1);
              };
          }) {}
    MemoryServer& server() { return network.server(0); }
    /// Sends an acquisition over a ready connection to the frozen server.
    void acquire_late(std::string_view owner) {
        (void)extend("nobody");
        server().forget_log();
        server().paused = true;
        EXPECT_EQ(acquire(owner)[0].cause, Errc::timed_out);
    }

    int asked = 0;
};

TEST_F(FormerMaster, GetsNoLeaseBehindPendingReplies) {
    acquire_late("A");
    EXPECT_FALSE(extend("A")[0].sent);
    EXPECT_TRUE(release("A")[0].sent) << "B5: it does go behind";
    EXPECT_FALSE(acquire("B")[0].sent);
    network.resume(0);
    EXPECT_THAT(server().log(), ElementsAre("1 SET", "1 EVAL", "2 PING"));
}

// A SET that was written before does not count.
TEST_F(FormerMaster, StaysConnectedWhileOnlyAReleaseIsUnsent) {
    EXPECT_EQ(acquire("A")[0].vote, Vote::granted);
    server().forget_log();
    server().takes_at_once = 0;
    (void)release("A");
    network.pass(2s);
    (void)extend("nobody");
    server().takes_at_once = 65'536;
    network.pass(2s);
    (void)extend("nobody");
    EXPECT_THAT(server().log(), Contains("1 EVAL"));
}

TEST_F(FormerMaster, GetsALeaseAfterItsRepliesArrivedInTime) {
    acquire_late("A");
    network.pass(500ms);
    network.resume(0);
    EXPECT_EQ(extend("A")[0].vote, Vote::granted);
    EXPECT_EQ(asked, 1);
}

// The Sentinels may name another server by now. A master that is cut off from its replicas answers like the
// last three. A client that uses its connection all the time would otherwise stay with it, because such a
// connection is never silent for a second.
TEST_F(FormerMaster, IsLeftIfItIsReadOnlyOrHasLostItsReplicas) {
    for (const auto* const words :
         {"-READONLY You can't write against a read only replica.\r\n",
          "-NOREPLICAS Not enough good replicas to write.\r\n",
          "-NOREPLICAS Not enough good replicas to write. script: 0, on @user_script:1.\r\n",
          "-ERR Error running script (call to f_0): @user_script: 1: -NOREPLICAS Not enough replicas.\r\n"}) {
        (void)extend("nobody");
        const auto before = asked;
        server().instead = words;
        const auto tally = acquire("A");
        EXPECT_EQ(tally[0].cause, Errc::connection_failed)
            << "it may pass, unlike that of a node without Sentinels";
        EXPECT_THAT(tally[0].detail, testing::ContainsRegex("READONLY|NOREPLICAS"));
        network.pass(100ms);
        EXPECT_EQ(extend("A")[0].vote, Vote::granted);
        EXPECT_EQ(asked, before + 1) << words;
    }
}

TEST_F(FormerMaster, GetsNoLeaseAfterItAcceptedTheHandshakeLate) {
    server().paused = true;
    EXPECT_FALSE(acquire("A")[0].sent);
    network.pass(1s);
    network.resume(0);
    EXPECT_EQ(acquire("B")[0].vote, Vote::granted);
    EXPECT_THAT(server().log(), Not(Contains("1 SET")));
    EXPECT_EQ(asked, 2);
}

// ---- Another server is named while there is traffic, so that no connection is ever silent for long

/// The Sentinels name one of two servers, and are asked for each new connection.
struct AReplacedMaster : testing::Test, RoundDriverWorld {
    AReplacedMaster()
        : RoundDriverWorld(2, {}, [this](Configs& configs) {
              configs.resize(1);
              configs[0].sentinels = std::make_shared<const std::vector<NodeConfig>>(1);
              configs[0].asks_sentinels = [this] { return Resolution::of_host("127.0.0.1", named); };
          }) {}
    MemoryServer& former() { return network.server(0); }
    MemoryServer& next() { return network.server(1); }
    /// Calls `then` while an extension waits for its reply, so that a second one needs another connection.
    void extend_meanwhile(const std::function<void()>& then) {
        network.clock().after(100us, then);
        (void)extend("A");
    }
    void expect_that_it_gets_nothing() {
        former().forget_log();
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(extend("A")[0].sent);
        EXPECT_THAT(former().log(), testing::IsEmpty());
    }

    std::uint16_t named = 1;
};

TEST_F(AReplacedMaster, GetsNothingOverItsIdleConnections) {
    extend_meanwhile([&] { (void)extend("A"); });
    ASSERT_EQ(former().open_connections(), 2u);
    extend_meanwhile([&] {
        extend_meanwhile([&] {
            named = 2;
            (void)extend("A");
        });
    });
    expect_that_it_gets_nothing();
}

// B4. The former master has executed nothing, so the refusal of its successor confirms no release.
TEST_F(AReplacedMaster, DoesNotConfirmAReleaseThatItRefuses) {
    (void)acquire("A");
    named = 2;
    former().instead = "-READONLY You can't write against a read only replica.\r\n";
    EXPECT_EQ(release("A")[0].vote, Vote::refused);
}

// The round sends the release once more, to the successor, and a later round does so, too.
TEST_F(AReplacedMaster, LeavesTheReleaseToItsSuccessorIfItHasLostItsReplicas) {
    (void)acquire("A");
    named = 2;
    const auto set_at_successor = [this] { next().redis->execute({"SET", "r", "A"}, {}); };
    set_at_successor();
    former().instead = "-NOREPLICAS Not enough good replicas to write.\r\n";
    EXPECT_EQ(release("A")[0].vote, Vote::granted);
    EXPECT_EQ(holder(1), "");
    set_at_successor();  // shows that a later round sends it once more
    network.pass(2s);
    (void)extend("nobody");
    EXPECT_EQ(holder(1), "");
}

// No waiter uses the listener at present.
TEST_F(AReplacedMaster, IsLeftByTheListenerOfAFormerWaiter) {
    ASSERT_TRUE(group->waiter()->listen(NodeSet{}.set(), {.deadline = network.clock().now() + 1s}));
    EXPECT_EQ(former().open_connections(), 1u);
    named = 2;
    network.pass(1s);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(extend("A")[0].sent);
    const auto before = next().open_connections();
    const auto waiter = group->waiter();
    ASSERT_TRUE(waiter->listen(NodeSet{}.set(), {.deadline = network.clock().now() + 1s}));
    EXPECT_EQ(next().open_connections(), before + 1);
}

TEST_F(AReplacedMaster, GetsNothingAfterItsPendingRepliesArrived) {
    (void)extend("A");
    former().paused = true;
    EXPECT_EQ(extend("A")[0].cause, Errc::timed_out);
    named = 2;
    network.pass(100ms);
    EXPECT_TRUE(extend("A")[0].sent);
    (void)extend("A");
    EXPECT_EQ(former().open_connections(), 0u) << "nothing is waited for there";
    network.resume(0);
    expect_that_it_gets_nothing();
}

// The probe was begun more than a second ago. A late reply on another connection has ended the back-off.
TEST_F(AReplacedMaster, GetsNothingOverAProbeThatTookLong) {
    (void)extend("A");
    former().paused = true;
    EXPECT_EQ(extend("A")[0].cause, Errc::timed_out);
    former().unreachable = true;
    network.pass(20ms);
    EXPECT_FALSE(extend("A")[0].sent) << "the probe";
    network.pass(1s);
    network.resume(0);
    former().forget_log();
    named = 2;
    network.clock().after(1ms, [this] { former().unreachable = false; });
    EXPECT_TRUE(extend("A")[0].sent);
    EXPECT_THAT(former().log(), testing::IsEmpty());
    EXPECT_THAT(next().log(), ElementsAre("1 PING", "1 EVAL"));
}

}  // namespace
}  // namespace redlock::test::former_master_test
