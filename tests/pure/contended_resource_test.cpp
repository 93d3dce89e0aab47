// One resource that another client holds, among many free ones, in one event loop over servers in memory.
#include "memory_loop_world.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "loop/round_places.hpp"
#include "round/write_choice.hpp"

namespace redlock::test::contended_resource_test {
namespace {

constexpr std::size_t free_resources = 1000;
constexpr auto latency = 10ms;

struct World : MemoryLoopWorld {
    /// The resource "r" is held, and so many locks of the loop wait for it.
    World(std::size_t contenders, bool fair) {
        for (std::size_t node = 0; node < size; ++node) {
            hold(node, "other");
            network.server(node).latency = latency;  // so mostly a command about "r" is outstanding
        }
        for (std::size_t i = 0; i < contenders; ++i) {
            const LockOptions options{.retry = {.attempts = 1'000'000, .delay = 5ms}, .fair = fair};
            contended.push_back(std::make_unique<AsyncLock>(*of_loop, "r", options));
            contended[i]->acquire([this](const Result&) { ++waits_ended; });
        }
        for (const auto end = now() + 20ms; now() < end;) loop.run_once(end);
        start = now();
    }

    void acquire_and_release_free_ones() {
        for (std::size_t i = 0; i < free_resources; ++i) {
            free.push_back(std::make_unique<AsyncLock>(*of_loop, "free" + std::to_string(i)));
            free[i]->acquire([this, i](const Result& acquired) {
                EXPECT_TRUE(acquired) << acquired.message();
                free[i]->release([this](const Result& result) {
                    EXPECT_TRUE(result) << result.message();
                    ++released;
                });
            });
        }
        const auto latest = now() + 1s;
        while (released < free_resources && now() < latest) loop.run_once(latest);
    }
    /// Returns the time from `start` to each command about a free resource, for each node in the order of
    /// execution.
    std::vector<Clock::duration> times_of_commands_about_free_ones() {
        std::vector<Clock::duration> found;
        for (std::size_t node = 0; node < size; ++node)
            for (const auto& it : network.server(node).executed())
                if (std::ranges::any_of(it.words, [](auto& word) { return word.starts_with("free"); }))
                    found.push_back(it.when - start);
        return found;
    }

    std::vector<std::unique_ptr<AsyncLock>> contended{};
    std::vector<std::unique_ptr<AsyncLock>> free{};
    std::size_t waits_ended = 0;
    std::size_t released = 0;
    Clock::time_point start{};
};

class AContendedResource : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(InALoop, AContendedResource, testing::Bool(),
                         [](const auto& info) { return info.param ? "WithAQueue" : "WithRetries"; });

// Of the free ones, RoundPlaces::size at a time make one round to acquire and one to release. The contended
// lock can take a place for one round, and a write waits for other replies for max_collecting at most.
TEST_P(AContendedResource, PostponesNoWriteForAThousandFreeOnes) {
    constexpr auto at_once = loop::RoundPlaces::size;
    constexpr auto rounds = 2 * ((free_resources + at_once - 1) / at_once);
    const auto times = [](std::size_t contenders) {
        World world{contenders, GetParam()};
        world.acquire_and_release_free_ones();
        EXPECT_EQ(world.released, free_resources);
        EXPECT_EQ(world.waits_ended, 0U);
        return world.times_of_commands_about_free_ones();
    };
    const auto alone = times(0);
    const auto beside = times(1);
    ASSERT_EQ(alone.size(), beside.size());
    Clock::duration postponed{};
    for (std::size_t i = 0; i < alone.size(); ++i) postponed = std::max(postponed, beside[i] - alone[i]);
    EXPECT_THAT(postponed, testing::Le(latency + rounds * detail::max_collecting));
}

// A lock that waits for its next attempt or for a message takes no place from a round.
TEST_P(AContendedResource, ThatManyWaitForLetsAThousandFreeOnesPass) {
    World world{loop::RoundPlaces::size + 50, GetParam()};
    world.acquire_and_release_free_ones();
    EXPECT_EQ(world.released, free_resources);
    EXPECT_EQ(world.waits_ended, 0U);
}

}  // namespace
}  // namespace redlock::test::contended_resource_test
