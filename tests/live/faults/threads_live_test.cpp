// Rules D1, D4 and D9 with many threads on one RedisNodes, while faults are injected into the proxies.
// ThreadSanitizer runs these tests, too.
#include "fault_world.hpp"

#include "support/in_threads.hpp"

#include <array>
#include <atomic>
#include <optional>
#include <random>
#include <thread>

namespace redlock::test::threads_live_test {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr auto span = 4s;
#else
constexpr auto span = 3s;
#endif

/// Injects faults at random into one proxy after the other, from a recorded seed.
class Nemesis {
public:
    explicit Nemesis(FaultWorld& world)
        : thread_{[this, &world](const std::stop_token& stop) { inject_faults(world, stop); }} {}

private:
    void inject_faults(FaultWorld& world, const std::stop_token& stop) {
        const auto seed = std::random_device{}();
        testing::Test::RecordProperty("seed", std::to_string(seed));
        std::mt19937 random{seed};
        while (!stop.stop_requested()) {
            auto& link = world.link(random() % world.size());
            switch (random() % 7) {
                case 0: link.hold(); break;
                case 1: link.reset(); break;
                case 2: link.cut_after(random() % 20); break;
                case 3: link.black_hole(); break;
                case 4: link.trickle(1ms); break;
                case 5: link.refuse(); break;
                default: link.delay(milliseconds{random() % 30}); break;
            }
            std::this_thread::sleep_for(milliseconds{random() % 30});
            link.heal();
        }
        for (auto& link : world.links()) link.heal();
    }

    std::jthread thread_;
};

class ManyThreads : public InEachRound {
protected:
    FaultWorld world{3, {.node_timeout = 20ms, .round = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(EachRound, ManyThreads, each_round(), by_round);

// A1, D1, D9. If a thread counts a grant, the key exists with the thread's owner: no reply belonged to
// another command. Each resource has one holder at a time.
//
// D4. After the faults all nodes grant again, and only broken connections may have left keys.
TEST_P(ManyThreads, HoldAResourceOneAtATime) {
    std::array<std::atomic<int>, 2> holders{};
    std::atomic<int> successes = 0;
    std::optional<Nemesis> nemesis{std::in_place, world};
    const auto end = boot_clock().now() + span;
    in_threads(6, [&](std::size_t i) {
        std::vector<support::RespConnection> truth;
        for (const auto& server : world) truth.push_back(server.connect());
        const auto resource = "orders:" + std::to_string(i % 2);
        auto lock = world.lock(resource, no_retry(8s));
        while (boot_clock().now() < end) {
            const auto result = lock.acquire();
            if (!result) continue;
            ++successes;
            ASSERT_EQ(++holders[i % 2], 1);
            for (std::size_t node = 0; node < 3; ++node)
                if (result.nodes()[node].vote == Vote::granted) {
                    ASSERT_EQ(truth[node].ask({"GET", resource}), lock.owner()) << result.message();
                }
            --holders[i % 2];
            (void)lock.extend();
            (void)lock.release();
        }
    });
    EXPECT_GT(successes, 0);
    nemesis.reset();
    world.warm_up();
    EXPECT_TRUE(wait_until([&] {
        (void)world.lock("another").acquire();
        return world.clean();
    }));
}

}  // namespace
}  // namespace redlock::test::threads_live_test
