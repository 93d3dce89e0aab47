// The state table in lock.hpp: the effect of each function in each state. Also moving, destroying and
// forking.
#include "fronts.hpp"

#include <redlock/recursive_lock.hpp>

#include <concepts>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "wire/command_encoding.hpp"

namespace redlock::test::lock_test {
namespace {

// ---- Construction.

template <class L>
concept TakesDoubleBraces = requires(Nodes& nodes) {
    L{nodes, {{"a", "b"}}};
};
static_assert(!TakesDoubleBraces<Lock>, "elsewhere they are one string, of what lies between the two");
static_assert(!TakesDoubleBraces<RecursiveLock>);
static_assert(!std::constructible_from<Lock, Nodes&, int>);

template <class L>
struct Construction : testing::Test {};
using Locks = testing::Types<Lock, RecursiveLock>;
TYPED_TEST_SUITE(Construction, Locks);

TYPED_TEST(Construction, AcceptsANameOfAnyType) {
    World world;
    const std::string name = "a";
    const std::string_view view = name;
    std::string moved = "a";
    const std::filesystem::path path = "a";
    EXPECT_EQ((TypeParam{world, "a"}).resource(), "a");
    EXPECT_EQ((TypeParam{world, name}).resource(), "a");
    EXPECT_EQ((TypeParam{world, std::move(moved)}).resource(), "a");
    EXPECT_EQ((TypeParam{world, view}).resource(), "a");
    EXPECT_EQ((TypeParam{world, view.data()}).resource(), "a");
    EXPECT_EQ((TypeParam{world, path}).resource(), "a");
    EXPECT_EQ((TypeParam{world, "a", {.ttl = 10s}}).resource(), "a");
    EXPECT_EQ((TypeParam{world, view, {.ttl = 10s}, world.clock, world.entropy}).resource(), "a");
}

TYPED_TEST(Construction, AcceptsSeveralNames) {
    World world;
    const std::string name = "a";
    const std::vector<std::string> names{"b", "a"};
    EXPECT_EQ((TypeParam{world, {"b", "a"}}).resource(), "a");
    EXPECT_EQ((TypeParam{world, {"b", name, std::string_view{"c"}}, {.ttl = 10s}}).resource(), "a");
    EXPECT_EQ((TypeParam{world, names}).resource(), "a");
    EXPECT_EQ((TypeParam{world, std::vector<std::string>{"b", "a"}, {.ttl = 10s}}).resource(), "a");
    EXPECT_EQ((TypeParam{world, {name, name}}).resource(), "a");
    EXPECT_EQ((TypeParam{world, {name}}).resource(), "a");
}

static_assert(!std::is_copy_constructible_v<Lock> && !std::is_copy_assignable_v<Lock>);
static_assert(std::is_nothrow_move_constructible_v<Lock> && std::is_nothrow_move_assignable_v<Lock>);

// ---- Free.

struct AFreeLock : testing::TestWithParam<Front> {
    AnyWorld world{GetParam()};
    AnyLock lock = world.lock({.ttl = 10s});
};
INSTANTIATE_TEST_SUITE_P(Each, AFreeLock, each_front, testing::PrintToStringParamName());

// Constructing and destroying a free lock does no I/O.
TEST_P(AFreeLock, ReportsThatItIsFree) {
    EXPECT_FALSE(lock.valid());
    EXPECT_THAT(lock.remaining(), Lasts(0ns));
    EXPECT_EQ(lock.owner(), "");
    EXPECT_EQ(lock.resource(), the_resource);
    { const auto gone = std::move(lock); }
    EXPECT_THAT(world.events(), IsEmpty());
    EXPECT_EQ(world.log.owners_met(), 0U);
}

TEST_P(AFreeLock, IsMovedTogetherWithItsOptions) {
    lock = world.lock({.ttl = 3s, .retry = {.attempts = 1}});
    world.cut_all();
    const auto result = lock.acquire();
    EXPECT_THAT(result, FailsWith(Errc::no_quorum));
    EXPECT_EQ(result.attempts(), 1);
}

TEST_P(AFreeLock, HasNothingToExtendOrRelease) {
    EXPECT_THAT(lock.extend(), FailsWith(Errc::not_held));
    EXPECT_THAT(lock.extend(1h), FailsWith(Errc::not_held));
    EXPECT_THAT(lock.release(), FailsWith(Errc::not_held));
    EXPECT_THAT(world.events(), IsEmpty());
}

// S12. try_acquire() makes one attempt, whatever the options say.
TEST_P(AFreeLock, MakesOneAttemptInTryAcquire) {
    world.occupy(1h, 0, 1, 2);
    EXPECT_EQ(lock.try_acquire().attempts(), 1);
    EXPECT_EQ(lock.acquire().attempts(), 3);
}

// ---- Held.

struct AHeldLock : AFreeLock {
    AHeldLock() {
        EXPECT_THAT(lock.acquire(), Succeeds());
        owner = lock.owner();
        world.forget_events();
    }
    std::string owner;
};
INSTANTIATE_TEST_SUITE_P(Each, AHeldLock, each_front, testing::PrintToStringParamName());

// A11. Acquiring a held lock is an error without I/O. The lock is not reentrant, and nothing is overwritten.
TEST_P(AHeldLock, CannotBeAcquiredAgain) {
    EXPECT_THAT(lock.acquire(), FailsWith(Errc::already_held));
    EXPECT_THAT(lock.try_acquire(), FailsWith(Errc::already_held));
    EXPECT_THAT(lock.acquire_for(1s), FailsWith(Errc::already_held));
    EXPECT_EQ(lock.acquire().attempts(), 0);
    EXPECT_THAT(world.events(), IsEmpty());
    EXPECT_TRUE(lock.valid());
    EXPECT_EQ(lock.owner(), owner);
}

// B2. The destructor releases.
TEST_P(AHeldLock, IsReleasedWhenDestroyed) {
    { const auto gone = std::move(lock); }
    EXPECT_THAT(world.events(), ElementsAre("delete #1"));
    EXPECT_TRUE(world.clean());
}

// ---- Lapsed: the lock was held, and its validity is over.

struct ALapsedLock : AHeldLock {
    ALapsedLock() { world.pass(lock.remaining()); }
};
INSTANTIATE_TEST_SUITE_P(Each, ALapsedLock, each_front, testing::PrintToStringParamName());

TEST_P(ALapsedLock, IsNotValid) {
    EXPECT_FALSE(lock.valid());
    EXPECT_THAT(lock.remaining(), Lasts(0ns));
    EXPECT_EQ(lock.owner(), owner);
}

// C3. The lock is lost for good: no I/O, no second chance.
TEST_P(ALapsedLock, CannotBeExtended) {
    EXPECT_THAT(lock.extend(), FailsWith(Errc::lost));
    EXPECT_THAT(lock.extend(100s), FailsWith(Errc::lost));
    EXPECT_FALSE(lock.valid());
    EXPECT_THAT(world.events(), IsEmpty());
}

// B3. The remaining keys are deleted.
TEST_P(ALapsedLock, ReportsTheLossOnRelease) {
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    EXPECT_THAT(world.events(), ElementsAre("delete #1"));
    EXPECT_EQ(lock.owner(), "");
}

// B3. The loss is reported even if no node replies. A repetition would be of no use, because the owner is not
// kept (B4).
TEST_P(ALapsedLock, ReportsTheLossOnReleaseEvenIfNoNodeAnswers) {
    world.cut_all();
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    EXPECT_EQ(lock.owner(), "");
}

// A5. The keys of the old acquisition are deleted first. The new acquisition has another owner.
TEST_P(ALapsedLock, CanBeAcquiredAgain) {
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_THAT(world.events(), ElementsAre("delete #1", "set #2 for 10000 ms"));
    EXPECT_TRUE(lock.valid());
    EXPECT_THAT(lock.remaining(), Lasts(9898ms));
}

TEST_P(ALapsedLock, IsReleasedWhenDestroyed) {
    { const auto gone = std::move(lock); }
    EXPECT_TRUE(world.clean());
}

// S2, S25. The lock can be acquired again even if its holder crashed or was cut off before it could release.
// The cost is unavailability for one ttl, and no more. Redis expires a key after its last millisecond.
TEST(ALockWhoseHolderWasCutOff, IsFreeAfterOneTtl) {
    World world;
    auto theirs = world.held({.ttl = 10s}), ours = world.lock();
    world.cut_all();
    EXPECT_THAT(theirs.release(), FailsWith(Errc::no_quorum));
    world.heal_all();
    world.pass(10s);
    EXPECT_THAT(ours.try_acquire(), FailsWith(Errc::held_by_other));
    world.pass(1ms);
    EXPECT_THAT(ours.try_acquire(), Succeeds());
}

// ---- Moving.

TEST_P(AHeldLock, IsStillHeldAfterAMove) {
    auto next = std::move(lock);
    EXPECT_THAT(world.events(), IsEmpty());
    EXPECT_TRUE(next.valid());
    EXPECT_EQ(next.owner(), owner);
    EXPECT_EQ(next.resource(), the_resource);
    EXPECT_THAT(next.extend(), Succeeds());
    EXPECT_THAT(next.release(), Succeeds());
    EXPECT_TRUE(world.clean());
}

TEST_P(AHeldLock, LeavesTheMovedFromLockFree) {
    const auto next = std::move(lock);
    EXPECT_FALSE(lock.valid());
    EXPECT_THAT(lock.remaining(), Lasts(0ns));
    EXPECT_FALSE(lock.lost().stop_possible());
    EXPECT_EQ(lock.resource(), "");
    EXPECT_THAT(lock.resources(), IsEmpty());
    EXPECT_EQ(lock.owner(), "");
    EXPECT_EQ(lock.fencing_token(), 0U);
    EXPECT_THAT(lock.release(), FailsWith(Errc::not_held));
    EXPECT_THAT(lock.extend(), FailsWith(Errc::not_held));
    EXPECT_THAT(lock.extend(10s), FailsWith(Errc::not_held));
    EXPECT_THAT(world.events(), IsEmpty());
    EXPECT_TRUE(next.valid());
}

// The constructor rejects an empty resource. A moved-from lock must not acquire one.
TEST_P(AHeldLock, CannotBeAcquiredAfterItWasMovedFrom) {
    const auto next = std::move(lock);
    const auto invalid = std::make_error_code(std::errc::invalid_argument);
    EXPECT_THAT(lock.acquire(), FailsWith(invalid));
    EXPECT_THAT(lock.try_acquire(), FailsWith(invalid));
    EXPECT_THAT(lock.acquire_for(1s), FailsWith(invalid));
    EXPECT_EQ(world.held_by({}, ""), 5U) << "the empty resource was locked";
    lock = world.lock("stock:7");
    EXPECT_THAT(lock.acquire(), Succeeds());
}

TEST_P(AHeldLock, IsReleasedByAMoveAssignment) {
    auto other = world.lock("stock:7");
    ASSERT_THAT(other.acquire(), Succeeds());
    lock = std::move(other);
    EXPECT_TRUE(world.clean()) << "the former acquisition was released";
    EXPECT_EQ(lock.resource(), "stock:7");
    EXPECT_TRUE(lock.valid());
    EXPECT_EQ(world.held_by(lock.owner(), "stock:7"), 5U);
}

TEST_P(AHeldLock, SurvivesASelfMove) {
    auto& same = lock;
    lock = std::move(same);
    EXPECT_TRUE(lock.valid());
    EXPECT_EQ(lock.owner(), owner);
    EXPECT_EQ(lock.resource(), the_resource);
    EXPECT_THAT(world.events(), IsEmpty());
}

/// The lock is past its validity, or was released a moment ago without replies. It is watched or not.
struct AFailedAcquireOfAHeldLock : testing::TestWithParam<std::tuple<Front, bool, bool>> {};
INSTANTIATE_TEST_SUITE_P(LapsedAndWatched, AFailedAcquireOfAHeldLock,
                         testing::Combine(each_front, testing::Bool(), testing::Bool()));

// A failed acquire() forgets the former acquisition, even if no node has confirmed its release.
TEST_P(AFailedAcquireOfAHeldLock, ForgetsTheFormerAcquisition) {
    const auto [front, lapsed, watched] = GetParam();
    AnyWorld world{front};
    auto lock = world.held({.retry = {.attempts = 1},
                            .fencing = true,
                            .fair = true,
                            .watchdog = watched ? world.watchdog() : nullptr});
    if (lapsed) world.clock.advance(11s);
    world.cut_all();
    if (!lapsed) {
        EXPECT_THAT(lock.release(), FailsWith(Errc::no_quorum));
    }
    EXPECT_THAT(lock.acquire(), FailsWith(Errc::no_quorum));
    EXPECT_THAT(lock.owner(), IsEmpty());
    EXPECT_EQ(lock.fencing_token(), 0U);
    EXPECT_THAT(lock.release(), FailsWith(Errc::not_held));
}

struct SharedLock : testing::TestWithParam<Front> {};
INSTANTIATE_TEST_SUITE_P(Each, SharedLock, each_front, testing::PrintToStringParamName());

TEST_P(SharedLock, IsExtendedAndReleasedAsOneReaderOfSeveral) {
    AnyWorld world{GetParam()};
    auto one = world.held({.ttl = 5s, .shared = true});
    auto other = world.held({.ttl = 5s, .shared = true});
    EXPECT_THAT(one.extend(20s), Succeeds());
    EXPECT_THAT(other.release(), Succeeds());
    EXPECT_GT(one.remaining(), 19s);
    EXPECT_THAT(one.release(), Succeeds());
    for (std::size_t node = 0; node < 5; ++node)
        EXPECT_EQ(world.command(node, {"EXISTS", the_resource,
                                       detail::key_of(detail::KeyKind::readers, the_resource).text()}),
                  "0");
}

// ---- What only a lock has that blocks its thread.

struct ALockOfAThread : testing::Test {
    void hold() {
        EXPECT_THAT(lock.acquire(), Succeeds());
        owner = lock.owner();
        world.forget_events();
    }

