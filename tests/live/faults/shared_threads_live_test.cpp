// Many threads on one RedisNodes. So many rounds are under way that the threads share connections.
// ThreadSanitizer runs these tests, too.
#include "live/forked_child.hpp"
#include "live/live_world.hpp"
#include "support/in_threads.hpp"

#include <array>
#include <atomic>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace redlock::test::shared_threads_live_test {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr std::size_t turns = 5;
#else
constexpr std::size_t turns = 40;
#endif

/// Returns a number of threads that share connections whatever the number of processors is.
std::size_t many() {
    return std::max<std::size_t>(64, 4 * std::thread::hardware_concurrency());
}

std::string own_resource(std::size_t thread) {
    return "orders:" + std::to_string(thread);
}

/// Does something to the servers again and again, as long as the object exists.
class Repeated {
public:
    explicit Repeated(std::function<void()> action)
        : thread_{[action = std::move(action)](const std::stop_token& stop) {
              while (!stop.stop_requested()) {
                  action();
                  std::this_thread::sleep_for(5ms);
              }
          }} {}

private:
    std::jthread thread_;
};

class SharingThreads : public InEachRound {
protected:
    /// Lets many threads acquire and release resources of their own. Returns how many acquisitions failed.
    std::size_t lock_in_threads(std::size_t times = turns) { return lock_in_threads(world, times, 1min); }
    static std::size_t lock_in_threads(LiveWorld& world, std::size_t times, milliseconds ttl) {
        std::atomic<std::size_t> failures = 0;
        in_threads(many(), [&](std::size_t thread) {
            auto lock = world.lock(own_resource(thread), {.ttl = ttl, .retry = {.attempts = 1}});
            for (std::size_t turn = 0; turn < times; ++turn) {
                if (!lock.acquire()) ++failures;
                if (turn % 2 == 0)
                    lock.unlock();
                else
                    (void)lock.release();
            }
        });
        return failures;
    }

    bool becomes_clean() { return becomes_clean(world); }
    static bool becomes_clean(LiveWorld& world) {
        return wait_until([&] { return world.clean(); });
    }

    LiveWorld world{3, {.node_timeout = 5s, .round = GetParam(), .share_connections = true}};
};
INSTANTIATE_TEST_SUITE_P(EachRound, SharingThreads, each_round(), by_round);

// Most of the threads have no connections of their own. Each server has executed as many SET as there were
// acquisitions, and no key is left.
TEST_P(SharingThreads, UseFewConnections) {
    EXPECT_EQ(lock_in_threads(), 0U);
    EXPECT_TRUE(becomes_clean());
    for (auto& server : world) {
        EXPECT_EQ(calls(server, "set"), many() * turns);
        EXPECT_LT(std::stoul(server.info("stats", "total_connections_received")),
                  3 * std::thread::hardware_concurrency() + 10);
    }
}

// S1, A1. Each reply is delivered to the thread whose command it answers.
TEST_P(SharingThreads, HoldAResourceOneAtATime) {
    std::array<std::atomic<int>, 4> holders{};
    std::atomic<std::size_t> successes = 0;
    in_threads(many(), [&](std::size_t thread) {
        auto& holder = holders[thread % holders.size()];
        auto lock = world.lock(own_resource(thread % holders.size()), {.retry = {.attempts = 1}});
        for (std::size_t turn = 0; turn < turns; ++turn) {
            if (!lock.acquire()) continue;
            EXPECT_EQ(++holder, 1);
            ++successes;
            --holder;
            EXPECT_TRUE(lock.release());
        }
    });
    EXPECT_GT(successes, 0U);
    EXPECT_TRUE(becomes_clean());
}

// The threads come and go, so that sharing begins and ends again and again. No command of a lock overtakes
// another one of the same lock.
TEST_P(SharingThreads, ComeAndGo) {
    for (std::size_t time = 0; time < 5; ++time) {
        EXPECT_EQ(lock_in_threads(5), 0U);
        auto lock = world.lock(own_resource(0));
        for (int i = 0; i < 100; ++i) {
            ASSERT_THAT(lock.acquire(), Succeeds());
            ASSERT_THAT(lock.extend(), Succeeds());
            lock.unlock();
        }
    }
    EXPECT_TRUE(becomes_clean());
}

// D4. A frozen server delays the threads together, and not one after the other.
TEST_P(SharingThreads, AreNotDelayedByAFrozenServer) {
    constexpr auto node_timeout = 1s;
    LiveWorld slow{3, {.node_timeout = node_timeout, .round = GetParam(), .share_connections = true}};
    slow[0].freeze();
    const auto taken = time_taken([&] {
        in_threads(many(), [&](std::size_t thread) {
            auto lock = slow.lock(own_resource(thread), {.ttl = 1min});
            for (std::size_t turn = 0; turn < turns; ++turn) {
                EXPECT_THAT(lock.acquire(), Succeeds());
                EXPECT_THAT(lock.release(), Succeeds());
            }
        });
    });
    EXPECT_THAT(taken, LastsAtMost(8 * node_timeout));
    slow[0].thaw();
    EXPECT_TRUE(wait_until([&] {
        (void)slow.lock("another").acquire();
        return slow.clean();
    }));
}

