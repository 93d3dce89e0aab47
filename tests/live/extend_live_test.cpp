// Rules C1 to C4 against real servers: extension lengthens the keys that are still ours, and does nothing
// else.
#include "bystander.hpp"
#include "live_world.hpp"
#include "monitor.hpp"

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

// C2, S32. The validity counts from the start of the extension: its ttl less the drift, not added to the old.
TEST_P(Extend, CountsTheValidityFromItsOwnStart) {
    const auto before = boot_clock().now();
    const auto result = lock.extend(1min);
    const auto after = boot_clock().now();
    ASSERT_THAT(result, Succeeds());
    EXPECT_THAT(result.validity(), LastsAtMost(1min - 602ms));
    EXPECT_THAT(lock.remaining(), LastsAtMost(1min - 602ms));
    EXPECT_THAT(lock.remaining(), LastsAtLeast(1min - 602ms - (after - before) - 1s));
    for (auto& server : world) EXPECT_THAT(expiry(server) + 1s, LastsAtLeast(result.validity() - 1min));
}

// C1. No SET, no EXPIRE: the script alone.
TEST_P(Extend, SendsTheScriptAlone) {
    Monitor monitor{world[0]};
    ASSERT_THAT(lock.extend(), Succeeds());
    ASSERT_TRUE(wait_until([&] { return !monitor.commands().empty(); }));
    ASSERT_THAT(monitor.commands(), SizeIs(1));
    EXPECT_THAT(monitor.commands()[0].words, ElementsAre(testing::AnyOf("EVAL", "EVALSHA"), testing::_, "1",
                                                         the_resource, std::string{lock.owner()}, "10000"));
}

// C1. Where the key has gone, the vote is a refusal, and the key is not made again.
TEST_P(Extend, NeverMakesAKeyAgain) {
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

// C2. Without a majority the old instant stands: still valid until then, and it can be tried again.
TEST_P(Extend, LeavesTheOldInstantWhenItFails) {
    for (std::size_t node = 0; node < majority; ++node) world[node].kill();
    const auto before = boot_clock().now() + lock.remaining();
    const auto result = lock.extend(1min);
    EXPECT_THAT(result, FailsWith(Errc::no_quorum));
    EXPECT_THAT(result, Reports(0, Errc::connection_failed));
    EXPECT_TRUE(lock.valid());
    const auto after = boot_clock().now() + lock.remaining();
    EXPECT_THAT(after - before, LastsAtMost(1s)) << "but for the time between two readings of the clock";
    EXPECT_THAT(before - after, LastsAtMost(1s));
}

// C3, C4. Once the validity has passed the lock is lost for good, though the keys may live.
TEST(Extending, IsRefusedOnceTheValidityHasPassed) {
    LiveWorld world{3, {.node_timeout = 100ms}};
    auto lock = world.lock({.ttl = 1s, .drift_factor = 0.8});  // the keys live 0.8 s longer
    ASSERT_THAT(lock.acquire_for(10s), Succeeds());
    ASSERT_TRUE(wait_until([&] { return !lock.valid(); }));
    Monitor monitor{world[0]};
    EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
    EXPECT_THAT(monitor.commands(), IsEmpty()) << "no I/O";
    EXPECT_FALSE(lock.valid());
    EXPECT_EQ(lock.remaining(), 0ns);
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

}  // namespace
}  // namespace redlock::test
