// Rule D10 in a child of fork() that becomes a daemon: it closes all inherited descriptors, and opens files
// that get their numbers. The library must not use these files for its connections.
#include "forked_child.hpp"
#include "live_world.hpp"
#include "own_files.hpp"
#include "support/temporary_directory.hpp"

#include "os/os_network.hpp"
#include "os/resolution.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace redlock::test::daemon_live_test {
namespace {

struct Daemon : testing::Test {
    void SetUp() override { ASSERT_THAT(held->acquire(), Succeeds()); }

    /// In the child: becomes a daemon, uses and destroys the lock of the parent, and uses locks of its own.
    void live_as_daemon(const Report& report, const LockOptions& options = {}) {
        OwnFiles files{directory.path(), report.descriptor()};
        report(files.state());
        report(held->valid() ? "valid" : "not valid");
        report(held->extend().message());
        for (int i = 0; i < 3; ++i) {
            Lock mine{*nodes, "the child's", options};
            const bool worked = mine.acquire() && mine.extend() && mine.release();
            report(worked ? "worked" : "did not work");
        }
        report(files.state());
        held.reset();
        nodes.reset();
        report(files.state());
    }

    void expect_intact(const ForkedChild& daemon) {
        EXPECT_EQ(daemon.receive(), "as written");
        EXPECT_EQ(daemon.receive(), "not valid");
        EXPECT_EQ(daemon.receive(), make_error_code(Errc::not_held).message());
        for (int i = 0; i < 3; ++i) EXPECT_EQ(daemon.receive(), "worked");
        EXPECT_EQ(daemon.receive(), "as written") << "after the child has used the nodes";
        EXPECT_EQ(daemon.receive(), "as written") << "after it has destroyed them";
        EXPECT_EQ(OwnFiles::lines_executed_by(world), 0U);
        EXPECT_THAT(held->extend(), Succeeds()) << "the parent's connections stay";
    }

    LiveWorld world;
    Watchdog watchdog;
    support::TemporaryDirectory directory;
    std::unique_ptr<RedisNodes> nodes =
        std::make_unique<RedisNodes>(world.uris(), NodesOptions{.node_timeout = 2s});
    std::optional<Lock> held{std::in_place, *nodes, "the parent's", LockOptions{.ttl = 1min}};
};

// D10. It destroys them without having used them.
TEST_F(Daemon, KeepsItsFilesWhenItDestroysTheNodesAtOnce) {
    const ForkedChild daemon{[&](const Report& report) {
        OwnFiles files{directory.path(), report.descriptor()};
        held.reset();
        nodes.reset();
        report(files.state());
    }};
    EXPECT_EQ(daemon.receive(), "as written");
    EXPECT_EQ(OwnFiles::lines_executed_by(world), 0U);
}

// D10. The threads have shared connections, and a descriptor to wake the thread that leads.
TEST_F(Daemon, KeepsItsFilesWhileThreadsShareConnections) {
    std::atomic<bool> over{false};
    std::atomic<std::size_t> rounds{0};
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency() + 4; ++i)
        threads.emplace_back([&, name = "resource " + std::to_string(i)] {
            for (Lock lock{*nodes, name}; !over; ++rounds)
                if (lock.acquire()) (void)lock.release();
        });
    ASSERT_TRUE(wait_until([&] { return rounds > 10 * threads.size(); }));
    const ForkedChild daemon{[&](const Report& report) { live_as_daemon(report); }};
    expect_intact(daemon);
    over = true;
}

// D10. The thread waits with a connection of its own, and may be woken through a descriptor when it is to
// stop. A child that requests this stop has no such thread.
TEST_F(Daemon, KeepsItsFilesWhileAThreadWaitsInAQueue) {
    const LockOptions fair{.ttl = 1min, .fair = true};
    std::stop_source stop;
    std::jthread waiter{[&] {
        Lock waiting{*nodes, "the parent's", fair};
        EXPECT_EQ(waiting.acquire_for(1min, stop.get_token()).error(), Errc::cancelled);
    }};
    ASSERT_TRUE(wait_until([&] { return world[0].command({"ZCARD", "{the parent's}:queue"}) == "1"; }));
    const ForkedChild daemon{[&](const Report& report) {
        OwnFiles files{directory.path(), report.descriptor()};
        stop.request_stop();
        report(files.state());
        Lock mine{*nodes, "the child's", fair};
        report(mine.acquire() && mine.release() ? "worked" : "did not work");
        held.reset();
        nodes.reset();
        report(files.state());
    }};
    EXPECT_EQ(daemon.receive(), "as written") << "after a stop";
    EXPECT_EQ(daemon.receive(), "worked");
    EXPECT_EQ(daemon.receive(), "as written");
    EXPECT_EQ(OwnFiles::lines_executed_by(world), 0U);
    stop.request_stop();
}

