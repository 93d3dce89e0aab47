// Lock as a Cpp17TimedLockable, used with std::lock_guard, std::unique_lock, std::scoped_lock and std::lock.
#include "world.hpp"

#include <concepts>
#include <mutex>

namespace redlock::test::std_vocabulary_test {
namespace {

template <class L>
concept BasicLockable = requires(L lock) {
    { lock.lock() } -> std::same_as<void>;
    { lock.unlock() }
    noexcept->std::same_as<void>;
};
template <class L>
concept Lockable = BasicLockable<L> && requires(L lock) {
    { lock.try_lock() } -> std::same_as<bool>;
};
template <class L, class Duration, class Time>
concept TimedLockable = Lockable<L> && requires(L lock, Duration span, Time until) {
    { lock.try_lock_for(span) } -> std::same_as<bool>;
    { lock.try_lock_until(until) } -> std::same_as<bool>;
};

static_assert(TimedLockable<Lock, std::chrono::seconds, std::chrono::steady_clock::time_point>);
static_assert(TimedLockable<Lock, std::chrono::nanoseconds, std::chrono::system_clock::time_point>);
static_assert(TimedLockable<Lock, std::chrono::duration<double>, std::chrono::sys_days>);
static_assert(TimedLockable<Lock, std::chrono::hours, Clock::time_point>);

struct StandardLibrary : testing::Test {
    World world;
    Lock lock = world.lock({.ttl = 10s});
};

TEST_F(StandardLibrary, WorksWithUniqueLock) {
    { const std::lock_guard guard{lock}; }
    EXPECT_TRUE(world.clean());
    std::unique_lock guard{lock};
    EXPECT_TRUE(lock.valid());
    guard.unlock();
    EXPECT_TRUE(world.clean());
    EXPECT_TRUE(guard.try_lock());
    guard.unlock();
    guard.lock();
    EXPECT_TRUE(lock.valid());
}

// S48. A wait with a time limit.
TEST_F(StandardLibrary, WorksWithUniqueLockAndADuration) {
    world.occupy(5s, 0, 1, 2);
    const auto took = time_taken(world, [this] { EXPECT_FALSE(lock.try_lock_for(2s)); });
    EXPECT_LE(took, 2s);
    if (std::unique_lock guard{lock, 2s}) ADD_FAILURE() << "another holds it for 5 s";
    if (std::unique_lock guard{lock, 20s})
        EXPECT_TRUE(lock.valid());
    else
        ADD_FAILURE() << "it was free after 5 s";
    EXPECT_TRUE(world.clean());
}

TEST_F(StandardLibrary, WorksWithUniqueLockAndATimePointOfAnyClock) {
    const auto expect_lock_until = [this](auto until) {
        const std::unique_lock guard{lock, until};
        EXPECT_TRUE(guard.owns_lock());
    };
    expect_lock_until(world.clock.now() + 1s);
    expect_lock_until(std::chrono::steady_clock::now() + 1h);
    expect_lock_until(std::chrono::system_clock::now() + 1h);
    expect_lock_until(std::chrono::sys_seconds::max());
}

// std::lock releases the first lock while another client holds the second one. It has both in the end.
TEST_F(StandardLibrary, WorksWithStdLock) {
    auto holder = world.held("stock:7"), other = world.lock("stock:7");
    world.after(3s, [&] { (void)holder.release(); });
    std::lock(lock, other);
    EXPECT_TRUE(lock.valid() && other.valid());
}

TEST_F(StandardLibrary, WorksWithStdTryLock) {
    auto holder = world.held("stock:7"), other = world.lock("stock:7");
    EXPECT_EQ(std::try_lock(lock, other), 1);
    EXPECT_TRUE(world.clean()) << "the first was let go again";
}

// ---- lock()

// lock() waits while other clients hold the resource, longer than retry.attempts, even if a node is down.
TEST_F(StandardLibrary, LockWaitsForHoldersWithoutALimit) {
    world.occupy(10min, 0, 1, 2);
    world.cut(4);
    const auto took = time_taken(world, [this] { lock.lock(); });
    EXPECT_TRUE(lock.valid());
    EXPECT_THAT(took, IsBetween(10min, 10min + 200ms));
}

// lock() does not wait for a missing quorum: it throws after retry.attempts attempts.
TEST_F(StandardLibrary, LockThrowsIfThereIsNoQuorum) {
    world.cut(0, 1, 2);
    try {
        lock.lock();
        ADD_FAILURE() << "three of five nodes are down";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::no_quorum);
        const std::string what = error.what();
        EXPECT_THAT(what, HasSubstr("node0 connection failed"));
        EXPECT_EQ(what.find("no quorum"), what.rfind("no quorum")) << "each thing once: " << what;
    }
    EXPECT_THAT(world.clock.pauses(), SizeIs(2)) << "three attempts";
}

// Refused attempts in between do not count towards retry.attempts.
TEST_F(StandardLibrary, LockCountsOnlyTheAttemptsWithoutAQuorum) {
    world.occupy(10s, 0, 1, 2);
    world.after(5s, [&] { world.cut(0, 1, 2); });
    EXPECT_THROW(lock.lock(), Error);
    EXPECT_GT(world.clock.pauses().size(), 20U);
}

// A refused attempt ends a row of attempts without a quorum. Otherwise lock() could not wait for days.
TEST_F(StandardLibrary, LockOnlyThrowsIfAttemptsWithoutAQuorumFollowEachOther) {
    world.occupy(10min, 0, 1, 2);
    for (auto outage = 1s; outage < 10min; outage += 10s) {
        world.after(outage, [&] { world.cut(0, 1, 2); });
        world.after(outage + 190ms, [&] { world.heal_all(); });
    }
    EXPECT_NO_THROW(lock.lock());
    EXPECT_TRUE(lock.valid());
}

// A11. A thread that locks its own lock again would wait for itself.
TEST_F(StandardLibrary, LockThrowsIfItIsAlreadyHeld) {
    lock.lock();
    try {
        lock.lock();
        ADD_FAILURE() << "it holds already";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), Errc::already_held);
        EXPECT_EQ(error.code(), std::errc::resource_deadlock_would_occur);
    }
    EXPECT_FALSE(lock.try_lock());
    EXPECT_FALSE(lock.try_lock_for(1s));
    EXPECT_THAT(world.events(), SizeIs(1)) << "of the first call";
    EXPECT_TRUE(lock.valid());
}

