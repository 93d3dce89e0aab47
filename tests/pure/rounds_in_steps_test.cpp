// Rounds that one thread makes in steps, as an event loop does.
#include "memory_loop_world.hpp"
#include "round_driver_world.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace redlock::test {
namespace {

/// A round of one request, with all that must outlive it.
class SteppedRound {
public:
    SteppedRound(RoundDriverWorld& world, Request request, RoundLimits limits = {})
        : request_(std::move(request)),
          limits_(limits),
          tally_(world.names),
          round_(*world.group, {&request_, 1}, limits_, {&tally_, 1}) {}

    RoundDriver& driver() { return round_.driver(); }
    const Tally& tally() const { return tally_; }
    bool over() const { return over_; }

    /// Advances the round, and finishes it if it is over. Returns until when it waits.
    Clock::time_point advance() {
        const auto until = driver().advance();
        over_ = !until;
        if (over_) round_.finish();
        return until.value_or(Clock::never());
    }

private:
    Request request_;
    RoundLimits limits_;
    Tally tally_;
    NodeGroup::OngoingRound round_;
    bool over_ = false;
};

using Rounds = std::vector<std::unique_ptr<SteppedRound>>;

/// Waits for all rounds at the same time, and continues with them, until all are over.
void run(MemoryNetwork& network, const Rounds& rounds) {
    for (;;) {
        auto until = Clock::never();
        std::vector<PollEntry> entries;
        std::vector<std::size_t> counts;
        for (const auto& round : rounds) {
            if (!round->over()) until = std::min(until, round->advance());
            std::array<PollEntry, max_nodes> space;
            const auto of_round = round->driver().poll_entries(space);
            entries.insert(entries.end(), of_round.begin(), of_round.end());
            counts.push_back(of_round.size());
        }
        if (std::ranges::all_of(rounds, [](const auto& it) { return it->over(); })) return;
        network.wait(entries, network.clock().now(), until);
        auto rest = std::span{entries};
        for (std::size_t i = 0; i < rounds.size(); ++i) {
            if (!rounds[i]->over()) rounds[i]->driver().take_ready(rest.first(counts[i]));
            rest = rest.subspan(counts[i]);
        }
    }
}

TEST(RoundInSteps, ManyRoundsOfOneThreadTakeAsLongAsOne) {
    RoundDriverWorld world{3, {.round = Round::sequential}};
    std::vector<std::vector<std::string>> resources;
    for (std::size_t i = 0; i < 20; ++i) resources.push_back({"resource " + std::to_string(i)});
    Rounds rounds;
    for (const auto& resource : resources) {
        auto request = world.request(Verb::set_if_absent, resource.front());
        request.command.resources = resource;
        rounds.push_back(std::make_unique<SteppedRound>(world, request));
    }
    const auto start = world.network.clock().now();
    run(world.network, rounds);
    for (const auto& round : rounds) EXPECT_EQ(round->tally().granted(), 3u);
    EXPECT_EQ(world.network.clock().now() - start, 2 * 3ms)
        << "the handshake and the SET at each node in turn";
    EXPECT_EQ(std::ranges::count_if(world.log.lines, [](auto& it) { return it.starts_with("round of"); }),
              20);
}

TEST(RoundInSteps, AReplyThatCameInTimeCountsIfTheLoopIsLate) {
    RoundDriverWorld world{1};
    (void)world.extend("A");
    SteppedRound round{world, world.request(Verb::set_if_absent, "A")};
    (void)round.advance();
    world.network.pass(80ms);
    std::array<PollEntry, 1> space{};
    const auto entries = round.driver().poll_entries(space);
    world.network.wait(entries, world.network.clock().now(), world.network.clock().now());
    round.driver().take_ready(entries);
    (void)round.advance();
    EXPECT_TRUE(round.over());
    EXPECT_EQ(round.tally()[0].vote, Vote::granted);
}

TEST(RoundInSteps, AnAbandonedRoundLeavesItsReplyBehindAndReportsThatItIsNotAwaited) {
    RoundDriverWorld world{1};
    (void)world.extend("A");
    {
        SteppedRound round{world, world.request(Verb::set_if_absent, "A")};
        (void)round.advance();
    }
    EXPECT_EQ(world.holder(0), "A");
    EXPECT_EQ(world.release("A")[0].vote, Vote::granted);
    EXPECT_EQ(world.holder(0), "");
    EXPECT_EQ(world.network.server(0).connections(), 1u);
}

TEST(RoundInSteps, OnlyExtensionsShareARound) {
    const RoundDriverWorld world{1};
    const auto extension = world.request(Verb::compare_and_expire, "A");
    const auto release = world.request(Verb::compare_and_delete, "A");
    EXPECT_TRUE(NodeGroup::fit_in_one_round(std::array{release}));
    EXPECT_TRUE(NodeGroup::fit_in_one_round(std::array{extension, extension}));
    EXPECT_FALSE(NodeGroup::fit_in_one_round(std::array{release, release}));
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
}  // namespace redlock::test