// D10
TEST_F(Daemon, KeepsItsFilesWithAWatchdogOfItsParent) {
    held.emplace(*nodes, "the parent's", LockOptions{.ttl = 3s, .watchdog = &watchdog});
    ASSERT_THAT(held->acquire(), Succeeds());
    const auto extended = held->remaining();
    ASSERT_TRUE(wait_until([&] { return held->remaining() < extended - 500ms; }));
    ASSERT_TRUE(wait_until([&] { return held->remaining() > extended - 500ms; }));
    const ForkedChild daemon{
        [&](const Report& report) { live_as_daemon(report, {.ttl = 3s, .watchdog = &watchdog}); }};
    expect_intact(daemon);
}

/// Calls a function when the client has entered the queue for the first time.
struct WhenItIsInTheQueue final : Observer {
    explicit WhenItIsInTheQueue(std::function<void()> act) : action(std::move(act)) {}
    void round_ended(const Command& command, const Tally&, std::chrono::nanoseconds) noexcept override {
        if (command.verb == Verb::enter_queue && action) std::exchange(action, nullptr)();
    }
    std::function<void()> action;
};

// D10. The thread of the daemon returns from the callback into the operation that its parent has begun, and
// which has a connection for the message that wakes it.
TEST_F(Daemon, KeepsItsFilesIfItWasForkedDuringAnOperation) {
    const ForkedChild parent{[&](const Report& report) {
        std::optional<OwnFiles> files;  // of the daemon
        WhenItIsInTheQueue observer{[&] {
            if (::fork() == 0) files.emplace(directory.path(), report.descriptor());
        }};
        RedisNodes of_parent{world.uris(), {.node_timeout = 2s, .observer = &observer}};
        Lock waiting{of_parent, "the parent's", {.ttl = 1min, .fair = true}};
        const auto result = waiting.acquire_for(2s);
        report(files ? files->state() : result.message());
    }};
    EXPECT_THAT((std::vector{parent.receive(), parent.receive()}),
                testing::UnorderedElementsAre("as written", testing::StartsWith("held by another")));
    EXPECT_EQ(OwnFiles::lines_executed_by(world), 0U);
}

// ---- A child of fork() that goes on inside a function of its parent

/// Sets the read position of all files to their beginning. Other descriptors have no position.
void rewind_files() {
    for (int fd = STDERR_FILENO + 1; fd < 1024; ++fd) (void)::lseek(fd, 0, SEEK_SET);
}
/// Returns the number of files that were read from or written to since then.
int moved_files() {
    int moved = 0;
    for (int fd = STDERR_FILENO + 1; fd < 1024; ++fd) moved += ::lseek(fd, 0, SEEK_CUR) > 0 ? 1 : 0;
    return moved;
}

// D10. The child has closed the descriptors, and its files have their numbers.
TEST(ForkInACallback, AWakeupOfTheParentTouchesNoFileOfAChild) {
    OsNetwork network;
    auto wakeup = network.make_wakeup();
    ASSERT_TRUE(wakeup);
    const support::TemporaryDirectory directory;
    const ForkedChild child{[&](const Report& report) {
        OwnFiles files{directory.path(), report.descriptor()};
        report(files.state());
        rewind_files();
        wakeup->reset();
        wakeup->wake();
        report(std::to_string(moved_files()));
        wakeup.reset();
        report(files.state());
    }};
    EXPECT_EQ(child.receive(), "as written");
    EXPECT_EQ(child.receive(), "0");
    EXPECT_EQ(child.receive(), "as written") << "after the child has destroyed it";
}

// D10. The thread of the resolution is not in the child. The C library can give its identifier to a thread of
// the child.
TEST(ForkInACallback, AResolutionOfTheParentDetachesNoThreadOfAChild) {
    auto resolution = Resolution::in_thread([](const std::stop_token&) { return Resolution::Found{}; });
    const ForkedChild child{[&](const Report& report) {
        std::atomic<bool> over{false};
        std::thread mine{[&] { over.wait(false); }};
        resolution.reset();
        over = true;
        over.notify_all();
        try {
            mine.join();
            report("joined");
        } catch (const std::system_error& error) {
            report(error.what());
        }
    }};
    EXPECT_EQ(child.receive(), "joined");
}

}  // namespace
}  // namespace redlock::test::daemon_live_test