// ---- The functions that do not throw.

// If the time limit has passed, try_lock_for() and try_lock_until() behave like try_lock(), as the standard
// requires for its own mutexes.
TEST_F(StandardLibrary, TryLockForMakesOneAttemptIfTheTimeIsOver) {
    EXPECT_TRUE(lock.try_lock_for(0s));
    lock.unlock();
    EXPECT_TRUE(lock.try_lock_for(-1s));
    lock.unlock();
    EXPECT_TRUE(lock.try_lock_until(world.clock.now() - 1s));
    lock.unlock();
    EXPECT_TRUE(lock.try_lock_until(Clock::time_point::min()));
    lock.unlock();
    world.occupy(1h, 0, 1, 2);
    world.forget_events();
    EXPECT_FALSE(lock.try_lock_for(0s));
    EXPECT_THAT(world.events(), ElementsAre("set #5 for 10000 ms", "delete #5"));
}

// B2. A runtime failure returns false and throws nothing.
TEST_F(StandardLibrary, TryLockNeverThrows) {
    world.cut_all();
    EXPECT_FALSE(lock.try_lock());
    EXPECT_THAT(world.clock.pauses(), IsEmpty()) << "one attempt";
    EXPECT_FALSE(lock.try_lock_for(300ms));
    EXPECT_FALSE(lock.try_lock_until(world.clock.now() + 300ms));
}

// B2. unlock() ignores errors that release() would report.
TEST_F(StandardLibrary, UnlockIgnoresErrors) {
    lock.unlock();
    EXPECT_THAT(world.events(), IsEmpty());
    lock.lock();
    world.cut_all();
    lock.unlock();
    EXPECT_FALSE(lock.valid());
}

}  // namespace
}  // namespace redlock::test::std_vocabulary_test
