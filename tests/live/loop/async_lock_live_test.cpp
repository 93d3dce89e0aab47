// An AsyncLock in a poll() loop, in a process that becomes a daemon.
#include "live/forked_child.hpp"
#include "live/own_files.hpp"
#include "poll_loop.hpp"
#include "support/cluster_test.hpp"
#include "support/temporary_directory.hpp"

#include <redlock/async_lock.hpp>

#include <chrono>
#include <memory>
#include <optional>

namespace redlock::test::async_lock_live_test {
namespace {

using namespace std::chrono_literals;

using InALoop = support::ClusterTest;

// D10. The daemon closes all descriptors, and opens files that get their numbers. It runs the copy of the
// loop, destroys what its parent has made, and makes AsyncNodes of its own for this loop.
TEST_F(InALoop, ADaemonKeepsItsFiles) {
    const support::TemporaryDirectory directory;
    PollLoop of_parent;
    auto made = std::make_unique<AsyncNodes>(nodes, of_parent);
    const auto watched =
        std::make_unique<AsyncLock>(*made, "watched", LockOptions{.ttl = 3s, .watchdog = loop_watchdog()});
    auto waiting = std::make_unique<AsyncLock>(*made, "watched", LockOptions{.ttl = 1min, .fair = true});
    bool acquired = false;
    watched->acquire([&](const Result& it) {
        acquired = static_cast<bool>(it);
        waiting->acquire_for(1min, [](const Result&) {});
    });
    const auto run_until = [&](auto condition) {
        return support::wait_until([&] {
            (void)of_parent.run_once(std::chrono::steady_clock::now() + 10ms);
            return condition();
        });
    };
    ASSERT_TRUE(run_until([&] { return cluster[0].command({"ZCARD", "{watched}:queue"}) == "1"; }));
    ASSERT_TRUE(acquired);
    ForkedChild daemon{[&](const Report& report) {
        OwnFiles files{directory.path(), report.descriptor()};
        (void)run_until([until = std::chrono::steady_clock::now() + 100ms] {
            return std::chrono::steady_clock::now() >= until;
        });
        waiting.reset();
        made.reset();
        report(files.state());
        AsyncNodes of_child{nodes, of_parent};
        AsyncLock mine{of_child, "the child's", {.fair = true}};
        std::optional<Result> result;
        mine.acquire([&](Result it) { result = std::move(it); });
        (void)run_until([&] { return result.has_value(); });
        report(result && *result && mine.valid() ? "worked" : "did not work");
        report(files.state());
    }};
    EXPECT_EQ(daemon.receive(), "as written") << "after the daemon has used the loop of its parent";
    EXPECT_EQ(daemon.receive(), "worked");
    EXPECT_EQ(daemon.receive(), "as written");
    EXPECT_EQ(daemon.wait(), 0);
    EXPECT_EQ(OwnFiles::lines_executed_by(cluster), 0U);
    EXPECT_TRUE(watched->valid());
    EXPECT_EQ(keys("watched"), 5U);
}

}  // namespace
}  // namespace redlock::test::async_lock_live_test