    World world;
    Lock lock = world.lock({.ttl = 10s});
    std::string owner;
};

TEST_F(ALockOfAThread, IsMovedTogetherWithItsEntropy) {
    ConstantEntropy ones{0x11};
    lock = Lock{world, the_resource, {}, world.clock, ones};
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_EQ(lock.owner(), std::string(40, '1'));
}

TEST_F(ALockOfAThread, IsHeldAfterEachKindOfAcquire) {
    const auto expect_held_after = [this](auto acquire) {
        EXPECT_TRUE(static_cast<bool>(acquire()));
        EXPECT_TRUE(lock.valid());
        EXPECT_THAT(lock.remaining(), Lasts(9898ms));
        EXPECT_THAT(lock.owner(), SizeIs(40));
        (void)lock.release();
    };
    expect_held_after([&] { return lock.acquire(); });
    expect_held_after([&] { return lock.acquire(std::stop_token{}); });
    expect_held_after([&] { return lock.try_acquire(); });
    expect_held_after([&] { return lock.acquire_for(1s); });
    expect_held_after([&] { return lock.acquire_until(world.clock.now() + 1s); });
    expect_held_after([&] { return lock.lock(), true; });
    expect_held_after([&] { return lock.try_lock(); });
    expect_held_after([&] { return lock.try_lock_for(1s); });
    expect_held_after([&] { return lock.try_lock_until(world.clock.now() + 1s); });
}

/// A watchdog whose thread runs while the caller of add() is suspended: it reports a loss before add()
/// returns.
struct QuickWatchdog : detail::Renewer {
    explicit QuickWatchdog(ManualClock& the_clock) : Renewer(the_clock), its_clock(the_clock) {}
    void add(detail::Acquisition acquisition) override {
        its_clock.advance(1min);
        acquisition.state->report_loss(acquisition.number);
    }
    ManualClock& its_clock;
};

// on_lost may destroy the lock, and then the nodes, in the thread of the watchdog (lock.hpp). Nothing may use
// the nodes after that.
TEST_F(ALockOfAThread, DoesNotUseItsNodesAfterItsWatchdogHasReportedTheLoss) {
    bool gone = false;
    world.before_round = [&](auto&&...) { EXPECT_FALSE(gone); };
    QuickWatchdog watchdog{world.clock};
    std::optional<Lock> watched;
    watched.emplace(world.lock({.ttl = 10s, .holder = "me", .watchdog = &watchdog, .on_lost = [&](auto&&) {
                                    watched.reset();
                                    gone = true;
                                }}));
    (void)watched->acquire();
    EXPECT_TRUE(gone);
}

// A Nodes may throw only std::bad_alloc. If it breaks this rule, the exception must not look like a success.
TEST_F(ALockOfAThread, DoesNotSucceedIfItsNodesThrowASystemError) {
    world.before_round = [](auto&&...) { throw std::system_error{std::error_code{}, "of the nodes"}; };
    EXPECT_THAT(lock.acquire(), FailsWith(Errc::no_quorum));
    EXPECT_FALSE(lock.valid());
}

// ---- Forking (D10).

// D10. In a child process the lock of the parent is not held. Neither releasing nor destroying it there sends
// anything.
TEST_F(ALockOfAThread, StaysWithTheParentAfterAFork) {
    hold();
    const auto child = [this] {
        const bool free = !lock.valid() && lock.remaining() == 0ns && lock.owner().empty() &&
                          lock.extend().error() == Errc::not_held && lock.release().error() == Errc::not_held;
        { const auto gone = std::move(lock); }
        std::exit(free && world.events().empty() && world.held_by(owner) == 5 ? EXIT_SUCCESS : EXIT_FAILURE);
    };
    EXPECT_EXIT(child(), testing::ExitedWithCode(EXIT_SUCCESS), "");
    EXPECT_TRUE(lock.valid());
}

// D10. The child competes for the resource like any other client.
TEST_F(ALockOfAThread, ExcludesAChildAfterAFork) {
    hold();
    const auto child = [this] {
        const bool excluded = lock.try_acquire().error() == Errc::held_by_other && world.held_by(owner) == 5;
        world.pass(11s);
        std::exit(excluded && lock.try_acquire() && lock.valid() ? EXIT_SUCCESS : EXIT_FAILURE);
    };
    EXPECT_EXIT(child(), testing::ExitedWithCode(EXIT_SUCCESS), "");
}

}  // namespace
}  // namespace redlock::test::lock_test
