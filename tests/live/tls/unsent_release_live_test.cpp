// A release whose connection is still being made when unlock() returns. It is sent later.
#include "unsent_release_world.hpp"

#include <string>
#include <thread>

namespace redlock::test::unsent_release_live_test {
namespace {

TEST_F(UnsentRelease, IsSentIfTheProcessDoesNothingElse) {
    auto nodes = make_nodes();
    auto locks = acquire_two(nodes);
    unlock_slowly(locks);
    EXPECT_FALSE(clean()) << "or this test shows nothing";
    expect_clean_in_time();
}

// D9. The thread that sends the release uses the same connections as other threads.
TEST_F(UnsentRelease, IsSentWhileOtherThreadsUseTheNodes) {
    auto nodes = make_nodes();
    std::deque<Lock> locks;
    for (int i = 0; i < 12; ++i) {
        locks.emplace_back(nodes, "orders:" + std::to_string(i), LockOptions{.ttl = 10min});
        ASSERT_THAT(locks.back().acquire(), Succeeds());
    }
    slow_down();
    in_threads(4, [&](std::size_t i) {
        for (std::size_t lock = i; lock < locks.size(); lock += 4) locks[lock].unlock();
    });
    EXPECT_TRUE(wait_until([&] { return clean(); }));
}

}  // namespace
}  // namespace redlock::test::unsent_release_live_test
