// Semaphore: at most L holders. Each of them holds the lock of one slot.
#include "fronts.hpp"

#include <deque>
#include <mutex>
#include <set>
#include <span>
#include <vector>

namespace redlock::test::semaphore_test {
namespace {

struct Semaphores : testing::TestWithParam<Front> {
    AnySemaphore semaphore(std::size_t limit, LockOptions options = no_retry(),
                           const std::string& name = "jobs") {
        return world.semaphore(name, limit, std::move(options));
    }
    /// Lets semaphores of this limit acquire until one fails. Returns how many of them hold a slot now.
    std::size_t hold_all(std::size_t limit) {
        std::size_t count = 0;
        while (held.emplace_back(semaphore(limit)).acquire()) ++count;
        return count;
    }

    AnyWorld world{GetParam()};
    std::deque<AnySemaphore> held;
};
INSTANTIATE_TEST_SUITE_P(Each, Semaphores, each_front, testing::PrintToStringParamName());

using SemaphoresOfAThread = testing::Test;

TEST_P(Semaphores, HaveAsManyHoldersAsSlots) {
    EXPECT_EQ(hold_all(3), 3U);
    std::set<std::string> slots;
    for (const auto& it : held) {
        if (!it.valid()) continue;
        slots.insert(it.resource());
        EXPECT_EQ(it.resource(), "{jobs}:slot:" + std::to_string(it.slot()));
        EXPECT_EQ(world.held_by(it.owner(), it.resource()), 5U);
        EXPECT_EQ(it.owner().size(), 40U);
        EXPECT_THAT(it.remaining(), Lasts(10s - drift(10s, 0.01)));
    }
    EXPECT_THAT(slots, SizeIs(3));
    EXPECT_THAT(held.back().try_acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(held.front().release(), Succeeds());
    EXPECT_THAT(held.back().try_acquire(), Succeeds()) << "the slot that is free again";
    EXPECT_EQ(held.back().slot(), held.front().slot());
}

TEST_P(Semaphores, KeepTheHashTagOfTheirName) {
    EXPECT_EQ(semaphore(2, no_retry(), "{jobs}:export").resource(), "{jobs}:export:slot:0");
    EXPECT_EQ(semaphore(2, no_retry(), "{jobs}").resource(), semaphore(2).resource());
}

// This is the documented bound.
TEST_P(Semaphores, HaveAsManyHoldersAsTheLargestOfDifferentLimits) {
    EXPECT_EQ(hold_all(2), 2U);
    EXPECT_EQ(hold_all(3), 1U);
    EXPECT_EQ(hold_all(2), 0U);
    EXPECT_EQ(hold_all(5), 2U);
    EXPECT_EQ(hold_all(4), 0U);
}

TEST_P(Semaphores, WithOneSlotBehaveLikeALock) {
    auto one = semaphore(1);
    world.forget_events();
    EXPECT_THAT(one.acquire(), Succeeds());
    auto other = semaphore(1);
    EXPECT_THAT(other.acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(one.acquire(), FailsWith(Errc::already_held));
    EXPECT_THAT(one.try_acquire(), FailsWith(Errc::already_held));
    EXPECT_THAT(one.extend(), Succeeds());
    EXPECT_THAT(one.release(), Succeeds());
    EXPECT_THAT(one.extend(), FailsWith(Errc::not_held));
    EXPECT_THAT(world.events(), ElementsAre("set #1 for 10000 ms", "set #2 for 10000 ms", "delete #2",
                                            "expire #1 in 10000 ms", "delete #1"));
}

// It sends a SET that is refused, its release, and one query of all slots. It does not try the other slots.
TEST_P(Semaphores, QueryAllSlotsBeforeTheyTryThem) {
    ASSERT_EQ(hold_all(50), 50U);
    auto late = semaphore(50);
    world.forget_events();
    EXPECT_THAT(late.try_acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(world.events(), SizeIs(3));
    (void)held[20].release();
    world.forget_events();
    EXPECT_THAT(late.try_acquire(), Succeeds());
    EXPECT_LE(world.events().size(), 4U);
}

TEST_F(SemaphoresOfAThread, AcquireASlotThatOnlyAMinorityRefuses) {
    World world;
    for (std::size_t node = 0; node < 5; ++node) {
        world.command(node, {"SET", "{jobs}:slot:1", "x", "PX", "60000"});
        if (node < 2) world.command(node, {"SET", "{jobs}:slot:0", "x", "PX", "60000"});
    }
    ConstantEntropy begins_at_1{1};
    Semaphore late{world, "jobs", 2, no_retry(), world.clock, begins_at_1};
    EXPECT_THAT(late.try_acquire(), Succeeds());
    EXPECT_EQ(late.slot(), 0U);
}

// Slots that a query cannot decide are tried: at most L + 1 rounds, and the releases of refused attempts.
TEST_P(Semaphores, MakeAtMostOneRoundMoreThanThereAreSlots) {
    for (std::size_t slot = 0; slot < 8; ++slot)
        for (std::size_t node = 0; node < 5; ++node)
            if ((node + slot) % 5 < 2)
                world.command(node, {"SET", "{jobs}:slot:" + std::to_string(slot), "x", "PX", "60000"});
    world.cut(0);
    auto late = semaphore(8);
    world.forget_events();
    (void)late.try_acquire();
    const auto rounds = std::ranges::count_if(
        world.events(), [](const auto& it) { return it.starts_with("set") || it == "query"; });
    EXPECT_LE(rounds, 9);
}

// acquire() stops at the first slot that fails for another reason than contention.
TEST_P(Semaphores, StopAtOnceIfTheNodesAreSilent) {
    world.silence(0, 1, 2, 3, 4);
    auto late = semaphore(8);
    world.forget_events();
    EXPECT_THAT(late.try_acquire(), FailsWith(Errc::no_quorum));
    EXPECT_THAT(world.events(), ElementsAre("set #1 for 10000 ms", "delete #1"));
}

TEST_F(SemaphoresOfAThread, StopAtOnceWhenTheNodesBecomeSilent) {
    World nodes;
    nodes.before_round = [&, rounds = 0](auto&&...) mutable {
        if (++rounds == 3) nodes.silence(0, 1, 2, 3, 4);  // behind the refused SET and its release
    };
    for (std::size_t slot = 0; slot < 8; ++slot)
        for (std::size_t node = 0; node < 5; ++node)
            nodes.command(node, {"SET", "{jobs}:slot:" + std::to_string(slot), "x", "PX", "60000"});
    Semaphore late{nodes, "jobs", 8, no_retry(), nodes.clock, nodes.entropy};
    EXPECT_THAT(late.try_acquire(), FailsWith(Errc::no_quorum));
    EXPECT_THAT(nodes.events(),
                ElementsAre("set #1 for 10000 ms", "delete #1", "query", "set #3 for 10000 ms", "delete #3"));
}

TEST_P(Semaphores, BeginAtARandomSlot) {
    std::set<std::size_t> slots;
    for (int i = 0; i < 100; ++i) {
        auto it = semaphore(4);
        ASSERT_THAT(it.acquire(), Succeeds());
        slots.insert(it.slot());
    }
    EXPECT_THAT(slots, SizeIs(4));
}

TEST_P(Semaphores, WaitForASlot) {
    ASSERT_EQ(hold_all(2), 2U);
    world.after(1s, [this] { (void)held[1].release(); });
    auto late = semaphore(2, {.ttl = 10s, .retry = {.delay = 100ms}});
    EXPECT_THAT(late.acquire(), FailsWith(Errc::held_by_other)) << "three attempts";
    EXPECT_THAT(late.acquire_for(500ms), FailsWith(Errc::held_by_other));
    EXPECT_THAT(late.acquire_for(5s), Succeeds());
    EXPECT_LE(world.clock.now(), Clock::time_point{100h + 1s + 200ms});
}

TEST_F(SemaphoresOfAThread, AcquireNothingAfterAStop) {
    World world;
    std::stop_source stop;
    stop.request_stop();
    Semaphore it{world, "jobs", 2, {}, world.clock, world.entropy};
    EXPECT_THAT(it.acquire(stop.get_token()), FailsWith(Errc::cancelled));
}

// A semaphore inherits these functions from its lock.
TEST_F(SemaphoresOfAThread, WorkWithUniqueLock) {
    World world;
    Semaphore it{world, "jobs", 2, no_retry(), world.clock, world.entropy};
    {
        const std::unique_lock guard{it, 1s};
        EXPECT_TRUE(it.valid());
    }
    EXPECT_FALSE(it.valid());
    EXPECT_TRUE(it.try_lock_until(world.clock.now() + 1s));
}

TEST_P(Semaphores, HaveFencingTokensForEachSlot) {
    std::uint64_t last = 0;
    for (int i = 0; i < 3; ++i) {
        auto it = semaphore(1, {.ttl = 10s, .fencing = true});
        ASSERT_THAT(it.acquire(), Succeeds());
        EXPECT_GT(it.fencing_token(), last);
        last = it.fencing_token();
    }
}

TEST_P(Semaphores, ReleaseALapsedSlotBeforeTheyAcquireAgain) {
    auto one = semaphore(1);
    EXPECT_THAT(one.acquire(), Succeeds());
    world.pass(one.remaining());
    EXPECT_THAT(one.acquire(), Succeeds());
    EXPECT_EQ(world.held_by(one.owner(), one.resource()), 5U);
}

TEST_P(Semaphores, AreExtendedAndReportTheirLoss) {
    std::vector<Result> losses;
    const auto on_lost = [&](const Result& loss) { losses.push_back(loss); };
    auto it = semaphore(3, {.ttl = 3s, .watchdog = world.watchdog(), .on_lost = on_lost});
    for (std::size_t i = 1; i <= 8; ++i) {
        world.heal_all();
        EXPECT_THAT(it.acquire(), Succeeds());
        world.pass(10s);
        ASSERT_TRUE(it.valid());
        EXPECT_EQ(world.held_by(it.owner(), it.resource()), 5U);
        const auto lost = it.lost();
        world.cut(0, 1, 2);
        world.pass(10s);
        EXPECT_FALSE(it.valid());
        EXPECT_TRUE(lost.stop_requested());
        EXPECT_THAT(losses, SizeIs(i));
    }
    EXPECT_THAT(losses, Each(FailsWith(Errc::lost)));
}

// These nodes do not reply to queries.
TEST_F(SemaphoresOfAThread, WorkIfNodesDoNotReplyToTheQuery) {
    World deaf;
    deaf.before_round = [&](std::span<const Request> requests, auto&&) {
        requests.front().command.verb == Verb::exist ? deaf.cut_all() : deaf.heal_all();
    };
    std::deque<Semaphore> all;
    std::size_t count = 0;
    while (all.emplace_back(deaf, "jobs", 4, no_retry(), deaf.clock, deaf.entropy).acquire()) ++count;
    EXPECT_EQ(count, 4U);
}

TEST_P(Semaphores, RejectImpossibleOptions) {
    EXPECT_THAT(refusal([&] { (void)semaphore(0); }), HasSubstr("limit is 0; it must be from 1 to 1000"));
    EXPECT_THAT(refusal([&] { (void)semaphore(1001); }), HasSubstr("limit"));
    EXPECT_THAT(refusal([&] { (void)semaphore(1, {}, ""); }), HasSubstr("name is empty"));
    EXPECT_THAT(refusal([&] { (void)semaphore(1, {.fair = true}); }), HasSubstr("LockOptions::fair"));
    EXPECT_THAT(refusal([&] { (void)semaphore(1, {.shared = true}); }), HasSubstr("LockOptions::shared"));
    EXPECT_THAT(refusal([&] { (void)semaphore(1, {.ttl = 0ms}); }), HasSubstr("LockOptions::ttl"));
    EXPECT_THAT(refusal([&] { (void)semaphore(1).extend(0ms); }), HasSubstr("ttl"));
}

}  // namespace
}  // namespace redlock::test::semaphore_test
