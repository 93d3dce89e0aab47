// Rules B1 to B6 against real servers: release reaches every node, goes behind what is still pending, leaves
// the keys of others alone, and never throws.
#include "command_monitor.hpp"
#include "live_world.hpp"

#include <stdexcept>
#include <thread>

namespace redlock::test {
namespace {

/// The commands with `owner`, in the server's order, as "<client>: <first word>".
std::vector<std::string> commands_with(std::string_view owner, CommandMonitor& monitor) {
    std::vector<std::string> result;
    for (const auto& command : monitor.commands(owner))
        result.push_back(command.client + ": " + command.words[0]);
    return result;
}

// S8, S26. On every node, and nothing else.
TEST(Release, DeletesTheKeyOnAllNodes) {
    LiveWorld world{5};
    auto lock = world.lock();
    ASSERT_THAT(lock.acquire(), Succeeds());
    ASSERT_EQ(world[3].command({"SET", "other", "x"}), "OK");
    const auto result = lock.release();
    EXPECT_THAT(result, Succeeds());
    EXPECT_EQ(count(result, Vote::granted), 5U);
    EXPECT_EQ(world.keys_of("(nil)"), 5U);
    EXPECT_EQ(world[3].command({"GET", "other"}), "x");
    EXPECT_FALSE(lock.valid());
    EXPECT_EQ(lock.owner(), "");
}

// B1, S17. Also to the nodes that refused.
TEST(Release, GoesToNodesThatRefused) {
    LiveWorld world{3};
    ASSERT_EQ(occupy(world[1]), "OK");
    CommandMonitor monitor{world[1]};
    auto lock = world.lock();
    ASSERT_THAT(lock.acquire(), Succeeds());
    const auto owner = std::string{lock.owner()};
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_THAT(monitor.commands(owner), SizeIs(2)) << "the SET and the release";
    EXPECT_EQ(world.keys_of("another"), 1U);
}

// ---- Behind a SET that is still under way (B5).

struct BehindAPendingSet : testing::TestWithParam<std::tuple<Formation, Standstill>> {
    const Formation formation = std::get<0>(GetParam());
    const Standstill standstill = std::get<1>(GetParam());
    LiveWorld world{formation.size, {.node_timeout = 300ms, .round = formation.round}};
};

INSTANTIATE_TEST_SUITE_P(Release, BehindAPendingSet,
                         testing::Combine(testing::ValuesIn(formations({1, 3})),
                                          testing::ValuesIn(standstills())),
                         by_formation_and_standstill);

// B1, B5, S17. The cleanup of a failed acquire is written behind each SET that was not answered, on the same
// connection, so that no key can outlive it however late the server wakes up.
TEST_P(BehindAPendingSet, TheCleanupGoesOnTheSameConnection) {
    ASSERT_TRUE(world.warm_up());
    std::deque<CommandMonitor> monitors;
    for (auto& server : world) monitors.emplace_back(server);
    for (auto& server : world) standstill.begin(server);
    EXPECT_THAT(world.lock(no_retry()).acquire(), FailsWith(Errc::no_quorum));
    for (auto& server : world) standstill.end(server);

    std::size_t asked = 0;
    for (auto& monitor : monitors) {
        EXPECT_TRUE(
            wait_until([&] { return monitor.commands("SET").size() == monitor.commands("EVAL").size(); }));
        for (const auto& set : monitor.commands("SET")) {
            ++asked;
            EXPECT_THAT(commands_with(set.words.at(2), monitor),
                        ElementsAre(set.client + ": SET", set.client + ": EVAL"));
        }
    }
    EXPECT_GE(asked, quorum(world.size())) << "in turn, the last need not be asked";
    EXPECT_TRUE(world.clean());
}

// B5. The same where the nodes object is destroyed before: what it had written arrives in its order.
TEST_P(BehindAPendingSet, TheReleaseArrivesThoughTheNodesAreDestroyed) {
    CommandMonitor monitor{world[0]};
    {
        RedisNodes nodes{world.uris(), {.node_timeout = 300ms, .round = formation.round}};
        {
            Lock warm{nodes, "warm-up", no_retry()};
            ASSERT_THAT(warm.acquire(), Succeeds());
        }
        standstill.begin(world[0]);
        Lock lock{nodes, the_resource, no_retry()};
        (void)lock.acquire();
    }
    standstill.end(world[0]);
    // It has taken all that was written when it has closed its end, too.
    EXPECT_TRUE(wait_until([&] {
        return world[0].command({"CLIENT", "LIST"}).find("user=default") == std::string::npos;
    }));
    EXPECT_EQ(holder(world[0]), "(nil)");
}

// B5, D9. Also while another thread releases another lock on that connection.
TEST(Release, GoesBehindItsSetThoughAnotherThreadReleasesThere) {
    LiveWorld world{5, {.node_timeout = 700ms}};
    auto theirs = world.lock("theirs", {.ttl = 1min});
    ASSERT_THAT(theirs.acquire(), Succeeds());
    world[4].freeze();
    auto ours = world.lock({.ttl = 1min});
    ASSERT_THAT(ours.acquire(), Succeeds());  // its SET waits at 4
    world[3].freeze();
    std::jthread other{[&] { theirs.unlock(); }};  // waits for 3; its release to 4 is being sent
    ASSERT_TRUE(wait_until([&] { return holder(world[0], "theirs") == "(nil)"; }));
    EXPECT_THAT(ours.release(), Succeeds());
    other.join();
    world[4].thaw();
    EXPECT_TRUE(wait_until([&] { return holder(world[4]) == "(nil)"; }, 3s)) << "a stray key";
}

// B1, B5. However many others were released on that connection before.
TEST(Release, IsNotCrowdedOutByTheReleasesOfOthers) {
    LiveWorld world{3, {.node_timeout = 500ms}};
    std::deque<Lock> others;
    for (int i = 0; i < 40; ++i) {
        others.push_back(world.lock("other " + std::to_string(i), {.ttl = 1min}));
        ASSERT_THAT(others.back().acquire(), Succeeds());
    }
    world[2].freeze();
    auto lock = world.lock({.ttl = 1min});
    ASSERT_THAT(lock.acquire(), Succeeds());
    others.clear();
    EXPECT_THAT(lock.release(), Succeeds());
    world[2].thaw();
    EXPECT_TRUE(wait_until([&] { return holder(world[2]) == "(nil)"; }, 3s)) << "a stray key";
}

// ---- Over connections that have been closed meanwhile (B1, D4).

void close_connections(Cluster& servers) {
    for (auto& server : servers) ASSERT_NE(server.command({"CLIENT", "KILL", "USER", "default"}), "0");
}

// B1. The servers have closed their idle connections: the release goes over new ones, however recently the
// old ones were used.
TEST(Release, GoesOverNewConnectionsWhereTheOldWereClosed) {
    LiveWorld world{3};
    for (int i = 0; i < 20; ++i) {
        auto lock = world.lock("resource " + std::to_string(i));
        ASSERT_THAT(lock.acquire_for(10s), Succeeds());
        close_connections(world);
        EXPECT_THAT(lock.release(), Succeeds());
    }
    EXPECT_TRUE(world.clean()) << "a stray key";
}

// B1. Also to a node that is frozen: it finds the release when it wakes up, like the SET it got before.
TEST(Release, GoesToAFrozenNodeOverANewConnection) {
    LiveWorld world{3, {.node_timeout = 500ms}};
    auto lock = world.lock({.ttl = 1min});
    ASSERT_THAT(lock.acquire(), Succeeds());
    (void)world[2].command({"CLIENT", "KILL", "USER", "default"});
    world[2].freeze();
    EXPECT_THAT(lock.release(), Succeeds());
    for (const auto end = boot_clock().now() + 1500ms; boot_clock().now() < end;)  // work goes on meanwhile
        EXPECT_TRUE(world.lock("other").try_lock());
    world[2].thaw();
    EXPECT_TRUE(wait_until([&] { return world.clean(); }, 3s)) << "a stray key";
}

// A3. A frozen node keeps no other from being connected to and sent the release.
TEST(Release, GoesOverNewConnectionsWhileAnotherNodeIsFrozen) {
    LiveWorld world{3, {.node_timeout = 500ms}};
    auto lock = world.lock();
    ASSERT_THAT(lock.acquire(), Succeeds());
    for (const std::size_t node : {1U, 2U}) (void)world[node].command({"CLIENT", "KILL", "USER", "default"});
    world[0].freeze();
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_EQ(holder(world[1]), "(nil)");
    EXPECT_EQ(holder(world[2]), "(nil)");
}

// A3, D6. Nor from being sent the script again that it has forgotten.
TEST(Release, SendsTheScriptAgainWhileAnotherNodeIsFrozen) {
    LiveWorld world{3, {.node_timeout = 500ms}};
    ASSERT_TRUE(world.warm_up());
    auto lock = world.lock();
    ASSERT_THAT(lock.acquire(), Succeeds());
    for (const std::size_t node : {1U, 2U}) ASSERT_EQ(world[node].command({"SCRIPT", "FLUSH"}), "OK");
    world[0].freeze();
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_EQ(holder(world[1]), "(nil)");
    EXPECT_EQ(holder(world[2]), "(nil)");
}

// ---- Without an answer (B4).

// B4. Nodes that did not answer: the owner is kept, and releasing again succeeds once they do.
TEST(Release, CanBeRepeatedUntilItIsAnswered) {
    LiveWorld world{3, {.node_timeout = 300ms}};
    auto lock = world.lock({.ttl = 1min});
    ASSERT_THAT(lock.acquire(), Succeeds());
    world[0].freeze();
    world[1].freeze();
    const auto first = lock.release();
    EXPECT_THAT(first, FailsWith(Errc::no_quorum));
    EXPECT_THAT(first, Reports(0, Errc::timed_out));
    EXPECT_FALSE(lock.valid());
    EXPECT_EQ(lock.owner().size(), 40U);
    world[0].thaw();
    world[1].thaw();
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(world.clean());
    EXPECT_EQ(lock.owner(), "");
    EXPECT_THAT(lock.release(), FailsWith(Errc::not_held));
}

// B4. Nodes that were down during the first release and come back with their data.
TEST(Release, RemovesWhatNodesBringBackFromTheirDisks) {
    LiveWorld world{3, {.node_timeout = 2s}, RedisConfig{}.keeps_data()};
    auto lock = world.lock({.ttl = 1min});
    ASSERT_THAT(lock.acquire(), Succeeds());
    world[0].kill();
    world[1].kill();
    EXPECT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    world[0].restart();
    world[1].restart();
    ASSERT_EQ(world.keys_of(lock.owner()), 2U);
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

// ---- No exception, no output (B2, E).

// B2, E. The caller's exception is passed on, with every node gone or hanging: no other exception, no
// termination, no output.
TEST(Release, SwallowsEveryFaultWhenAnExceptionUnwinds) {
    LiveWorld world{3, {.node_timeout = 300ms}};
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    EXPECT_THROW(
        {
            auto lock = world.lock();
            ASSERT_THAT(lock.acquire(), Succeeds());
            world[0].kill();
            world[1].freeze();
            keep_from_writing(world[2]);
            throw std::runtime_error("the caller's own");
        },
        std::runtime_error);
    const auto output = testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
    EXPECT_EQ(output, "");
}

}  // namespace
}  // namespace redlock::test