// A round is not delayed beyond its deadline by the rounds of other threads, although no server answers.
TEST_P(SharingThreads, MeetTheirDeadlines) {
    for (auto& server : world) server.freeze();
    std::atomic<std::int64_t> latest = 0;
    const auto taken = time_taken([&] {
        in_threads(many(), [&](std::size_t thread) {
            auto lock = world.lock(own_resource(thread));
            const auto span = milliseconds{20 + 5 * thread};
            const auto late = time_taken([&] { EXPECT_FALSE(lock.acquire_for(span)); }) - span;
            auto seen = latest.load();
            while (late.count() > seen && !latest.compare_exchange_weak(seen, late.count())) {
            }
        });
    });
    EXPECT_THAT(taken, LastsAtMost(5s));
    for (auto& server : world) server.thaw();
    RecordProperty("latest_ms", std::to_string(latest / 1'000'000));
}

TEST_P(SharingThreads, EndWhenTheyAreStopped) {
    ASSERT_EQ(occupy(world[0]), "OK");
    ASSERT_EQ(occupy(world[1]), "OK");
    std::stop_source source;
    std::atomic<std::size_t> begun = 0;
    std::jthread stopper{[&] {
        EXPECT_TRUE(wait_until([&] { return begun >= many(); }));
        source.request_stop();
    }};
    in_threads(many(), [&](std::size_t) {
        auto lock = world.lock({.retry = {.attempts = 1'000'000, .delay = 10ms}});
        ++begun;
        EXPECT_EQ(lock.acquire(source.get_token()).error(), Errc::cancelled);
    });
}

// A key can stay until it expires if its connection broke while its SET was pending.
TEST_P(SharingThreads, SurviveBrokenConnections) {
    LiveWorld broken{3, {.node_timeout = 200ms, .round = GetParam(), .share_connections = true}};
    std::optional<Repeated> kill{std::in_place, [&] {
                                     for (const auto& server : broken)
                                         server.command({"CLIENT", "KILL", "TYPE", "normal"});
                                 }};
    (void)lock_in_threads(broken, turns, 1s);
    kill.reset();
    EXPECT_TRUE(becomes_clean(broken));
    EXPECT_TRUE(wait_until([&] { return lock_in_threads(broken, 1, 1s) == 0; }));
    EXPECT_TRUE(becomes_clean(broken));
}

// D10. The child makes connections of its own although other threads used the shared ones during fork().
TEST_P(SharingThreads, LeaveTheirConnectionsToTheParentInAChild) {
    std::atomic<bool> ends = false;
    std::jthread others{[&] {
        in_threads(many(), [&](std::size_t thread) {
            auto lock = world.lock(own_resource(thread));
            while (!ends) {
                EXPECT_THAT(lock.acquire(), Succeeds());
                EXPECT_THAT(lock.release(), Succeeds());
            }
        });
    }};
    EXPECT_TRUE(wait_until([&] { return calls(world[0], "set") > 10 * many(); }));
    for (int i = 0; i < 3; ++i) {
        ForkedChild child{[&](auto report) {
            auto lock = world.lock("child");
            const bool acquired = static_cast<bool>(lock.acquire());
            report(acquired && lock.release() ? "done" : "failed");
        }};
        EXPECT_EQ(child.receive(), "done");
        EXPECT_EQ(child.wait(), 0);
    }
    ends = true;
    others.join();
    EXPECT_TRUE(becomes_clean());
}

// D4. Threads that wait for a resource which another client holds take nothing from the others.
TEST_P(SharingThreads, LetAThousandFreeResourcesPassAContendedOne) {
    for (std::size_t node = 0; node < 2; ++node) ASSERT_EQ(occupy(world[node], 10min), "OK");
    for (const bool fair : {false, true}) {
        std::stop_source source;
        std::atomic<std::size_t> waiting = 0;
        std::jthread contenders{[&] {
            in_threads(8, [&](std::size_t) {
                auto lock = world.lock({.retry = {.attempts = 1'000'000, .delay = 5ms}, .fair = fair});
                ++waiting;
                EXPECT_EQ(lock.acquire(source.get_token()).error(), Errc::cancelled);
            });
        }};
        EXPECT_TRUE(wait_until([&] { return waiting == 8; }));
        in_threads(many(), [&](std::size_t thread) {
            for (auto number = thread; number < 1000; number += many()) {
                auto lock =
                    world.lock("free:" + std::to_string(number), {.ttl = 1min, .retry = {.attempts = 1}});
                const auto taken = time_taken([&] { EXPECT_THAT(lock.acquire(), Succeeds()); });
                EXPECT_THAT(taken, LastsAtMost(5s)) << "node_timeout";
                EXPECT_THAT(lock.release(), Succeeds());
            }
        });
        source.request_stop();
    }
}

// The destructor of the nodes waits until the servers have executed the releases. Before that, it must not
// close the connections, because a server stops to read from a connection on which it cannot reply.
TEST_P(SharingThreads, ReleasesArriveAlthoughTheNodesAreDestroyed) {
    for (const bool shares : {true, false}) {
        std::optional<RedisNodes> nodes{
            std::in_place, world.uris(),
            NodesOptions{.node_timeout = 5s, .round = GetParam(), .share_connections = shares}};
        for (std::size_t turn = 0; turn < 5; ++turn)
            in_threads(many(), [&](std::size_t thread) {
                Lock lock{*nodes, own_resource(thread), {.ttl = 10min}};
                EXPECT_THAT(lock.acquire(), Succeeds());
            });
        nodes.reset();
        EXPECT_TRUE(becomes_clean());
    }
}

}  // namespace
}  // namespace redlock::test::shared_threads_live_test
