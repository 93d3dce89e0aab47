// Rules C8 and C9 against real servers: release, destruction and callbacks during the work of the
// watchdog.
#include "watchdog_world.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace redlock::test::watchdog_release_live_test {
namespace {

// C8. The holder continues in its thread, while the callback releases the lost acquisition and no later one.
TEST(Watchdog, LetsTheHolderAcquireAgainWhileTheCallbackReleases) {
    LiveWorld world{3, short_timeout};
    Watchdog watchdog;
    LossLog losses;
    std::atomic<std::size_t> begun = 0;
    std::optional<Lock> lock;
    auto options = watched_by(watchdog, 10s);
    options.on_lost = [&](const Result& loss) {
        ++begun;
        (void)lock->release();
        losses.add(loss);
    };
    lock.emplace(world.lock(options));
    for (std::size_t i = 1; i <= 30; ++i) {
        ASSERT_THAT(lock->acquire(), Succeeds());
        for (const std::size_t node : {0U, 1U}) ASSERT_EQ(world[node].command({"DEL", the_resource}), "1");
        EXPECT_THAT(lock->extend(), FailsWith(Errc::lost));
        ASSERT_TRUE(wait_until([&] { return begun == i; }));
        ASSERT_THAT(lock->acquire(), Succeeds());
        ASSERT_TRUE(losses.wait_for(i));
        EXPECT_TRUE(lock->valid());
        // The third node may have refused: it had the lost key until the release of the callback reached it.
        EXPECT_GE(world.keys_of(lock->owner()), 2U);
        EXPECT_THAT(lock->release(), Succeeds());
    }
    EXPECT_THAT(losses.all(), SizeIs(30));
}

// C9. The callback destroys the lock, and another thread as well. One of them does it first.
TEST(Watchdog, AllowsTheLockToBeDestroyedFromAnyThread) {
    LiveWorld world{3, {.node_timeout = 40ms}};
    Watchdog watchdog;
    for (int i = 0; i < 40; ++i) {
        struct Shared {
            std::mutex mutex{};
            std::unique_ptr<Lock> lock{};
        };
        const auto shared = std::make_shared<Shared>();
        const auto destroy = [shared] {
            const std::lock_guard guard{shared->mutex};
            shared->lock.reset();
        };
        auto options = watched_by(watchdog, 60ms);
        options.on_lost = [destroy](const Result&) { destroy(); };
        shared->lock = std::make_unique<Lock>(world.lock("resource " + std::to_string(i), options));
        if (!shared->lock->acquire()) {
            destroy();  // breaks the cycle of references
            continue;
        }
        for (const std::size_t node : {0U, 1U})
            (void)world[node].command({"DEL", "resource " + std::to_string(i)});
        std::this_thread::sleep_for(std::chrono::milliseconds{15 + i % 15});  // about when the loss is found
        destroy();
    }
    EXPECT_TRUE(wait_until([&] { return world.clean(); }));
}

// C9. One thread reports a loss while another one releases. Whichever comes first: after the release has
// returned, the state of the token does not change.
TEST(Watchdog, RequestsNoStopAfterReleaseHasReturned) {
    SlowToExtend nodes;
    Lease lease{.valid_until = Clock::never()};
    ASSERT_FALSE(lease.owner.draw(os_entropy()));
    detail::LeaseState state{{nodes, boot_clock(), {the_resource}, {}}};
    std::atomic<int> begun = 0;
    std::atomic<int> ended = 0;
    constexpr int rounds = 20'000;
    const auto wait_for = [](const std::atomic<int>& counter, int value) {
        while (counter < value) std::this_thread::yield();
    };
    std::jthread reporter{[&] {
        for (int i = 1; i <= rounds; ++i, ++ended) {
            wait_for(begun, i);
            state.report_loss(static_cast<std::uint64_t>(i));
        }
    }};
    int stopped_later = 0;
    for (int i = 1; i <= rounds; ++i) {
        const auto number = state.begin(lease, std::stop_source{});
        const auto lost = state.lost();
        begun = i;
        // In every second round it releases right after the report has decided to request stop.
        while (i % 2 == 0 && state.lease().valid_until == Clock::never()) std::this_thread::yield();
        (void)state.begin_release(number);
        const bool stopped = lost.stop_requested();
        wait_for(ended, i);
        stopped_later += lost.stop_requested() != stopped ? 1 : 0;
    }
    EXPECT_EQ(stopped_later, 0);
}

TEST(Watchdog, MayBeDestroyedInItsOwnCallback) {
    LiveWorld world{1, {.node_timeout = 50ms}};
    std::promise<void> gone;
    auto watchdog = std::make_unique<Watchdog>();
    auto options = watched_by(*watchdog, 300ms);
    std::optional<Lock> lock;
    options.on_lost = [&](const Result&) {
        lock.reset();
        watchdog.reset();
        gone.set_value();
    };
    lock.emplace(world.lock(options));
    ASSERT_THAT(lock->acquire(), Succeeds());
    (void)world[0].command({"DEL", the_resource});
    EXPECT_EQ(gone.get_future().wait_for(20s), std::future_status::ready);
}

}  // namespace
}  // namespace redlock::test::watchdog_release_live_test
