// An observer is called for each new or lost connection, and may use the library itself, because no mutex is
// held during the call. The tests in tests/pure show what it is told.
#include "fault_world.hpp"

#include <atomic>
#include <functional>
#include <latch>
#include <map>
#include <mutex>
#include <thread>

namespace redlock::test::observer_live_test {
namespace {

/// Counts the connections to each node.
class ConnectionCount : public Observer {
public:
    void connecting(std::string_view node) noexcept override { count(node, 1); }
    void disconnected(std::string_view node, std::error_code, std::string_view) noexcept override {
        count(node, -1);
    }
    /// Returns the number of connections to the node that were made and not lost.
    std::size_t connections(const std::string& node) const {
        const std::lock_guard guard{mutex_};
        return static_cast<std::size_t>(connections_.at(node));
    }

private:
    void count(std::string_view node, int change) {
        const std::lock_guard guard{mutex_};
        connections_[std::string{node}] += change;
    }

    mutable std::mutex mutex_{};
    std::map<std::string, int> connections_{};
};

class AnObserver : public InEachRound {
protected:
    ConnectionCount log{};
    FaultWorld world{3, {.node_timeout = 300ms, .round = GetParam(), .observer = &log}};
};
INSTANTIATE_TEST_SUITE_P(EachRound, AnObserver, each_round(), by_round);

// Whatever the fault, the new connections minus the lost ones are the existing ones.
TEST_P(AnObserver, CanCountTheOpenConnections) {
    const std::vector<std::function<void(TcpProxy&)>> faults{
        [](auto& link) { link.reset(); },      [](auto& link) { link.cut_after(2); },
        [](auto& link) { link.cut_after(8); }, [](auto& link) { link.replace_replies("+NO\r\n"); },
        [](auto& link) { link.refuse(); },     [](auto& link) { link.hold(); }};
    auto lock = world.lock(no_retry());
    for (const auto& begin_fault : faults) {
        world.warm_up();
        begin_fault(world.link(1));
        for (int i = 0; i < 5; ++i) {
            (void)lock.acquire();
            (void)lock.release();
        }
        world.link(1).heal();
    }
    world.warm_up();
    for (auto& link : world.links())
        EXPECT_TRUE(wait_until([&] { return link.traffic().open == log.connections(link.name()); }))
            << link.traffic().open << " open, " << log.connections(link.name()) << " in the log";
}

/// Locks another resource on the same nodes in each call, except in calls that this locking causes.
class LockingObserver : public Observer {
public:
    void round_ended(const Command&, const Tally&, std::chrono::nanoseconds) noexcept override {
        lock_another();
    }
    void connecting(std::string_view) noexcept override { lock_another(); }
    void disconnected(std::string_view, std::error_code, std::string_view) noexcept override {
        lock_another();
    }
    void backing_off(std::string_view, std::error_code, std::string_view,
                     std::chrono::nanoseconds) noexcept override {
        lock_another();
    }

    void use(RedisNodes& nodes) { nodes_ = &nodes; }
    int successes() const noexcept { return successes_; }

private:
    void lock_another() {
        if (!nodes_ || busy_) return;
        busy_ = true;
        Lock lock{*nodes_, "of the observer", no_retry()};
        successes_ += lock.acquire() && lock.release() ? 1 : 0;
        busy_ = false;
    }

    RedisNodes* nodes_ = nullptr;
    bool busy_ = false;
    int successes_ = 0;
};

TEST_P(AnObserver, MayUseTheSameNodesFromItsCallback) {
    LockingObserver observer;
    FaultWorld observed{3, {.node_timeout = 2s, .round = GetParam(), .observer = &observer}};
    observer.use(observed.nodes);
    auto lock = observed.lock();
    EXPECT_THAT(lock.acquire(), Succeeds());
    const auto at_first = observer.successes();
    EXPECT_GE(at_first, 2);  // a connection and the round
    observed.warm_up();
    observed.link(0).reset();
    observed.link(0).refuse();
    for (int i = 0; i < 3; ++i) EXPECT_THAT(observed.lock("another").acquire(), Succeeds());
    EXPECT_GE(observer.successes(), at_first + 8);  // six rounds, a disconnection, a back-off
}

/// Does not return from its first call until the test resumes it.
class BlockingObserver : public Observer {
public:
    void round_ended(const Command&, const Tally&, std::chrono::nanoseconds) noexcept override {
        if (blocked_.exchange(true)) return;
        blocked.count_down();
        resume.wait();
    }

    std::latch blocked{1};
    std::latch resume{1};

private:
    std::atomic<bool> blocked_ = false;
};

TEST_P(AnObserver, DelaysNoOtherThreadIfItIsSlow) {
    BlockingObserver observer;
    FaultWorld observed{3, {.node_timeout = 2s, .round = GetParam(), .observer = &observer}};
    std::jthread first{[&] { (void)observed.lock("first").acquire(); }};
    observer.blocked.wait();
    auto lock = observed.lock();
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    observer.resume.count_down();
}

}  // namespace
}  // namespace redlock::test::observer_live_test
