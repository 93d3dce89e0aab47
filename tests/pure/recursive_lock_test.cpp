// A lock that its thread may acquire again. Inner levels are counted, and need no rounds.
#include "support/answering_node.hpp"
#include "world.hpp"

#include <redlock/recursive_lock.hpp>

#include <mutex>
#include <system_error>
#include <thread>

namespace redlock::test::recursive_lock_test {
namespace {

struct RecursiveLockTest : testing::Test {
    /// Returns the result of `verb` in another thread.
    template <class Verb>
    std::error_code elsewhere(Verb verb) {
        std::error_code error;
        std::thread{[&] { error = verb().error(); }}.join();
        return error;
    }

    World world;
    RecursiveLock lock{world, the_resource, no_retry(), world.clock, world.entropy};
};

TEST_F(RecursiveLockTest, MakesARoundOnlyForTheOutermostLevel) {
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_THAT(lock.try_acquire(), Succeeds());
    EXPECT_THAT(lock.acquire_for(1s), Succeeds());
    EXPECT_EQ(lock.level(), 3);
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_THAT(world.events(), SizeIs(1));
    EXPECT_TRUE(lock.valid());
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_THAT(world.events(), SizeIs(2));
    EXPECT_FALSE(lock.valid());
    EXPECT_EQ(lock.level(), 0);
    EXPECT_TRUE(world.clean());
}

// The inner level gets the remaining validity, and reports it.
TEST_F(RecursiveLockTest, LastsAsLongAsTheOutermostLevel) {
    ASSERT_THAT(lock.acquire(), Succeeds());
    world.pass(6s);
    const auto inner = lock.acquire();
    EXPECT_THAT(inner.validity(), Lasts(4s - 102ms));
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(lock.remaining(), Lasts(10s - 102ms));
}

// C3. A lock whose validity is over cannot be entered again, until all levels have been left.
TEST_F(RecursiveLockTest, CannotBeEnteredAfterItsValidity) {
    ASSERT_THAT(lock.acquire(), Succeeds());
    world.pass(10s);
    EXPECT_THAT(lock.acquire(), FailsWith(Errc::lost));
    EXPECT_EQ(lock.level(), 1);
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    EXPECT_THAT(lock.acquire(), Succeeds());
}

// While one thread holds the lock, no other thread can use it.
TEST_F(RecursiveLockTest, RejectsOtherThreads) {
    const auto refused = std::make_error_code(std::errc::operation_not_permitted);
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(elsewhere([&] { return lock.acquire(); }), refused);
    EXPECT_EQ(elsewhere([&] { return lock.extend(); }), refused);
    EXPECT_EQ(elsewhere([&] { return lock.release(); }), refused);
    EXPECT_EQ(elsewhere([&] { return Result{lock.valid() ? Errc::already_held : Errc::not_held}; }),
              Errc::not_held);
    EXPECT_TRUE(lock.valid());
    EXPECT_THAT(world.events(), SizeIs(1));
    ASSERT_THAT(lock.release(), Succeeds());
    EXPECT_EQ(elsewhere([&] {
                  auto result = lock.acquire();
                  (void)lock.release();
                  return result;
              }),
              std::error_code{});
}

// While a thread is refused, the other one releases the lock.
TEST_F(RecursiveLockTest, RejectsAnotherThreadWithTheSameErrorDuringARelease) {
    support::AnsweringNode nodes{[](const auto&, Tally& tally) { tally.grant(0); }};
    RecursiveLock contended{nodes, the_resource, no_retry()};
    const auto refused = std::make_error_code(std::errc::operation_not_permitted);
    const auto acquire_often = [&] {
        for (int acquired = 0; acquired < 3000;) {
            const auto error = contended.acquire().error();
            if (!error) {
                ++acquired;
                contended.unlock();
            } else if (error != refused) {
                return error;
            }
        }
        return std::error_code{};
    };
    std::error_code other_error;
    std::thread other{[&] { other_error = acquire_often(); }};
    EXPECT_EQ(acquire_often(), std::error_code{});
    other.join();
    EXPECT_EQ(other_error, std::error_code{});
}

// The C++ library may give the id of a thread that has ended to a later thread.
TEST_F(RecursiveLockTest, DoesNotBelongToALaterThreadWithTheSameId) {
    std::thread::id first;
    std::thread{[&] {
        first = std::this_thread::get_id();
        EXPECT_THAT(lock.acquire(), Succeeds());
    }}.join();
    bool same_id = false;
    for (int i = 0; i < 100 && !same_id; ++i)
        std::thread{[&] {
            same_id = std::this_thread::get_id() == first;
            EXPECT_THAT(lock.acquire(), FailsWith(std::make_error_code(std::errc::operation_not_permitted)));
        }}.join();
    if (!same_id) GTEST_SKIP() << "no thread had the id of the first";
}

// After a failed acquire() other threads may use the lock.
TEST_F(RecursiveLockTest, BelongsToNoThreadAfterAFailure) {
    world.occupy(1min, 0, 1, 2);
    EXPECT_THAT(lock.acquire(), FailsWith(Errc::held_by_other));
    EXPECT_EQ(elsewhere([&] { return lock.acquire(); }), Errc::held_by_other);
    world.cut_all();
    EXPECT_THROW(lock.lock(), Error);
    EXPECT_EQ(elsewhere([&] { return lock.acquire(); }), Errc::no_quorum);
    EXPECT_THAT(lock.release(), FailsWith(Errc::not_held));
}

// As a release of Lock. The keys of this client would otherwise block everybody for the rest of the ttl.
TEST_F(RecursiveLockTest, CanRepeatAReleaseThatFailed) {
    ASSERT_THAT(lock.acquire(), Succeeds());
    ASSERT_THAT(lock.acquire(), Succeeds());
    const std::string owner{lock.owner()};
    ASSERT_THAT(lock.release(), Succeeds());
    world.cut_all();
    EXPECT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    EXPECT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    EXPECT_EQ(lock.level(), 0);
    world.heal_all();
    EXPECT_EQ(world.held_by(owner), 5U);
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_EQ(world.held_by(owner), 0U);
    EXPECT_THAT(lock.release(), FailsWith(Errc::not_held));
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(lock.level(), 1);
}

// No other thread has to wait for a repeated release.
TEST_F(RecursiveLockTest, IsFreeForOtherThreadsAfterAReleaseThatFailed) {
    ASSERT_THAT(lock.acquire(), Succeeds());
    world.cut_all();
    ASSERT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    world.heal_all();
    EXPECT_EQ(elsewhere([&] { return lock.acquire(); }), std::error_code{});
    EXPECT_THAT(lock.release(), FailsWith(std::make_error_code(std::errc::operation_not_permitted)));
}

TEST_F(RecursiveLockTest, HasTheFencingTokenOfItsLock) {
    RecursiveLock counting{world, "counted", {.fencing = true}, world.clock, world.entropy};
    EXPECT_EQ(counting.fencing_token(), 0U);
    ASSERT_THAT(counting.acquire(), Succeeds());
    EXPECT_GT(counting.fencing_token(), 0U);
    EXPECT_EQ(elsewhere([&] { return Result{counting.fencing_token() == 0 ? Errc::not_held : Errc::lost}; }),
              Errc::not_held);
}

TEST_F(RecursiveLockTest, WorksWithTheLocksOfTheStandardLibrary) {
    const std::lock_guard outer{lock};
    {
        const std::unique_lock inner{lock, 1s};
        EXPECT_TRUE(inner.owns_lock());
        const std::scoped_lock innermost{lock};
        EXPECT_EQ(lock.level(), 3);
    }
    EXPECT_TRUE(lock.try_lock_until(world.clock.now() + 1s));
    lock.unlock();
    EXPECT_EQ(lock.level(), 1);
}

}  // namespace
}  // namespace redlock::test::recursive_lock_test
