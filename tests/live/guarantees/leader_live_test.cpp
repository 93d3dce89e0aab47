// A leader with its own watchdog, on real servers.
#include "watchdog_world.hpp"

#include "support/in_threads.hpp"

#include <redlock/leader.hpp>

#include <atomic>
#include <thread>

namespace redlock::test::leader_live_test {
namespace {

TEST(LeaderThreads, LeadOneAfterAnother) {
    LiveWorld world;
    std::atomic<int> at_work{0};
    std::atomic<int> terms{0};
    std::atomic<std::uint64_t> largest{0};
    std::stop_source stop;
    in_threads(4, [&](auto) {
        Leader leader{world.nodes, the_resource, {.ttl = 10s, .retry = {.delay = 5ms}}};
        leader.run(
            [&](const Term& term) {
                EXPECT_EQ(at_work.fetch_add(1), 0);
                EXPECT_GT(term.fencing_token(), largest.exchange(term.fencing_token()));
                if (terms.fetch_add(1) == 40) stop.request_stop();
                std::this_thread::sleep_for(1ms);
                at_work.fetch_sub(1);
            },
            stop.get_token());
    });
    EXPECT_GE(terms, 41);
    EXPECT_TRUE(wait_until([&] { return holder(world[0]) == "(nil)"; }));
}

}  // namespace
}  // namespace redlock::test::leader_live_test
