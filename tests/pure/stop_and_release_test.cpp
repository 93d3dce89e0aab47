// Rule C9: a release at the moment at which another thread has decided to request a stop on lost(), but has
// not requested it yet. This program replaces pthread_mutex_unlock(), so that a test can act at this moment.
#include "world.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <functional>
#include <stop_token>
#include <thread>
#include <utility>

#include "lock/lease_state.hpp"

namespace {

std::atomic<bool> armed{false};
pthread_t unlocking_thread{};
std::function<void()> after_unlock{};  // called when that thread has unlocked a mutex, if `armed` is true

}  // namespace

extern "C" int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
    using Unlock = int (*)(pthread_mutex_t*);
    static const auto real = reinterpret_cast<Unlock>(::dlsym(RTLD_NEXT, "pthread_mutex_unlock"));
    const int result = real(mutex);
    if (armed && ::pthread_equal(unlocking_thread, ::pthread_self()) != 0 && armed.exchange(false))
        after_unlock();
    return result;
}

namespace redlock::test::stop_and_release_test {
namespace {

/// Tells whether a thread waits.
class WaitedClock final : public Clock {
public:
    time_point now() noexcept override { return time_point{1h}; }
    void sleep_until(time_point, std::stop_token) override {
        waits = true;
        std::this_thread::yield();
    }
    std::atomic<bool> waits{false};
};

struct StopDuringARelease : testing::Test {
    StopDuringARelease() { EXPECT_FALSE(lease.owner.draw(world.entropy)); }

    /// Calls `stop`, and releases in another thread as soon as `stop` has unlocked the mutex for the first
    /// time. Expects that the stop is requested before the release returns, and not later.
    template <class Stop>
    void expect_before_release_returns(Stop stop) {
        const auto number = state.begin(lease, std::stop_source{});
        std::atomic<bool> released{false};
        bool stopped = false;
        std::thread releasing;
        after_unlock = [&] {
            releasing = std::thread{[&] {
                EXPECT_FALSE(state.begin_release(number).empty());
                stopped = state.lost().stop_requested();
                released = true;
            }};
            while (!released && !clock.waits) std::this_thread::yield();
        };
        unlocking_thread = ::pthread_self();
        armed = true;
        stop(number);
        ASSERT_TRUE(releasing.joinable()) << "no mutex was unlocked: this shows nothing";
        releasing.join();
        EXPECT_TRUE(stopped);
        EXPECT_TRUE(state.lost().stop_requested());
    }

    World world;
    WaitedClock clock;
    detail::LeaseState state{{world, clock, {the_resource}, {}}};
    Lease lease{.valid_until = clock.now() + 10s};
};

TEST_F(StopDuringARelease, IsRequestedBeforeIfTheWatchdogReportsALoss) {
    expect_before_release_returns([&](auto number) { state.report_loss(number); });
}

TEST_F(StopDuringARelease, IsRequestedBeforeIfTheHolderFindsTheLoss) {
    algorithm::RoundResult round{.tally = world.blank_tally(), .valid_until = {}, .ended = clock.now()};
    expect_before_release_returns([&](auto number) {
        EXPECT_THAT(state.apply_extension(number, std::move(round), {}), FailsWith(Errc::lost));
    });
}

TEST_F(StopDuringARelease, IsRequestedBeforeIfALeaderStopsItsWork) {
    expect_before_release_returns([&](auto number) { state.request_stop(number); });
}

}  // namespace
}  // namespace redlock::test::stop_and_release_test
