// Rules C1 to C4 and D6 against real servers: extension lengthens the keys that still hold the owner, and
// does nothing else; scripts are sent again where they are unknown.
#include "command_monitor.hpp"
#include "live_world.hpp"
#include "scheduling_delay.hpp"

#include <algorithm>

namespace redlock::test {
namespace {

struct Extend : testing::TestWithParam<Formation> {
    LiveWorld world{GetParam().size, {.node_timeout = 2s, .round = GetParam().round}};
    Lock lock = world.lock({.ttl = 10s});
    std::size_t majority = quorum(world.size());

    void SetUp() override {
        ASSERT_TRUE(world.warm_up());
        ASSERT_THAT(lock.acquire(), Succeeds());
        ASSERT_TRUE(wait_until([&] { return world.keys_of(lock.owner()) == world.size(); }));
    }

    bool all_expire_after(milliseconds time) {
        return std::ranges::all_of(world, [&](auto& server) { return expiry(server) > time; });
    }
};
INSTANTIATE_TEST_SUITE_P(Extend, Extend, testing::ValuesIn(formations({1, 3, 5})), by_formation);

// C1, S31. The expiry is raised on all nodes, in one round.
TEST_P(Extend, RaisesTheExpiryOnAllNodes) {
    const auto result = lock.extend(1min);
    ASSERT_THAT(result, Succeeds());
    EXPECT_EQ(result.attempts(), 1);
    EXPECT_GE(count(result, Vote::granted), majority);
    EXPECT_TRUE(wait_until([&] { return all_expire_after(50s); }));
    EXPECT_EQ(world.keys_of(lock.owner()), world.size());
}

// C1. No SET, no EXPIRE: the script alone.
TEST_P(Extend, SendsTheScriptAlone) {
    CommandMonitor monitor{world[0]};
    ASSERT_THAT(lock.extend(), Succeeds());
    ASSERT_TRUE(wait_until([&] { return !monitor.commands().empty(); }));
    ASSERT_THAT(monitor.commands(), SizeIs(1));
    EXPECT_THAT(monitor.commands()[0].words, ElementsAre(testing::AnyOf("EVAL", "EVALSHA"), testing::_, "1",
                                                         the_resource, std::string{lock.owner()}, "10000"));
}

// C1. Where the key has gone, the vote is a refusal, and the key is not created.
TEST_P(Extend, NeverCreatesAKey) {
    for (std::size_t node = 0; node < majority; ++node)
        ASSERT_EQ(world[node].command({"DEL", the_resource}), "1");
    const auto before = lock.remaining();
    const auto result = lock.extend(1min);
    EXPECT_THAT(result, FailsWith(Errc::lost));
    EXPECT_GE(count(result, Vote::refused), majority);
    EXPECT_EQ(world.keys_of("(nil)"), majority);
    EXPECT_LE(lock.remaining(), before) << "the old instant stands (C2)";
}

// C1. Where the key is another's, the vote is a refusal, and their key is neither changed nor lengthened.
TEST_P(Extend, IsRefusedByForeignKeys) {
    for (std::size_t node = 0; node < majority; ++node) {
        ASSERT_EQ(world[node].command({"DEL", the_resource}), "1");
        ASSERT_EQ(occupy(world[node], 20s), "OK");
    }
    EXPECT_THAT(lock.extend(1min), FailsWith(Errc::lost));
    EXPECT_EQ(world.keys_of("another"), majority);
    for (std::size_t node = 0; node < majority; ++node) EXPECT_THAT(expiry(world[node]), LastsAtMost(20s));
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    EXPECT_EQ(world.keys_of("another"), majority);
}

// C1, S3. A minority that has lost the key does not matter.
TEST_P(Extend, SucceedsWhereAMinorityLostTheKey) {
    for (auto node = majority; node < world.size(); ++node)
        ASSERT_EQ(world[node].command({"DEL", the_resource}), "1");
    EXPECT_THAT(lock.extend(1min), Succeeds());
    EXPECT_TRUE(wait_until([&] { return expiry(world[0]) > 50s; }));
    EXPECT_EQ(world.keys_of("(nil)"), world.size() - majority);
}

// C1. A shorter ttl shortens nothing: neither the keys nor the validity.
TEST_P(Extend, NeverShortens) {
    ASSERT_THAT(lock.extend(1min), Succeeds());
    EXPECT_THAT(lock.extend(5s), Succeeds());
    EXPECT_THAT(lock.remaining(), LastsAtLeast(30s));
    EXPECT_TRUE(wait_until([&] { return all_expire_after(30s); }));
}

// C1. It works, as release does, where memory is too short for a SET.
TEST_P(Extend, WorksWithoutMemory) {
    for (auto& server : world) ASSERT_EQ(server.command({"CONFIG", "SET", "maxmemory", "1"}), "OK");
    ASSERT_THAT(occupy(world[0]), HasSubstr("OOM"));
    EXPECT_THAT(lock.extend(1min), Succeeds());
    EXPECT_TRUE(wait_until([&] { return all_expire_after(50s); }));
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

// A3, C2. A frozen minority costs nothing; a frozen majority at most a budget, and the lock is not given up.
TEST(Extending, IsNotHeldUpByFrozenNodes) {
    constexpr auto budget = 500ms;
    LiveWorld world{5, {.node_timeout = budget}};
    auto lock = world.lock({.ttl = 1min});
    ASSERT_THAT(lock.acquire(), Succeeds());
    world[0].freeze();
    world[1].freeze();
    EXPECT_THAT(own_time([&] { EXPECT_THAT(lock.extend(), Succeeds()); }), LastsAtMost(budget));
    world[2].freeze();
    EXPECT_THAT(own_time([&] { EXPECT_THAT(lock.extend(), FailsWith(Errc::no_quorum)); }),
                LastsAtMost(2 * budget));
    EXPECT_TRUE(lock.valid());
    world[2].thaw();
    EXPECT_TRUE(wait_until([&] { return static_cast<bool>(lock.extend()); }));
}

// D6. NOSCRIPT costs another message in the same budget, no failure.
TEST(Scripts, AreSentAgainWhenTheServerHasForgottenThem) {
    LiveWorld world{3};
    ASSERT_TRUE(world.warm_up());
    const auto forget = [&] {
        for (auto& server : world) ASSERT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
    };
    auto lock = world.lock();
    for (int i = 0; i < 3; ++i) {
        ASSERT_THAT(lock.acquire(), Succeeds());
        forget();
        EXPECT_THAT(own_time([&] { EXPECT_THAT(lock.extend(30s), Succeeds()); }), LastsAtMost(2s));
        forget();
        EXPECT_THAT(lock.extend(1min), Succeeds());
        forget();
        const auto result = lock.release();
        EXPECT_THAT(result, Succeeds());
        EXPECT_EQ(count(result, Vote::granted), 3U);
        EXPECT_TRUE(world.clean());
    }
}

}  // namespace
}  // namespace redlock::test
