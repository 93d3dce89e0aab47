// S29, S30: a node that may have forgotten the holders does not vote, until the longest ttl is over.
#include "guarantee_world.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <fstream>

namespace redlock::test {
namespace {

class Quarantine : public InEachRound {
protected:
    QuarantineWorld world{3, {}, GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Asking, Quarantine, each_round(), by_round);

// A node that was never asked before may have been restarted. The first acquire starts its time.
TEST(AFreshNode, VotesAfterTheQuarantine) {
    LiveWorld world{1, {.node_timeout = 1s, .quarantine = 2s}};
    auto lock = world.lock(no_retry(2s));
    const auto first = lock.acquire();
    EXPECT_THAT(first, FailsWith(Errc::no_quorum));
    EXPECT_THAT(first, Reports(0, Errc::quarantined));
    EXPECT_THAT(first.message(), HasSubstr("for another 2000 ms"));
    EXPECT_THAT(time_taken([&] { EXPECT_THAT(lock.acquire_for(10s), Succeeds()); }), LastsAtLeast(1900ms));
}

TEST_P(Quarantine, MakesNoDifferenceOnceItIsOver) {
    auto lock = world.claim();
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(world.keys_of(lock.owner()), 3U);
    EXPECT_THAT(expiry(world[0]), LastsAtMost(quarantine));
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_EQ(world.keys_of("(nil)"), 3U);
}

// S30. Two of three nodes are restarted empty while the lock is held: no other client gets it.
TEST_P(Quarantine, KeepsNodesThatWereRestartedEmptyFromGrantingASecondLock) {
    auto holder = world.claim();
    ASSERT_THAT(holder.acquire(), Succeeds());
    for (const std::size_t node : {0U, 1U}) world[node].restart_empty();
    auto other = world.claim();
    const auto result = other.acquire();
    ASSERT_TRUE(holder.valid()) << "too slow a machine: the lock is over";
    EXPECT_FALSE(result);
    EXPECT_EQ(count(result, Vote::granted), 0U);
    EXPECT_TRUE(wait_until([&] {  // the connections to the old servers are found broken one by one
        const auto later = other.acquire();
        return later.nodes()[0].cause == Errc::quarantined || later.nodes()[1].cause == Errc::quarantined;
    }));
}

// The control: without the quarantine there are two holders (S28).
TEST(WithoutAQuarantine, NodesThatWereRestartedEmptyGrantASecondLock) {
    LiveWorld world{3, {.node_timeout = 1s}};
    auto holder = world.lock({.ttl = 1min});
    ASSERT_THAT(holder.acquire(), Succeeds());
    for (const std::size_t node : {0U, 1U}) world[node].restart_empty();
    auto other = world.lock({.ttl = 1min});
    EXPECT_THAT(other.acquire_for(5s), Succeeds());
    EXPECT_TRUE(holder.valid());
}

// One minority may be in quarantine, as it may be down.
TEST_P(Quarantine, LeavesAMajorityWithoutTheRestartedNode) {
    world[1].restart_empty();
    auto lock = world.claim();
    const auto result = lock.acquire();
    EXPECT_THAT(result, Succeeds());
    EXPECT_THAT(result, HasNoVoteOf(1, Errc::quarantined));
    EXPECT_EQ(holder(world[1]), "(nil)");
}

// A server that has lost the tail of its log comes back with a marker, but of another run.
TEST_P(Quarantine, IsForNodesThatWereRestartedWithOldDataToo) {
    QuarantineWorld lasting{3, RedisConfig{}.keeps_data(), GetParam()};
    const auto marker = marker_of(lasting[1]);
    lasting[1].restart();
    ASSERT_NE(lasting[1].command({"GET", marker}), "(nil)");
    auto lock = lasting.claim();
    const auto result = lock.acquire();
    EXPECT_THAT(result, Succeeds());
    EXPECT_THAT(result, HasNoVoteOf(1, Errc::quarantined));
}

/// How a node loses its data, or how long it has had them, without a restart.
struct Loss {
    std::string name;
    void (*apply)(RedisServer&);
};
void PrintTo(const Loss& loss, std::ostream* out) {
    *out << loss.name;
}

class QuarantineAfter : public testing::TestWithParam<Loss> {};
INSTANTIATE_TEST_SUITE_P(
    Losing, QuarantineAfter,
    testing::Values(Loss{"EverythingByFlushall", [](auto& server) { (void)server.command({"FLUSHALL"}); }},
                    Loss{"TheMarkerByEviction",
                         [](auto& server) {
                             (void)server.command({"DEL", marker_of(server)});
                         }},
                    Loss{"TimeByAClockSetBack", [](auto& server) { whole_since(server, -1h); }},
                    Loss{"TheSenseOfTheMarker",
                         [](auto& server) {
                             (void)server.command({"SET", marker_of(server), "long ago"});
                         }}),
    [](const auto& info) { return info.param.name; });

TEST_P(QuarantineAfter, HoldsForTheOneNode) {
    QuarantineWorld world;
    GetParam().apply(world[2]);
    auto lock = world.claim();
    const auto result = lock.acquire();
    EXPECT_THAT(result, Succeeds());
    EXPECT_THAT(result, Reports(2, Errc::quarantined));
}

// S28, S30. What a crash of the machine takes from a log that was not written through: the tail, with the
// holder's key in it. The marker comes back, but it is of another run.
TEST_P(Quarantine, KeepsNodesThatLostTheTailOfTheirLogFromGrantingASecondLock) {
    QuarantineWorld lasting{3, RedisConfig{}.keeps_data(), GetParam()};
    auto holder = lasting.claim();
    ASSERT_THAT(holder.acquire(), Succeeds());
    const auto marker = marker_of(lasting[0]);
    for (const std::size_t node : {0U, 1U}) {
        lasting[node].restart_without_the_last(20);
        ASSERT_EQ(test::holder(lasting[node]), "(nil)") << "the tail was not the key";
    }
    ASSERT_NE(lasting[0].command({"GET", marker}), "(nil)") << "nothing else was to be lost";
    auto other = lasting.claim();
    EXPECT_FALSE(other.acquire_for(500ms));
    EXPECT_TRUE(holder.valid()) << "too slow a machine: the lock is over";
}

// A server that is short of memory throws keys away, the marker like any other: it gives no vote until it has
// kept its data for long enough again.
TEST(AQuarantine, IsForNodesThatEvictToo) {
    QuarantineWorld world;
    const auto marker = marker_of(world[2]);
    ASSERT_EQ(world[2].command({"CONFIG", "SET", "maxmemory-policy", "allkeys-random"}), "OK");
    ASSERT_EQ(world[2].command({"CONFIG", "SET", "maxmemory", "3mb"}), "OK");
    const std::string much(100'000, 'x');
    int keys = 0;
    EXPECT_TRUE(wait_until([&] {
        (void)world[2].command({"SET", "filler " + std::to_string(++keys), much});
        return world[2].command({"GET", marker}) == "(nil)";
    }));
    auto lock = world.claim();
    const auto result = lock.acquire();
    EXPECT_THAT(result, Succeeds());
    EXPECT_THAT(result, Reports(2, Errc::quarantined));
}

/// A world in which the wall clock of one node can be set.
class SteppedClock : public testing::Test {
protected:
    SteppedClock() { set_clock(0s); }

    void set_clock(std::chrono::seconds offset) { std::ofstream{clock_file_} << offset.count() << '\n'; }

    /// Microseconds by its own clock.
    static std::int64_t time_of(const RedisServer& server) {
        const auto seconds = server.command({"TIME"});
        return std::stoll(seconds) * 1'000'000;
    }

    support::TemporaryDirectory directory_;
    std::filesystem::path clock_file_ = directory_ / "clock";
    RedisServer odd_{RedisConfig{}.clock_set_by(clock_file_)};
    Cluster others_{2};
    RedisNodes nodes_{std::vector{others_[0].uri(), others_[1].uri(), odd_.uri()},
                      {.node_timeout = 1s, .quarantine = quarantine}};

    void SetUp() override {
        for (const auto& server : others_) whole_since(server, 1min);
        whole_since(odd_, 1min);
        Lock lock{nodes_, "before", no_retry(quarantine)};
        const auto result = lock.acquire();
        ASSERT_THAT(result, Succeeds());
        ASSERT_EQ(count(result, Vote::granted), 3U);
    }
};

// A clock that is set back makes the marker one of the future: no vote, and no vote more than there should
// be.
TEST_F(SteppedClock, CostsTheNodeItsVoteWhenItIsSetBack) {
    const auto before = time_of(odd_);
    set_clock(-1h);
    ASSERT_TRUE(wait_until([&] { return time_of(odd_) < before - 3'000'000'000; }));
    Lock lock{nodes_, the_resource, no_retry(quarantine)};
    const auto result = lock.acquire();
    EXPECT_THAT(result, Succeeds());
    EXPECT_THAT(result, Reports(2, Errc::quarantined));
}

// One that is set forward makes keys expire early, on that node alone: a minority (S35).
TEST_F(SteppedClock, FreesTheNodesKeysWhenItIsSetForward) {
    Lock lock{nodes_, the_resource, no_retry(quarantine)};
    ASSERT_THAT(lock.acquire(), Succeeds());
    const auto before = time_of(odd_);
    set_clock(1h);
    ASSERT_TRUE(wait_until([&] { return time_of(odd_) > before + 3'000'000'000; }));
    EXPECT_EQ(holder(odd_), "(nil)");
    Lock other{nodes_, the_resource, no_retry(quarantine)};
    EXPECT_THAT(other.acquire(), FailsWith(Errc::held_by_other));
    EXPECT_TRUE(lock.valid());
}

// B1. Releases go to a node in quarantine all the same.
TEST_P(Quarantine, DoesNotKeepKeysFromBeingDeleted) {
    auto lock = world.claim();
    ASSERT_THAT(lock.acquire(), Succeeds());
    ASSERT_EQ(world[0].command({"DEL", marker_of(world[0])}), "1");
    const auto result = lock.release();
    EXPECT_THAT(result, Succeeds());
    EXPECT_EQ(count(result, Vote::granted), 3U);
    EXPECT_EQ(holder(world[0]), "(nil)");
}

// C2. An extension counts nodes in quarantine as little: an old snapshot may have brought our key back.
TEST_P(Quarantine, KeepsNodesFromConfirmingAnExtension) {
    auto lock = world.claim();
    ASSERT_THAT(lock.acquire(), Succeeds());
    for (const std::size_t node : {0U, 1U})
        ASSERT_EQ(world[node].command({"DEL", marker_of(world[node])}), "1");
    const auto result = lock.extend();
    EXPECT_THAT(result, FailsWith(Errc::no_quorum));
    EXPECT_THAT(result, HasNoVoteOf(0, Errc::quarantined));
    EXPECT_TRUE(lock.valid()) << "C2: the old instant stands";
}

// The marker is not for ever, or those of past runs would pile up; and it stays while it is used.
TEST_P(Quarantine, RefreshesTheMarkerItUses) {
    const auto marker = marker_of(world[0]);
    ASSERT_EQ(world[0].command({"PEXPIRE", marker, "60000"}), "1");
    ASSERT_THAT(world.claim().acquire(), Succeeds());
    EXPECT_THAT(expiry(world[0], marker), LastsAtLeast(24h * 14));
}

// A10, S30. A ttl that outlasts the quarantine would make it void.
TEST_P(Quarantine, RefusesALongerTtl) {
    try {
        (void)world.lock({.ttl = quarantine + 1ms});
        ADD_FAILURE() << "accepted";
    } catch (const std::invalid_argument& refused) {
        EXPECT_THAT(refused.what(), HasSubstr("LockOptions::ttl"));
        EXPECT_THAT(refused.what(), HasSubstr("NodesOptions::quarantine, 3000 ms"));
    }
    auto lock = world.claim();
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_THROW((void)lock.extend(quarantine + 1ms), std::invalid_argument);
}

// A replica has no vote, though it takes writes.
TEST(Voters, AreMasters) {
    QuarantineWorld world;
    RedisServer replica{RedisConfig{}.replica_of(world[0].port()).line("replica-read-only no")};
    RedisNodes nodes{std::vector{world[0].uri(), world[1].uri(), replica.uri()},
                     {.node_timeout = 1s, .quarantine = quarantine}};
    Lock lock{nodes, the_resource, no_retry(quarantine)};
    const auto result = lock.acquire();
    EXPECT_THAT(result, Succeeds());
    EXPECT_THAT(result, Reports(2, Errc::read_only));
}

// D8. Nor has one server two votes, under whatever names.
TEST(Voters, AreDifferentServers) {
    QuarantineWorld world;
    const auto port = ":" + std::to_string(world[0].port());
    RedisNodes nodes{
        std::vector<std::string>{"127.0.0.1" + port, support::loopback_name + port, world[1].uri()},
        {.node_timeout = 1s, .quarantine = quarantine}};
    // Until its name is resolved, the votes may decide without the duplicate.
    EXPECT_TRUE(wait_until([&] {
        Lock lock{nodes, the_resource, no_retry(quarantine)};
        const auto result = lock.acquire();
        EXPECT_THAT(result, Succeeds());
        EXPECT_EQ(count(result, Vote::granted), 2U);
        return result.message().find("same server as another node") != std::string::npos;
    }));
}

// D14. As docs/operations.md has it.
TEST(AQuarantine, NeedsTheLeastPermissions) {
    const RedisServer server{RedisConfig{}.no_default_user().user(
        "worker on >s3cret resetkeys ~orders:* ~redlock:since:* -@all +set +get +del +pttl +pexpire +eval "
        "+evalsha +info +exists +time")};
    whole_since(server, 1min);
    RedisNodes nodes{{server.uri("worker", "s3cret")}, {.node_timeout = 1s, .quarantine = quarantine}};
    Lock lock{nodes, the_resource, no_retry(quarantine)};
    for (int i = 0; i < 2; ++i) {
        EXPECT_THAT(lock.acquire(), Succeeds());
        EXPECT_THAT(lock.extend(), Succeeds());
        EXPECT_THAT(lock.release(), Succeeds());
    }
}

// D14. INFO is needed then, and reported by name where it is missing.
TEST(AQuarantine, NeedsThePermissionToAskForInfo) {
    const RedisServer server{RedisConfig{}.no_default_user().user("worker on >s3cret ~* +@all -info")};
    RedisNodes nodes{{server.uri("worker", "s3cret")}, {.node_timeout = 1s, .quarantine = quarantine}};
    Lock lock{nodes, the_resource, no_retry(quarantine)};
    const auto result = lock.acquire();
    EXPECT_THAT(result, FailsWith(Errc::no_quorum));
    EXPECT_THAT(result, Reports(0, Errc::permission_denied));
    EXPECT_THAT(result.message(), HasSubstr("info"));
}

}  // namespace
}  // namespace redlock::test
