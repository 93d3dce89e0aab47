// LockOptions::fair together with a watchdog, fencing, quarantine, and several resources.
#include "live/guarantees/watchdog_world.hpp"
#include "waiting_world.hpp"

#include <mutex>
#include <thread>

namespace redlock::test {
namespace {

/// Waits in the queue in a thread of its own.
class WaitingThread {
public:
    WaitingThread(Lock& lock, Clock::duration at_most = 50s)
        : thread_{[this, &lock, at_most] {
              result_ = lock.acquire_for(at_most);
              held_at_ = now();
          }} {}

    const Result& result() {
        if (thread_.joinable()) thread_.join();
        return result_;
    }
    Clock::time_point held_at() {
        (void)result();
        return held_at_;
    }

private:
    Result result_{Errc::deadline};
    Clock::time_point held_at_{};
    std::jthread thread_;
};

TEST(FairGuarantees, AWatchdogExtendsALockThatWasWaitedFor) {
    LiveWorld world{5, timeouts()};
    Watchdog watchdog;
    auto options = fair(3s);
    options.watchdog = &watchdog;
    auto holder = world.lock(options);
    auto lock = world.lock(options);
    ASSERT_THAT(holder.acquire(), Succeeds());
    WaitingThread waiter{lock};
    ASSERT_TRUE(queued(world[0], 1));
    boot_clock().sleep_until(now() + 4s, {});
    EXPECT_TRUE(holder.valid()) << "extended, with a waiter behind it";
    EXPECT_TRUE(queued(world[0], 1));
    const auto released = now();
    EXPECT_THAT(holder.release(), Succeeds());
    ASSERT_THAT(waiter.result(), Succeeds());
    expect_delay("release of a watched lock", waiter.held_at() - released, 0ms);
    boot_clock().sleep_until(now() + 4s, {});
    EXPECT_TRUE(lock.valid());
    EXPECT_GE(world.keys_of(lock.owner()), 3U);
}

TEST(FairGuarantees, FencingTokensGrowFromWaiterToWaiter) {
    LiveWorld world{5, timeouts()};
    auto options = fair();
    options.fencing = true;
    auto holder = world.lock(options);
    ASSERT_THAT(holder.acquire(), Succeeds());
    std::mutex mutex;
    std::vector<std::uint64_t> tokens{holder.fencing_token()};
    std::deque<std::jthread> threads;
    for (std::size_t thread = 0; thread < 5; ++thread) {
        threads.emplace_back([&] {
            auto lock = world.lock(options);
            EXPECT_THAT(lock.acquire_for(50s), Succeeds());
            const std::lock_guard guard{mutex};
            tokens.push_back(lock.fencing_token());
        });
        ASSERT_TRUE(queued(world[0], thread + 1));
    }
    EXPECT_THAT(holder.release(), Succeeds());
    threads.clear();
    EXPECT_THAT(tokens, SizeIs(6));
    EXPECT_TRUE(std::ranges::is_sorted(tokens, std::less_equal<>{})) << "none of them twice";
}

// The home may be without a vote: it keeps the queue all the same.
TEST(FairGuarantees, AHomeInQuarantineKeepsTheQueue) {
    QuarantineWorld world{5};
    auto options = fair(quarantine);
    options.retry.delay = 1s;
    auto holder = world.lock(options);
    auto lock = world.lock(options);
    world[0].restart_empty();
    whole_since(world[0], -1min);
    ASSERT_TRUE(wait_until([&] { return static_cast<bool>(holder.try_acquire()); }));
    WaitingThread waiter{lock};
    ASSERT_TRUE(wait_until([&] { return queue_length(world[0]) + queue_length(world[1]) == 1; }));
    const auto released = now();
    EXPECT_THAT(holder.release(), Succeeds());
    ASSERT_THAT(waiter.result(), Succeeds());
    expect_delay("release, home in quarantine", waiter.held_at() - released, 0ms);
    EXPECT_EQ(test::holder(world[0]), "(nil)") << "it gave no vote";
}

// What a waiter takes with its home's vote lasts for the whole ttl, and not for the reservation's.
TEST(FairGuarantees, TheVoteOfTheHomeNodeLastsForTheFullTtl) {
    for (const bool fencing : {false, true}) {
        LiveWorld world{5, timeouts()};
        auto options = fair();
        options.fencing = fencing;
        auto holder = world.lock(options);
        auto lock = world.lock(options);
        ASSERT_THAT(holder.acquire(), Succeeds());
        WaitingThread waiter{lock};
        ASSERT_TRUE(queued(world[0], 1));
        EXPECT_THAT(holder.release(), Succeeds());
        ASSERT_THAT(waiter.result(), Succeeds());
        ASSERT_EQ(test::holder(world[0]), lock.owner());
        EXPECT_THAT(expiry(world[0]), LastsAtLeast(lock.remaining()));
        EXPECT_THAT(expiry(world[0]), LastsAtLeast(30s));
    }
}

// Several resources do not queue; their release wakes each of their queues.
TEST(FairGuarantees, TheReleaseOfSeveralResourcesWakesEachQueue) {
    LiveWorld world{5, timeouts()};
    Lock both{world.nodes, {"a", "b"}, fair()};
    ASSERT_THAT(both.acquire(), Succeeds());
    auto a = world.lock("a", fair());
    auto b = world.lock("b", fair());
    WaitingThread for_a{a};
    WaitingThread for_b{b};
    for (const auto* queue : {"{a}:queue", "{b}:queue"})
        ASSERT_TRUE(wait_until([&] { return world[0].command({"ZCARD", queue}) == "1"; }));
    const auto released = now();
    EXPECT_THAT(both.release(), Succeeds());
    EXPECT_THAT(for_a.result(), Succeeds());
    EXPECT_THAT(for_b.result(), Succeeds());
    expect_delay("release of several", std::max(for_a.held_at(), for_b.held_at()) - released, 0ms);
}

}  // namespace
}  // namespace redlock::test
