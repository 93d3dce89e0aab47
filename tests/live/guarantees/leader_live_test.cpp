// A leader with its own watchdog, on real servers.
#include "watchdog_world.hpp"

#include "live/in_threads.hpp"

#include <redlock/leader.hpp>

#include <atomic>
#include <functional>
#include <thread>

namespace redlock::test {
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

TEST(LeaderThreads, CanBeStoppedFromAnotherThread) {
    LiveWorld world;
    Leader leader{world.nodes, the_resource, {.ttl = 10s}};
    std::stop_source stop;
    std::atomic<bool> leads{false};
    std::jthread another{[&] {
        EXPECT_TRUE(wait_until([&] { return leads.load(); }));
        stop.request_stop();
    }};
    leader.run(
        [&](const Term& term) {
            leads = true;
            EXPECT_TRUE(wait_until([&] { return term.lost().stop_requested(); }));
            EXPECT_GT(term.remaining(), 0s);
        },
        stop.get_token());
    EXPECT_EQ(holder(world[0]), "(nil)");
}

// C6
TEST(LeaderThreads, AreNotifiedWithinTheTermIfAllNodesHang) {
    LiveWorld world{3, {.node_timeout = 1s}};
    Leader leader{world.nodes, the_resource, {.ttl = 5s, .margin = 2s}};
    std::chrono::nanoseconds left{-1};
    const auto result = leader.run_once([&](const Term& term) {
        std::atomic<bool> told{false};
        const std::stop_callback on_stop{term.lost(), [&] {
                                             left = term.remaining();
                                             told = true;
                                         }};
        for (auto& server : world) server.freeze();
        EXPECT_TRUE(wait_until([&] { return told.load(); }));
        for (auto& server : world) server.thaw();
    });
    EXPECT_THAT(result, FailsWith(Errc::lost));
    EXPECT_GT(left, 0s);
    EXPECT_LE(left, 2s + 5ms) << "it had gone on trying until then";
}

}  // namespace
}  // namespace redlock::test
