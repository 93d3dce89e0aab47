// Releases that do not wait for replies. They are sent to all nodes, and the next commands for the resource
// follow on the same connections.
#include "waiting_world.hpp"

#include <redlock/algorithm/acquire.hpp>
#include <redlock/algorithm/algorithm.hpp>
#include <redlock/lock.hpp>
#include <redlock/query.hpp>

#include <optional>
#include <string>
#include <utility>

namespace redlock::test::release_without_waiting_test {
namespace {

struct ReleaseWithoutWaiting : testing::Test {
    Lock lock(std::string resource = "r") { return {*nodes, std::move(resource), {}, clock, entropy}; }
    Lock held() {
        auto it = lock();
        EXPECT_TRUE(it.acquire());
        return it;
    }
    std::string holder(std::size_t node) { return network.text_at(node, "r"); }

    MemoryNetwork network{3};
    std::optional<MemoryNodes> nodes{std::in_place, network, 3,
                                     NodesOptions{.node_timeout = 50ms, .round = Round::all_at_once}};
    Clock& clock = network.clock();
    ConstantEntropy entropy{0x11};
};

TEST_F(ReleaseWithoutWaiting, DoesNotWaitForReplies) {
    for (const bool unlocks : {true, false}) {
        std::optional<Lock> it{lock()};
        ASSERT_TRUE(it->acquire());
        const auto before = clock.now();
        if (unlocks) it->unlock();
        EXPECT_EQ(it->owner().empty(), unlocks);
        it.reset();
        EXPECT_EQ(clock.now(), before);
        for (std::size_t node = 0; node < 3; ++node) EXPECT_EQ(holder(node), "");
    }
}

// On another connection, the SET could overtake the release. The node would then refuse the SET because the
// key of this client still exists.
TEST_F(ReleaseWithoutWaiting, PrecedesTheNextSetOfOneOfItsResources) {
    Lock both{*nodes, {"r", "s"}, {}, clock, entropy};
    ASSERT_TRUE(both.acquire());
    auto& server = network.server(0);
    server.paused = true;
    server.forget_log();
    both.unlock();
    auto next = lock("s");
    (void)next.try_acquire();
    network.resume(0);
    EXPECT_THAT(server.log(), ElementsAre("1 EVAL", "1 SET"));
}

// No connection is opened only for a holder description.
TEST_F(ReleaseWithoutWaiting, OpensNoConnectionForAHolderDescription) {
    Lock noted{*nodes, "r", {.holder = "me"}, clock, entropy};
    ASSERT_TRUE(noted.acquire());
    network.pass(1s);
    (void)query(*nodes, "r");  // reads the replies that have arrived
    auto& server = network.server(0);
    server.paused = true;
    server.forget_log();
    ASSERT_TRUE(noted.extend());
    network.resume(0);
    EXPECT_THAT(server.log(), ElementsAre("1 EVAL", "1 EVAL"));
    EXPECT_EQ(server.connections(), 1U);
}

TEST_F(ReleaseWithoutWaiting, DoesNotDelayOtherResources) {
    auto it = held();
    auto& server = network.server(0);
    it.unlock();
    auto other = lock("other");
    ASSERT_TRUE(other.try_acquire());
    EXPECT_EQ(server.connections(), 1U);
}

// After the restart, the server does not know the script any more. A release that does not wait for replies
// cannot be sent again after a NOSCRIPT error, so its command has to contain the text of the script.
TEST_F(ReleaseWithoutWaiting, SendsTheScriptInFull) {
    auto it = held();
    (void)it.release();
    ASSERT_TRUE(it.acquire());
    network.server(0).redis->restart("run-0", network.server(0).redis->keys());
    it.unlock();
    EXPECT_EQ(holder(0), "");
}

// The nodes share the node_timeout: they do not have one node_timeout each, one after the other.
TEST_F(ReleaseWithoutWaiting, HasOneNodeTimeoutForAllNodesInTheDestructor) {
    auto it = held();
    for (std::size_t node = 0; node < 3; ++node) network.server(node).takes_at_once = 6;
    it.unlock();
    const auto took = time_taken(network, [&] { nodes.reset(); });
    for (std::size_t node = 0; node < 3; ++node) EXPECT_EQ(holder(node), "") << node;
    EXPECT_GT(took, 50ms / 2) << "else it would show nothing";
    EXPECT_LE(took, 51ms);
}

// The replies to the two releases arrive before the reply with the run id of the server.
TEST(ReleaseWithoutWaitingInAQuarantine, DoesNotMixUpReplies) {
    MemoryNetwork network{1};
    MemoryNodes nodes{network, 1, {.node_timeout = 50ms, .quarantine = 20s}};
    auto& clock = network.clock();
    ConstantEntropy entropy{0x11};
    const std::vector<std::string> resources{"r"};
    Lease lease;
    ASSERT_FALSE(lease.owner.draw(entropy));
    lease.may_hold_key.set();
    const auto release = [&] {
        (void)nodes.ask(algorithm::delete_request(resources, lease), {.awaits_answers = false});
    };
    release();
    Lock lock{nodes, "r", {}, clock, entropy};
    network.pass(20s);
    release();
    (void)lock.try_acquire();  // starts the quarantine
    network.pass(21s);
    EXPECT_TRUE(lock.try_acquire());
}

// The release of a fair lock waits for replies because they tell whether other clients wait.
TEST_F(ReleaseWithoutWaiting, WaitsForRepliesIfTheLockIsFair) {
    Lock fair{*nodes, "r", {.fair = true}, clock, entropy};
    ASSERT_TRUE(fair.acquire());
    EXPECT_GT(time_taken(network, [&] { fair.unlock(); }), 0ms);
}

}  // namespace
}  // namespace redlock::test::release_without_waiting_test
