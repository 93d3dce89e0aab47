// The arithmetic of time: drift, validity, and the results of valid() and remaining().
#include "world.hpp"

namespace redlock::test::validity_test {
namespace {

struct DriftCase {
    milliseconds ttl;
    double factor;
    Clock::duration expected;
};

// S16. The drift is ttl × drift_factor + 2 ms.
TEST(Validity, IsShorterThanTheTtlByTheDrift) {
    const DriftCase table[] = {
        {10s, 0.01, 102ms},  {1s, 0.01, 12ms},       {10s, 0, 2ms},
        {1ms, 0.01, 2010us}, {100h, 0.5, 50h + 2ms}, {876'600h, 0.01, 8'766h + 2ms},
    };
    for (const auto& [ttl, factor, expected] : table)
        EXPECT_THAT(drift(ttl, factor), LastsAbout(expected)) << text(ttl) << " × " << factor;
}

// S16. A fraction of a nanosecond is rounded up, which shortens the validity.
TEST(Validity, RoundsTheDriftUp) {
    EXPECT_THAT(drift(1ms, 1.5e-6), Lasts(2ms + 2ns));
}

// S19. A node whose clock is too fast by the drift factor lets no other client in early.
TEST(Validity, AllowsForFasterClocksOfTheNodes) {
    for (const milliseconds ttl : {1ms, 10'000ms, 3'600'000ms})
        EXPECT_LT(ttl - drift(ttl, 0.01), std::chrono::duration<double>{ttl} / 1.01) << text(ttl);
}

// S15, S16. The validity does not depend on which node was slow, nor on how many nodes had granted by then.
TEST(Validity, IsReducedByTheDurationOfTheWholeRound) {
    for (std::size_t slow_one = 0; slow_one < 5; ++slow_one) {
        World world;
        world.slow(slow_one, 40ms);
        auto lock = world.lock({.ttl = 1s});
        const auto result = lock.acquire();
        ASSERT_THAT(result, Succeeds());
        EXPECT_THAT(result.validity(), Lasts(1s - 12ms - 40ms));
    }
}

// S14, S18. The lock is acquired only if less than the validity has elapsed, here 1 s less a drift of 12 ms.
// A majority that came too late is no lock, and is released.
TEST(Validity, MustRemainAfterTheRound) {
    for (const auto second_node : {499ms, 500ms}) {
        World world{2, 500ms};
        world.slow(0, 488ms);
        world.slow(1, second_node);
        auto lock = world.lock(no_retry(1s));
        const bool in_time = 488ms + second_node < 988ms;
        const auto result = lock.try_acquire();
        EXPECT_EQ(result.error(), in_time ? std::error_code{} : Errc::validity_exhausted);
        EXPECT_THAT(result.validity(), Lasts(in_time ? 1ms : 0ms));
        EXPECT_EQ(lock.valid(), in_time);
        EXPECT_EQ(world.clean(), !in_time);
    }
}

// A1. The validity of a retry counts from its own start, not from that of the first attempt.
TEST(Validity, CountsFromTheAttemptThatSucceeded) {
    World world;
    world.occupy(1s, 0, 1, 2);
    auto lock = world.lock({.ttl = 10s});
    const auto result = lock.acquire_for(1min);
    ASSERT_THAT(result, Succeeds());
    ASSERT_GT(result.attempts(), 1);
    EXPECT_THAT(result.validity(), Lasts(10s - 102ms));
}

// C4, S33. The validity decreases with the clock, without I/O, to zero and not below.
TEST(Validity, DecreasesToZero) {
    World world;
    auto lock = world.held({.ttl = 10s});
    world.forget_events();
    EXPECT_THAT(lock.remaining(), Lasts(9898ms));
    world.pass(9s);
    EXPECT_THAT(lock.remaining(), Lasts(898ms));
    EXPECT_TRUE(lock.valid());
    world.pass(898ms - 1ns);
    EXPECT_THAT(lock.remaining(), Lasts(1ns));
    EXPECT_TRUE(lock.valid());
    world.pass(1ns);
    for (const Clock::duration later : {Clock::duration{0}, Clock::duration{100h}}) {
        world.pass(later);
        EXPECT_THAT(lock.remaining(), Lasts(0ns));
        EXPECT_FALSE(lock.valid());
    }
    EXPECT_THAT(world.events(), IsEmpty());
}

// S1, S9, S16. While valid() is true, the keys exist. The reverse is not guaranteed.
TEST(Validity, EndsBeforeTheKeysExpire) {
    for (const milliseconds ttl : {100ms, 1'000ms, 10'000ms, 3'600'000ms}) {
        World world;
        for (std::size_t node = 0; node < 5; ++node) world.slow(node, 3ms);
        auto lock = world.lock(no_retry(ttl));
        ASSERT_THAT(lock.acquire(), Succeeds());
        world.pass(lock.remaining() - 1ns);
        EXPECT_TRUE(lock.valid());
        EXPECT_EQ(world.held_by(lock.owner()), 5U);
    }
}

}  // namespace
}  // namespace redlock::test::validity_test
