// Rounds that an event loop makes.
#include "memory_loop_world.hpp"
#include "round_driver_world.hpp"

#include <array>

namespace redlock::test::rounds_in_steps_test {
namespace {

TEST(RequestsByServer, LetsOnlyExtensionsShareARound) {
    const RoundDriverWorld world{1};
    const auto extension = world.request(Verb::compare_and_expire, "A");
    const auto release = world.request(Verb::compare_and_delete, "A");
    const auto rounds_of = [](std::vector<Request> requests) {
        const RedisClusters clusters;
        std::vector<Tally> tallies(requests.size());
        std::size_t count = 0;
        for (RequestsByServer parts{clusters, requests, tallies}; parts.next();) ++count;
        return count;
    };
    EXPECT_EQ(rounds_of({release}), 1U);
    EXPECT_EQ(rounds_of({extension, extension}), 1U);
    EXPECT_EQ(rounds_of({release, release}), 2U);
}

/// A loop over three nodes, and a lock.
struct LoopWithALock : MemoryLoopWorld {
    explicit LoopWithALock(Round order) : MemoryLoopWorld{{.node_timeout = 10s, .round = order}} {}

    void acquire_and_release() {
        EXPECT_TRUE(end_of([this](Completion done) { lock.acquire(std::move(done)); }));
        EXPECT_TRUE(end_of([this](Completion done) { lock.release(std::move(done)); }));
    }
    std::size_t vain_reads() {
        std::size_t count = 0;
        for (std::size_t node = 0; node < size; ++node) count += network.server(node).vain_reads;
        return count;
    }

    AsyncLock lock{*of_loop, "r", {.ttl = 10min}};
};

TEST(RoundInALoop, GoesOnAsSoonAsTheNodesHaveAnswered) {
    for (const auto order : {Round::sequential, Round::all_at_once}) {
        LoopWithALock world{order};
        const auto start = world.now();
        world.acquire_and_release();
        EXPECT_LE(world.now() - start, 100ms);
    }
}

TEST(RoundInALoop, ReadsOnlyWhatHasCome) {
    LoopWithALock world{Round::sequential};
    world.acquire_and_release();
    const auto before = world.vain_reads();
    for (int i = 0; i < 10; ++i) world.acquire_and_release();
    EXPECT_EQ(world.vain_reads(), before);
}

// ---- A loop that handles its timers first

// The replies have come in time. A loop with much to do has not read them when the time of the nodes is over.
TEST(RoundInABusyLoop, CountsTheRepliesThatNobodyHasRead) {
    MemoryLoopWorld world;
    AsyncLock lock{*world.of_loop, "r", {.ttl = 10min}};
    EXPECT_TRUE(world.end_of([&](Completion done) { lock.acquire(std::move(done)); }));
    world.forget_log();
    lock.extend(world.report());
    while (world.all(0, "expire").empty()) world.loop.run_once(world.now() + 1s);
    EXPECT_TRUE(world.results.empty());
    world.network.pass(200ms);
    world.loop.come_back();
    world.run_for(1s);
    ASSERT_EQ(world.results.size(), 1U);
    for (const auto& node : world.results[0].nodes()) EXPECT_EQ(node.vote, Vote::granted);
}

}  // namespace
}  // namespace redlock::test::rounds_in_steps_test
