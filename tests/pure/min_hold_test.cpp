// LockOptions::min_hold: after an early release, the resource is kept from all clients until the minimum hold
// time has passed.
#include "world.hpp"

#include <redlock/detail/renewer.hpp>

#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "lock/lease_state.hpp"

namespace redlock::test::min_hold_test {
namespace {

struct MinHold : testing::Test {
    /// Expects that every node keeps the resource for `span`, without an owner.
    void expect_rest(Clock::duration span) {
        EXPECT_EQ(world.held_by("redlock:min-hold"), 5U);
        for (std::size_t node = 0; node < 5; ++node) EXPECT_THAT(world.ttl_on(node), Lasts(span));
    }

    World world;
    LockOptions options{.ttl = 60s, .retry = {.attempts = 1}, .min_hold = 40s};
    std::optional<Lock> lock{world.held(options)};
};

// Whatever ends the hold, the minimum hold time counts from the acquisition.
TEST_F(MinHold, KeepsTheResourceUnavailableForTheRemainingTime) {
    const std::pair<const char*, std::function<void()>> ways[] = {
        {"release", [&] { EXPECT_THAT(lock->release(), Succeeds()); }},
        {"unlock", [&] { lock->unlock(); }},
        {"destructor", [&] { lock.reset(); }},
        {"move", [&] { *lock = world.lock("another", options); }},
    };
    for (const auto& [way, let_go] : ways) {
        SCOPED_TRACE(way);
        world.pass(15s);
        let_go();
        expect_rest(25s);
        auto next = world.lock(no_retry());
        EXPECT_THAT(next.acquire(), FailsWith(Errc::held_by_other));
        world.pass(25s + 1ms);
        EXPECT_TRUE(world.clean());
        EXPECT_THAT(next.acquire(), Succeeds());
        (void)next.release();
        lock.emplace(world.held(options));
    }
}

TEST_F(MinHold, HasNoEffectOnALateRelease) {
    world.pass(40s);
    world.forget_events();
    EXPECT_THAT(lock->release(), Succeeds());
    EXPECT_THAT(world.events(), ElementsAre("delete #1"));
    EXPECT_TRUE(world.clean());
}

// Servers count whole milliseconds. The resource must not become free before the minimum hold time has
// passed.
TEST_F(MinHold, IsRoundedUp) {
    world.pass(15s + 1us);
    world.forget_events();
    EXPECT_THAT(lock->release(), Succeeds());
    EXPECT_THAT(world.events(), ElementsAre("keep #1 for 25000 ms"));
}

// No reply to the extension was awaited, so it may arrive after the key was released.
TEST_F(MinHold, IsNotUndoneByALateExtension) {
    const std::string owner{lock->owner()};
    world.pass(15s);
    EXPECT_THAT(lock->release(), Succeeds());
    const auto late = world.ask({.command = {Verb::compare_and_expire, lock->resources(), owner, 60s}});
    EXPECT_EQ(late.refused(), 5U);
    expect_rest(25s);
}

TEST_F(MinHold, IsNotLengthenedByAnExtension) {
    world.pass(15s);
    EXPECT_THAT(lock->extend(), Succeeds());
    EXPECT_THAT(lock->release(), Succeeds());
    expect_rest(25s);
}

// B4. A repeated release also keeps the resource.
TEST_F(MinHold, AppliesToARepeatedRelease) {
    world.cut(0, 1, 2);
    EXPECT_THAT(lock->release(), FailsWith(Errc::no_quorum));
    world.heal(0, 1, 2);
    world.pass(10s);
    EXPECT_THAT(lock->release(), Succeeds());
    expect_rest(30s);
}

// The acquisition fails because nobody would extend the lock. A failed acquisition leaves no key.
TEST_F(MinHold, DoesNotApplyIfTheWatchdogCannotBegin) {
    struct Unable final : detail::Renewer {
        using Renewer::Renewer;
        void add(detail::Acquisition) override {
            if (has_memory) throw std::system_error{no_thread};
            throw std::bad_alloc{};
        }
        bool has_memory = true;
        std::error_code no_thread = std::make_error_code(std::errc::resource_unavailable_try_again);
    } watchdog{world.clock};
    lock.reset();
    world.pass(41s);
    options.watchdog = &watchdog;
    for (const bool has_memory : {true, false}) {
        watchdog.has_memory = has_memory;
        auto unextended = world.lock(options);
        EXPECT_THAT(
            unextended.acquire(),
            FailsWith(has_memory ? watchdog.no_thread : std::make_error_code(std::errc::not_enough_memory)));
        EXPECT_FALSE(unextended.valid());
        EXPECT_TRUE(world.clean());
    }
}

// A failed attempt has held nothing, so nothing is kept.
TEST_F(MinHold, DoesNotApplyToAFailedAttempt) {
    (void)lock->release();
    world.pass(41s);
    world.occupy(60s, 0, 1, 2);
    world.forget_events();
    EXPECT_THAT(lock->acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(world.events(), ElementsAre("set #2 for 60000 ms", "delete #2"));
}

}  // namespace
}  // namespace redlock::test::min_hold_test
