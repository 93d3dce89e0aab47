// Rules A, B and C against real servers: what acquire, extend and release send, and which keys the servers
// then have. The tests in tests/pure cover the meaning of the replies.
#include "command_monitor.hpp"
#include "live_world.hpp"

#include <algorithm>

namespace redlock::test::verbs_live_test {
namespace {

using testing::_;
using testing::AnyOf;

class Verbs : public InEachRound {};
INSTANTIATE_TEST_SUITE_P(EachRound, Verbs, each_round(), by_round);

// S5, S11, S26, S31, A10, A12, C1. Each server has the same key and owner. Each verb sends exactly one
// command.
TEST_P(Verbs, SetExtendAndDeleteOneKeyOnEachServer) {
    LiveWorld world{5, {.node_timeout = 2s, .round = GetParam()}};
    ASSERT_TRUE(world.warm_up());
    const CommandMonitor monitor{world[0]};
    auto lock = world.lock({.ttl = 12'345ms});
    const auto acquired = lock.acquire();
    ASSERT_THAT(acquired, Succeeds());
    EXPECT_GE(count(acquired, Vote::granted), 3U);
    const std::string owner{lock.owner()};
    ASSERT_TRUE(wait_until([&] { return world.keys_of(owner) == 5; }));
    for (auto& server : world) {
        EXPECT_THAT(expiry(server), LastsAtMost(12'345ms));
        EXPECT_THAT(expiry(server), LastsAtLeast(lock.remaining()));
        EXPECT_EQ(server.command({"DBSIZE"}), "1");
    }

    const auto extended = lock.extend(1min);
    ASSERT_THAT(extended, Succeeds());
    EXPECT_GE(count(extended, Vote::granted), 3U);
    EXPECT_TRUE(wait_until(
        [&] { return std::ranges::all_of(world, [](auto& server) { return expiry(server) > 50s; }); }));

    EXPECT_EQ(count(lock.release(), Vote::granted), 5U);
    EXPECT_TRUE(world.clean());

    const auto commands = monitor.commands();
    ASSERT_THAT(commands, SizeIs(3));
    EXPECT_THAT(commands[0], ElementsAre("SET", the_resource, owner, "NX", "PX", "12345"));
    EXPECT_THAT(commands[1], ElementsAre(AnyOf("EVAL", "EVALSHA"), _, "1", the_resource, owner, "60000"));
    EXPECT_THAT(commands[2], ElementsAre(AnyOf("EVAL", "EVALSHA"), _, "1", the_resource, owner));
}

// S5. The resource is the key, byte for byte.
TEST(AnyResource, IsUsedAsTheKeyUnchanged) {
    LiveWorld world;
    for (const auto& resource :
         {std::string{"a\0b", 3}, std::string{"a\r\nb\n"}, std::string{"\xFF\xFE\x80 \xC3"},
          std::string{"*1\r\n$4\r\nQUIT\r\n"}, std::string{" \"'{}[]\\ "}, std::string(1'048'576, '\xAB')}) {
        auto lock = world.lock(resource);
        ASSERT_THAT(lock.acquire(), Succeeds());
        for (auto& server : world) EXPECT_EQ(holder(server, resource), lock.owner());
        EXPECT_THAT(lock.extend(1min), Succeeds());
        EXPECT_THAT(lock.release(), Succeeds());
        EXPECT_TRUE(world.clean());
    }
}

// S54, D4. Nodes on unix sockets, in other databases.
TEST(Acquire, WorksOverUnixSocketsInAnyDatabase) {
    Cluster servers{3, RedisConfig{}.on_unix_socket()};
    std::vector<std::string> uris;
    for (auto& server : servers) uris.push_back(server.uri() + "?db=7");
    RedisNodes nodes{uris, {.node_timeout = 2s}};
    Lock lock{nodes, the_resource};
    ASSERT_THAT(lock.acquire(), Succeeds());
    for (auto& server : servers) {
        EXPECT_EQ(holder(server), "(nil)");
        auto connection = server.connect();
        ASSERT_EQ(connection.ask({"SELECT", "7"}), "OK");
        EXPECT_EQ(connection.ask({"GET", the_resource}), lock.owner());
    }
}

// A9. node_timeout is measured by our clock and not in ticks of the kernel, which are up to 10 ms each and
// would make every round late. The machine may be late at any time, so the test waits for three rounds in
// time.
TEST(AFrozenNode, DelaysARoundByOneNodeTimeout) {
    LiveWorld world{3, {.node_timeout = 10ms}};
    int in_time = 0;
    EXPECT_TRUE(wait_until([&] {
        EXPECT_TRUE(wait_until([&] { return count(world.lock().acquire(), Vote::granted) == 3; }));
        auto lock = world.lock();
        world[0].freeze();
        const auto result = lock.acquire();
        world[0].thaw();
        EXPECT_EQ(result.nodes()[0].cause, Errc::timed_out);
        EXPECT_THAT(result.nodes()[0].took, LastsAtLeast(10ms));
        if (result.nodes()[0].took <= 12ms) ++in_time;
        return in_time == 3;
    }));
}

// C1, B1. Both work if memory is too short for a SET.
TEST(ExtendAndRelease, WorkIfTheServerIsOutOfMemory) {
    LiveWorld world;
    auto lock = world.lock();
    ASSERT_THAT(lock.acquire(), Succeeds());
    for (auto& server : world) ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "1"}), "OK");
    ASSERT_THAT(world.lock("another", no_retry()).acquire(), Reports(0, Errc::out_of_memory));
    EXPECT_THAT(lock.extend(1min), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

}  // namespace
}  // namespace redlock::test::verbs_live_test
