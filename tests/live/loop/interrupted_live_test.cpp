// Acquisitions and runs of leaders in a loop that are cancelled, or whose object is destroyed, or whose loop
// ends, after each number of steps of the loop. No key may be left.
#include "live_fronts.hpp"

#include <string>

namespace redlock::test {
namespace {

template <class Type>
class Interrupted : public support::ClusterTest {
protected:
    /// The ttl is so long that only a release removes a key in time.
    SteppedLoop<Type> make() {
        const LockOptions options{.ttl = 10min, .retry = {.attempts = 1000, .delay = 5ms}};
        if constexpr (std::is_same_v<Type, LeaderInSteps>)
            return SteppedLoop<Type>{nodes, "orders:42",
                                     LeaderOptions{.ttl = 10min, .margin = 3s, .retry = {.delay = 20ms}}};
        else if constexpr (std::is_same_v<Type, SemaphoreInSteps>)
            return SteppedLoop<Type>{nodes, "jobs", std::size_t{2}, options};
        else
            return SteppedLoop<Type>{nodes, "orders:42", options};
    }
    /// Calls `interrupt` in a new loop after each number of steps. If `contended`, another client holds the
    /// resource, or one of two slots.
    template <class Interrupt>
    void at_each_step(Interrupt interrupt) {
        for (const bool contended : {false, true}) {
            std::optional<Lock> other;
            if (contended) {
                other.emplace(nodes, resource(), LockOptions{.ttl = 10min});
                ASSERT_TRUE(other->acquire());
            }
            for (int steps = 0; steps < 24; ++steps) {
                SCOPED_TRACE((contended ? "contended, after " : "after ") + std::to_string(steps));
                bool ended = false;
                auto loop = make();
                loop.begin([&] {
                    EXPECT_FALSE(ended);
                    ended = true;
                });
                for (int i = 0; i < steps && !ended; ++i) loop.step();
                interrupt(loop, ended);
                loop.destroy();
                EXPECT_TRUE(support::wait_until([&] { return all_keys() == (contended ? 5U : 0U); }));
            }
        }
    }
    static std::string resource() {
        return std::is_same_v<Type, SemaphoreInSteps> ? "{jobs}:slot:0" : "orders:42";
    }
    std::size_t all_keys() { return keys(resource()) + keys("{jobs}:slot:1"); }
};
using InSteps = testing::Types<LockInSteps, SemaphoreInSteps, LeaderInSteps>;
TYPED_TEST_SUITE(Interrupted, InSteps);

TYPED_TEST(Interrupted, CallsItsCompletionOnceIfItIsCancelled) {
    this->at_each_step([](auto& loop, const bool& ended) {
        loop.cancel();
        loop.run();
        EXPECT_TRUE(ended);
        loop.destroy();
        loop.run();
    });
}

TYPED_TEST(Interrupted, CallsItsCompletionOnceIfItsObjectIsDestroyed) {
    this->at_each_step([](auto& loop, const bool& ended) {
        loop.destroy();
        loop.run();
        EXPECT_TRUE(ended);
    });
}

TYPED_TEST(Interrupted, CallsNoCompletionIfItsLoopEnds) {
    this->at_each_step([](auto& loop, const bool& ended) {
        const bool ended_before = ended;
        loop.end();
        loop.destroy();
        EXPECT_EQ(ended, ended_before);
    });
}

}  // namespace
}  // namespace redlock::test
