// Rule A8: when a failed acquire() tries again, and how long it pauses before that.
#include "world.hpp"

#include <algorithm>

namespace redlock::test::retry_test {
namespace {

/// Five nodes. Another client holds a majority of them for an hour.
struct ContendedWorld : World {
    ContendedWorld() { occupy(1h, 0, 1, 2); }
};

// A8. A pause is at least half the delay and at most the delay, including both ends, for the shortest and the
// longest delay.
TEST(Retry, PausesFromHalfTheDelayToTheDelay) {
    ConstantEntropy least{0x00}, most{0xff};
    EXPECT_THAT(random_pause(200ms, least), Lasts(100ms));
    EXPECT_THAT(random_pause(200ms, most), LastsAbout(200ms));
    SeededEntropy some{7};
    for (const milliseconds delay : {milliseconds{1ms}, milliseconds{200ms}, milliseconds{24h}})
        for (int draw = 0; draw < 10'000; ++draw) {
            const auto pause = random_pause(delay, some);
            EXPECT_THAT(pause, IsBetween(delay / 2, delay));
        }
}

// A8. The pauses are distributed evenly: each tenth of the range gets about a tenth of the draws.
TEST(Retry, PausesUniformly) {
    SeededEntropy entropy{7};
    std::array<int, 10> tenths{};
    for (int draw = 0; draw < 10'000; ++draw) {
        const auto beyond_half = random_pause(200ms, entropy) - 100ms;
        ++tenths[std::min<std::size_t>(9, static_cast<std::size_t>(beyond_half / 10ms))];
    }
    for (const auto tenth : tenths) EXPECT_NEAR(tenth, 1'000, 150);
}

/// The last of eight bytes is the most significant one, on big-endian processors as well.
struct HalfEntropy final : Entropy {
    std::error_code fill(std::span<std::byte> out) noexcept override {
        std::ranges::fill(out, std::byte{0});
        out.back() = std::byte{0x80};
        return {};
    }
};

TEST(Retry, HasTheSamePausesOnEveryProcessor) {
    HalfEntropy half;
    EXPECT_THAT(random_pause(200ms, half), Lasts(150ms));
}

// A8. Without entropy the pause is the longest one, and never zero.
TEST(Retry, UsesTheLongestPauseWithoutEntropy) {
    SeededEntropy dry{1};
    dry.dry_up_after(0);
    EXPECT_THAT(random_pause(200ms, dry), Lasts(200ms));
}

// A8, S22. There are as many attempts as requested, with pauses only between them, and none after the last.
TEST(Retry, PausesOnlyBetweenAttempts) {
    for (const int attempts : {1, 2, 3, 10}) {
        ContendedWorld world;
        auto lock = world.lock({.retry = {.attempts = attempts}});
        EXPECT_EQ(lock.acquire().attempts(), attempts);
        EXPECT_THAT(world.clock.pauses(), SizeIs(static_cast<std::size_t>(attempts - 1)));
        EXPECT_NE(world.events().back(), "pause");
    }
}

// A8, S20. acquire() pauses for random times that depend on the option.
TEST(Retry, TakesTheDelayFromTheOptions) {
    for (const auto delay : {1ms, 20ms, 3000ms}) {
        ContendedWorld world;
        (void)world.lock({.retry = {.attempts = 20, .delay = delay}}).acquire();
        ASSERT_THAT(world.clock.pauses(), SizeIs(19));
        EXPECT_NE(world.clock.pauses()[0], world.clock.pauses()[1]);
        for (const auto pause : world.clock.pauses()) {
            EXPECT_THAT(pause, IsBetween(delay / 2, delay));
        }
    }
}

// A8, A2, S24. Each failed attempt is cleaned up before the pause, with its own owner (A5).
TEST(Retry, DeletesItsKeysBeforeEachPause) {
    ContendedWorld world;
    (void)world.lock({.retry = {.attempts = 3}}).acquire();
    EXPECT_THAT(world.events(), ElementsAre("set #1 for 10000 ms", "delete #1", "pause",  //
                                            "set #2 for 10000 ms", "delete #2", "pause",  //
                                            "set #3 for 10000 ms", "delete #3"));
}

// A8. No pause lasts beyond the deadline, and no attempt begins that cannot end before it.
TEST(Retry, DoesNotPauseBeyondTheDeadline) {
    ContendedWorld world;
    for (const auto span : {1ms, 50ms, 99ms, 100ms, 150ms, 201ms, 999ms, 5000ms}) {
        auto lock = world.lock();
        EXPECT_LE(
            time_taken(world, [&] { EXPECT_THAT(lock.acquire_for(span), FailsWith(Errc::held_by_other)); }),
            Clock::duration{span});
    }
}

// A8, S21. Attempts do not become more frequent as the deadline approaches. A shortened pause leaves no time
// for a second one.
TEST(Retry, IsNotMoreFrequentNearTheDeadline) {
    ContendedWorld world;
    const auto result = world.lock({.retry = {.delay = 200ms}}).acquire_for(1s);
    EXPECT_THAT(result, FailsWith(Errc::held_by_other));
    EXPECT_LE(result.attempts(), 1 + 1s / 100ms + 1);
}

// A8. With a deadline, the option for the number of attempts has no effect.
TEST(Retry, IgnoresTheNumberOfAttemptsIfThereIsADeadline) {
    ContendedWorld world;
    auto lock = world.lock({.retry = {.attempts = 1, .delay = 100ms}});
    world.after(5s, [&] { world.forget(0), world.forget(1); });
    const auto result = lock.acquire_for(10s);
    EXPECT_THAT(result, Succeeds());
    EXPECT_GT(result.attempts(), 50);
}

// S64, A8. acquire() succeeds at the first attempt after the holder's release, that is, within one pause.
TEST(Retry, SucceedsWithinOnePauseOfTheHoldersRelease) {
    ContendedWorld world;
    auto lock = world.lock({.retry = {.attempts = 100, .delay = 200ms}});
    world.after(1s, [&] { world.forget(0), world.forget(1), world.forget(2); });
    EXPECT_THAT(time_taken(world, [&] { EXPECT_THAT(lock.acquire(), Succeeds()); }),
                IsBetween(1s, 1s + 200ms));
}

}  // namespace
}  // namespace redlock::test::retry_test
