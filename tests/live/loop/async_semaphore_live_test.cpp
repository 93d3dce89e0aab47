// AsyncSemaphore in a poll() loop, against real servers.
#include "poll_loop.hpp"
#include "support/cluster_test.hpp"

#include <redlock/async_semaphore.hpp>
#include <redlock/semaphore.hpp>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test {
namespace {

using namespace std::chrono_literals;

class ASemaphoreInALoop : public support::SemaphoreTest {
protected:
    PollLoop loop{};
    AsyncNodes of_loop{nodes, loop};
};

TEST_F(ASemaphoreInALoop, SharesItsSlotsAmongManyWaiters) {
    std::deque<AsyncSemaphore> all;
    std::size_t inside = 0;
    std::size_t most = 0;
    std::size_t served = 0;
    for (int i = 0; i < 20; ++i) {
        auto& it =
            all.emplace_back(of_loop, "jobs", limit, LockOptions{.ttl = 1min, .retry = {.delay = 5ms}});
        it.acquire_for(5min, [&](Result acquired) {
            EXPECT_TRUE(acquired) << acquired.message();
            most = std::max(most, ++inside);
            it.extend([&](Result) {
                --inside;  // before the release, which frees the slot
                it.release([&](Result) { ++served; });
            });
        });
    }
    loop.run();
    EXPECT_EQ(served, 20U);
    EXPECT_GE(most, 1U);
    EXPECT_LE(most, limit);
    EXPECT_EQ(keys(), 0U);
}

}  // namespace
}  // namespace redlock::test
