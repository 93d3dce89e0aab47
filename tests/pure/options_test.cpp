// The options that a Lock rejects before any I/O. The message names the field.
#include "world.hpp"

#include <redlock/async_lock.hpp>
#include <redlock/leader.hpp>
#include <redlock/recursive_lock.hpp>
#include <redlock/redis_nodes.hpp>
#include <redlock/semaphore.hpp>

#include <limits>
#include <type_traits>

namespace redlock::test::options_test {
namespace {

struct BadOption {
    const char* name;
    LockOptions options;
    const char* field;
};

constexpr auto nan = std::numeric_limits<double>::quiet_NaN();
constexpr auto infinity = std::numeric_limits<double>::infinity();

const BadOption invalid[] = {{"TtlZero", {.ttl = 0ms}, "ttl"},
                             {"TtlNegative", {.ttl = -1ms}, "ttl"},
                             {"TtlMostNegative", {.ttl = milliseconds::min()}, "ttl"},
                             {"TtlOfOneMillisecond", {.ttl = 1ms}, "ttl"},
                             {"TtlBelowDriftAndNodeTimeout", {.ttl = 52ms}, "ttl"},
                             {"TtlOf2To60", {.ttl = milliseconds{1LL << 60}}, "ttl"},
                             {"TtlAbove2To53", {.ttl = milliseconds{(1LL << 53) + 1}}, "ttl"},
                             {"TtlMost", {.ttl = milliseconds::max()}, "ttl"},
                             {"TtlEatenByDrift", {.ttl = 10s, .drift_factor = 0.9999}, "ttl"},
                             {"NoAttempts", {.retry = {.attempts = 0}}, "retry.attempts"},
                             {"NegativeAttempts", {.retry = {.attempts = -1}}, "retry.attempts"},
                             {"NoDelay", {.retry = {.delay = 0ms}}, "retry.delay"},
                             {"NegativeDelay", {.retry = {.delay = -1ms}}, "retry.delay"},
                             {"EndlessDelay", {.retry = {.delay = milliseconds::max()}}, "retry.delay"},
                             {"NegativeQueueTimeout", {.queue_timeout = -1ms}, "queue_timeout"},
                             {"MinHoldNegative", {.min_hold = -1ms}, "min_hold"},
                             {"MinHoldAboveTheTtl", {.min_hold = 10'001ms}, "min_hold"},
                             {"MinHoldOfASharedLock", {.shared = true, .min_hold = 1ms}, "min_hold"},
                             {"FairAndShared", {.fair = true, .shared = true}, "shared"},
                             {"HolderTooLong", {.holder = std::string(1001, 'x')}, "holder"},
                             {"MarginOfHalfTheTtl", {.margin = 5s}, "margin"},
                             {"MarginNegative", {.margin = -1ms}, "margin"},
                             {"MarginWithoutAWatchdog", {.margin = 1ms}, "margin"},
                             {"DriftNegative", {.drift_factor = -0.01}, "drift_factor"},
                             {"DriftOne", {.drift_factor = 1}, "drift_factor"},
                             {"DriftNaN", {.drift_factor = nan}, "drift_factor"},
                             {"DriftInfinite", {.drift_factor = infinity}, "drift_factor"}};

// A10. The ttl, node_timeout and the retries are checked before any I/O.
TEST(InvalidOptions, AreRejectedByName) {
    World world{5, 50ms};
    for (const auto& bad : invalid) {
        SCOPED_TRACE(bad.name);
        const auto message = refusal([&] { (void)world.lock(bad.options); });
        EXPECT_THAT(message, HasSubstr(std::string{"LockOptions::"} + bad.field));
        EXPECT_THAT(message, HasSubstr("must"));
    }
    EXPECT_THAT(world.events(), IsEmpty());
}

// A9, A10. If node_timeout leaves no validity, the message names both options.
TEST(Options, MustHaveANodeTimeoutBelowTheTtl) {
    for (const auto node_timeout : {9899ms, 10'000ms, 20'000ms}) {
        World world{5, node_timeout};
        const auto message = refusal([&] { (void)world.lock({.ttl = 10s}); });
        EXPECT_THAT(message, HasSubstr("LockOptions::ttl"));
        EXPECT_THAT(message, HasSubstr("NodesOptions::node_timeout"));
    }
    World world{5, 9897ms};
    EXPECT_NO_THROW((void)world.lock({.ttl = 10s}));
}

// A10. The drift is 102 ms.
TEST(Options, MustHaveAMarginThatLeavesTimeForAnExtension) {
    World world{5, 5s};
    EXPECT_THAT(refusal([&] { (void)world.lock({.ttl = 10s, .margin = 4898ms}); }),
                HasSubstr("LockOptions::margin is 4898 ms; it must leave more of the ttl than 5102 ms"));
}

// A10, S34. The message names the smallest valid ttl.
TEST(Options, AreRejectedWithTheSmallestValidTtl) {
    World world{5, 50ms};
    EXPECT_EQ(refusal([&] { (void)world.lock({.ttl = 20ms, .drift_factor = 0}); }),
              "redlock: LockOptions::ttl is 20 ms; it must exceed 52 ms (the drift and "
              "NodesOptions::node_timeout), or no validity is left");
}

// A10. The limits of the permitted values are permitted, and work.
TEST(Options, MayHaveTheirLimits) {
    const LockOptions table[] = {
        {.ttl = 876'600h},                         // 100 years
        {.ttl = 4ms, .drift_factor = 0},           // with a node_timeout of 1 ms
        {.retry = {.attempts = 1, .delay = 1ms}},  //
        {.retry = {.attempts = std::numeric_limits<int>::max(), .delay = 24h}},
        {.fair = true, .queue_timeout = 0ms},
        {.fair = true, .queue_timeout = milliseconds::max()},
        {.drift_factor = 0},
        {.drift_factor = 0.99},
        {.min_hold = 10s},
    };
    for (const auto& options : table) {
        World world{5, 1ms};
        auto lock = world.lock(options);
        EXPECT_THAT(lock.acquire(), Succeeds());
        EXPECT_TRUE(lock.valid());
        EXPECT_THAT(lock.remaining(), Lasts(options.ttl - drift(options.ttl, options.drift_factor)));
    }
}

// A10. A ttl below a millisecond needs a cast, so it never becomes 0 unnoticed.
static_assert(!std::is_convertible_v<std::chrono::microseconds, decltype(LockOptions::ttl)>);
static_assert(std::is_convertible_v<std::chrono::hours, decltype(LockOptions::ttl)>);

// S13. 5 to 50 ms for each node if the ttl is 10 s. S21. A pause is clearly longer than a round.
TEST(Options, HaveTheDocumentedDefaults) {
    EXPECT_EQ(LockOptions{}.ttl, 10s);
    EXPECT_EQ(LockOptions{}.retry.attempts, 3);
    EXPECT_EQ(LockOptions{}.retry.delay, 200ms);
    EXPECT_EQ(LockOptions{}.drift_factor, 0.01);
    EXPECT_THAT(NodesOptions{}.node_timeout, IsBetween(5ms, 50ms));
    EXPECT_GT(LockOptions{}.retry.delay / 2, NodesOptions{}.node_timeout);
}

// ---- The resource.

// Any bytes are permitted, and reach the nodes unchanged.
TEST(AResource, MayBeAnyBytes) {
    using namespace std::string_literals;
    const std::string table[] = {
        "a\0b"s,        "\0"s,       "a\nb", "a\r\nDEL b", " ",
        "\xff\xfe\x80", "schlüssel", "{a}b", "*",          std::string(1024 * 1024, 'x')};
    for (const auto& resource : table) {
        World world;
        auto lock = world.lock(resource);
        ASSERT_THAT(lock.acquire(), Succeeds());
        EXPECT_EQ(lock.resource(), resource);
        EXPECT_EQ(world.held_by(lock.owner(), resource), 5U);
        EXPECT_THAT(lock.extend(), Succeeds());
        EXPECT_THAT(lock.release(), Succeeds());
        EXPECT_EQ(world.held_by({}, resource), 5U);
    }
}

// The loop of an AsyncLock extends it. Nobody would extend a lock that belongs to no loop.
TEST(TheWatchdogOfALoop, IsRejectedByLocksThatBelongToNoLoop) {
    World world;
    const LockOptions options{.watchdog = loop_watchdog()};
    const auto names_the_watchdog = HasSubstr(
        "LockOptions::watchdog is loop_watchdog(); it must be a Watchdog, because the lock belongs to "
        "no loop");
    EXPECT_THAT(refusal([&] { (void)Lock{world, "a", options}; }), names_the_watchdog);
    EXPECT_THAT(refusal([&] { (void)Semaphore{world, "a", 2, options}; }), names_the_watchdog);
    EXPECT_THAT(refusal([&] { (void)RecursiveLock{world, "a", options}; }), names_the_watchdog);
    EXPECT_THAT(refusal([&] {
                    (void)Leader{world, "a", {.watchdog = loop_watchdog()}};
                }),
                names_the_watchdog);
    EXPECT_THAT(world.events(), testing::IsEmpty());
}

/// Nodes whose deadlines are instants of one particular clock.
class NodesOfAClock : public ScriptedNodes {
public:
    NodesOfAClock(ManualClock& clock, EventLog& log) : ScriptedNodes(3, 50ms, clock, log), clock_(&clock) {}
    Clock* required_clock() const noexcept override { return clock_; }

private:
    Clock* clock_;
};

// With another clock each round would end before it began, or never.
TEST(AClock, IsRejectedIfTheNodesUseAnotherClock) {
    World world;
    World other;
    NodesOfAClock nodes{world.clock, world.log};
    RedisNodes redis{"10.0.0.1"};
    const auto names_the_clock = HasSubstr("clock is not the clock of the nodes");
    EXPECT_EQ(refusal([&] { (void)Lock{nodes, "a", {}, world.clock}; }), "");
    EXPECT_THAT(refusal([&] { (void)Lock{nodes, "a", {}, other.clock}; }), names_the_clock);
    EXPECT_EQ(refusal([&] { (void)Lock{redis, "a"}; }), "");
    EXPECT_THAT(refusal([&] { (void)Lock{redis, "a", {}, other.clock}; }), names_the_clock);
}

}  // namespace
}  // namespace redlock::test::options_test
