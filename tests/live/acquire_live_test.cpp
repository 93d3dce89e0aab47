// Rules A1 to A7, A11 and A12 against real servers: what acquire writes, when it succeeds, and what it leaves
// behind when it does not.
#include "command_monitor.hpp"
#include "forked_child.hpp"
#include "live_world.hpp"
#include "scheduling_delay.hpp"

#include <algorithm>

namespace redlock::test {
namespace {

/// 1, 3 and 5 servers, asked in turn or all at once.
struct OnEachNumberOfNodes : testing::TestWithParam<Formation> {
    LiveWorld world{GetParam().size, {.node_timeout = 2s, .round = GetParam().round}};
    std::size_t size = GetParam().size;
    std::size_t majority = quorum(size);
};
INSTANTIATE_TEST_SUITE_P(Acquire, OnEachNumberOfNodes, testing::ValuesIn(formations({1, 3, 5})),
                         by_formation);

// S5, S11, A12. The same key and owner on each, with the ttl as its expiry, and nothing else.
TEST_P(OnEachNumberOfNodes, WritesTheOwnerUnderTheResourceAndLetsItExpire) {
    ASSERT_TRUE(world.warm_up());
    auto lock = world.lock({.ttl = 30s});
    const auto result = lock.acquire();
    ASSERT_THAT(result, Succeeds());
    EXPECT_EQ(result.attempts(), 1);
    EXPECT_GE(count(result, Vote::granted), majority);
    EXPECT_EQ(lock.owner().size(), 40U);
    ASSERT_TRUE(wait_until([&] { return world.keys_of(lock.owner()) == size; }));
    for (auto& server : world) {
        EXPECT_THAT(expiry(server), LastsAtMost(30s));
        EXPECT_THAT(expiry(server), LastsAtLeast(lock.remaining()));
        EXPECT_EQ(server.command({"DBSIZE"}), "1");
    }
}

// S5, A10. One atomic command, word for word.
TEST_P(OnEachNumberOfNodes, SendsExactlyOneSetNxPx) {
    ASSERT_TRUE(world.warm_up());
    std::deque<CommandMonitor> monitors;
    for (auto& server : world) monitors.emplace_back(server);
    auto lock = world.lock({.ttl = 12'345ms});
    ASSERT_THAT(lock.acquire(), Succeeds());
    const auto owner = std::string{lock.owner()};
    for (auto& monitor : monitors) {
        ASSERT_TRUE(wait_until([&] { return !monitor.commands("SET").empty(); }));
        ASSERT_THAT(monitor.commands(), SizeIs(1));
        EXPECT_THAT(monitor.commands()[0].words,
                    ElementsAre("SET", the_resource, owner, "NX", "PX", "12345"));
    }
}

// A2, A7, S8, S17. A refused attempt leaves no key of its own and all keys of others.
TEST_P(OnEachNumberOfNodes, IsRefusedByAForeignMajorityAndLeavesNothingBehind) {
    for (auto node = size - majority; node < size; ++node) ASSERT_EQ(occupy(world[node]), "OK");
    auto lock = world.lock({.retry = {.attempts = 3, .delay = 10ms}});
    const auto result = lock.acquire();
    EXPECT_THAT(result, FailsWith(Errc::held_by_other));
    EXPECT_EQ(result.attempts(), 3);
    EXPECT_EQ(lock.owner(), "");
    EXPECT_TRUE(wait_until([&] { return world.keys_of("(nil)") == size - majority; }));
    EXPECT_EQ(world.keys_of("another"), majority);
}

// S3, A7. A foreign minority is not enough to keep it from us; their keys are left alone.
TEST_P(OnEachNumberOfNodes, SucceedsAgainstAForeignMinority) {
    for (std::size_t node = 0; node < size - majority; ++node) ASSERT_EQ(occupy(world[node]), "OK");
    auto lock = world.lock();
    const auto result = lock.acquire();
    EXPECT_THAT(result, Succeeds());
    EXPECT_TRUE(wait_until([&] { return world.keys_of(lock.owner()) == majority; }));
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_EQ(world.keys_of("another"), size - majority);
    EXPECT_EQ(world.keys_of("(nil)"), majority);
}

// A3. A minority of nodes that were killed costs next to nothing, and is reported.
TEST_P(OnEachNumberOfNodes, SucceedsWithAMinorityKilled) {
    for (std::size_t node = 0; node < size - majority; ++node) world[node].kill();
    auto lock = world.lock();
    const auto result = lock.acquire();
    ASSERT_THAT(result, Succeeds());
    for (std::size_t node = 0; node < size - majority; ++node)
        EXPECT_THAT(result, Reports(node, Errc::connection_failed));
    EXPECT_TRUE(wait_until([&] { return world.keys_of(lock.owner()) == majority; }));
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

// A2, A3, A12. Without a majority it fails, says why for each node, and cleans up where it can.
TEST_P(OnEachNumberOfNodes, FailsWithoutAMajorityAndCleansUp) {
    for (std::size_t node = size - majority; node < size; ++node) world[node].kill();
    auto lock = world.lock(no_retry());
    const auto result = lock.acquire();
    EXPECT_THAT(result, FailsWith(Errc::no_quorum));
    EXPECT_THAT(result.message(), HasSubstr(world[size - 1].name() + " connection failed"));
    EXPECT_THAT(result, Reports(size - 1, Errc::connection_failed));
    EXPECT_TRUE(wait_until([&] { return world.clean(); }));
    EXPECT_FALSE(lock.valid());
}

// ---- Any resource.

struct Resource {
    std::string name;
    std::string bytes;
};
void PrintTo(const Resource& resource, std::ostream* out) {
    *out << resource.name;
}

struct AnyResource : testing::TestWithParam<Resource> {};
INSTANTIATE_TEST_SUITE_P(Acquire, AnyResource,
                         testing::Values(Resource{"WithNul", {"a\0b", 3}},
                                         Resource{"WithNewlines", "a\r\nb\n"},
                                         Resource{"NotUtf8", "\xFF\xFE\x80 \xC3"},
                                         Resource{"LikeTheProtocol", "*1\r\n$4\r\nQUIT\r\n"},
                                         Resource{"WithSpacesAndQuotes", " \"'{}[]\\ "},
                                         Resource{"OfOneByte", "x"},
                                         Resource{"OfOneMebibyte", std::string(1'048'576, '\xAB')}),
                         by_name);

// S5. The resource is the key, byte for byte; acquired, refused to another, extended and released.
TEST_P(AnyResource, IsTheKeyAsItIs) {
    const auto& resource = GetParam().bytes;
    LiveWorld world;
    auto lock = world.lock(resource);
    ASSERT_THAT(lock.acquire(), Succeeds());
    for (auto& server : world) EXPECT_EQ(holder(server, resource), lock.owner());
    EXPECT_THAT(world.lock(resource).try_acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(lock.extend(1min), Succeeds());
    EXPECT_TRUE(wait_until([&] {
        return std::ranges::all_of(world, [&](auto& server) { return expiry(server, resource) > 30s; });
    }));
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

// A4. Two of five are not a majority because three have never been up.
TEST(Acquire, CountsNodesThatWereDownAtTheStart) {
    Cluster servers{5};
    for (const std::size_t node : {1U, 2U, 4U}) servers[node].kill();
    RedisNodes nodes{servers.uris(), {.node_timeout = 2s}};
    Lock lock{nodes, the_resource, no_retry()};
    EXPECT_THAT(lock.acquire(), FailsWith(Errc::no_quorum));
    EXPECT_EQ(holder(servers[0]), "(nil)");
    EXPECT_EQ(holder(servers[3]), "(nil)");
    servers[2].restart();
    EXPECT_TRUE(wait_until([&] { return static_cast<bool>(lock.acquire()); }));
}

// A4. Constructing needs no node; when the nodes come up, the same objects work.
TEST_P(OnEachNumberOfNodes, WorksWithTheSameObjectsOnceTheNodesComeUp) {
    for (auto& server : world) server.kill();
    RedisNodes nodes{world.uris(), {.node_timeout = 2s, .round = GetParam().round}};
    Lock lock{nodes, the_resource, no_retry()};
    for (int i = 0; i < 3; ++i) {
        const auto result = lock.acquire();
        EXPECT_THAT(result, FailsWith(Errc::no_quorum));
        EXPECT_EQ(result.attempts(), 1);
    }
    for (auto& server : world) server.restart();
    EXPECT_THAT(lock.acquire(), Succeeds()) << "at once: without them there is no quorum";
}

// S36. Other languages' clients, which SET NX PX and compare-and-delete, and this one exclude one another.
TEST(Acquire, ExcludesAndIsExcludedByOtherClients) {
    LiveWorld world;
    auto lock = world.lock(no_retry());
    ASSERT_THAT(lock.acquire(), Succeeds());
    for (auto& server : world) EXPECT_EQ(occupy(server), "(nil)");
    ASSERT_THAT(lock.release(), Succeeds());

    for (auto& server : world) ASSERT_EQ(occupy(server), "OK");
    EXPECT_THAT(lock.acquire(), FailsWith(Errc::held_by_other));
    const std::string release =
        R"(if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end)";
    for (auto& server : world)
        EXPECT_EQ(server.command({"EVAL", release, "1", the_resource, "another"}), "1");
    EXPECT_THAT(lock.acquire(), Succeeds());
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

// S2, S9. A holder that was killed holds until its ttl is over; then the next gets it, without delay.
TEST(Acquire, SucceedsSoonAfterTheTtlOfAHolderThatWasKilled) {
    constexpr auto ttl = 1s;
    LiveWorld world{3, {.node_timeout = 500ms}};
    ForkedChild holder{[&](auto report) {
        auto lock = world.lock({.ttl = ttl});
        report(lock.acquire() ? "held" : "not held");
        ::pause();
    }};
    ASSERT_EQ(holder.receive(), "held");
    auto lock = world.lock({.retry = {.delay = 20ms}});
    EXPECT_THAT(own_time([&] {
                    holder.kill();
                    EXPECT_THAT(lock.try_acquire(), FailsWith(Errc::held_by_other))
                        << "no other process releases for it";
                    EXPECT_THAT(lock.acquire_for(10s), Succeeds());
                }),
                LastsAtMost(ttl + 100ms));
}

// A9. By our clock and not in ticks of the kernel, which are up to 10 ms each: those would make every round
// late. The machine itself may be late at any time, so three rounds in time are waited for.
TEST(AFrozenNode, CostsARoundItsBudgetAndNoMore) {
    LiveWorld world{3, {.node_timeout = 10ms}};
    int in_time = 0;
    EXPECT_TRUE(wait_until(
        [&] {
            EXPECT_TRUE(wait_until([&] { return count(world.lock().acquire(), Vote::granted) == 3; }));
            auto lock = world.lock();
            world[0].freeze();
            const auto result = lock.acquire();
            world[0].thaw();
            EXPECT_EQ(result.nodes()[0].cause, Errc::timed_out);
            EXPECT_THAT(result.nodes()[0].took, LastsAtLeast(10ms));
            if (result.nodes()[0].took <= 12ms) ++in_time;
            return in_time == 3;
        },
        30s));
}

}  // namespace
}  // namespace redlock::test
