// An observer is called for each round, each new and each lost connection and each back-off; it may use the
// library itself, since no mutex is held while it is called.
#include "fault_world.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace redlock::test {
namespace {

/// A log of the calls.
class ObserverLog : public Observer {
public:
    struct Entry {
        std::size_t kind;  ///< Command::verb
        std::string resource;
        std::vector<Vote> votes;
        std::vector<std::error_code> causes;
        std::chrono::nanoseconds took;
    };
    struct Failure {
        std::string node;
        std::error_code cause;
        std::string detail;
        std::chrono::nanoseconds pause{};
    };

    void round_ended(const Command& command, const Tally& tally,
                     std::chrono::nanoseconds took) noexcept override {
        const auto resources = command.resources;
        Entry entry{static_cast<std::size_t>(command.verb), resources.front(), {}, {}, took};
        for (const auto& report : tally.reports()) {
            entry.votes.push_back(report.vote);
            entry.causes.push_back(report.cause);
        }
        const std::lock_guard guard{mutex_};
        rounds_.push_back(std::move(entry));
    }
    void connecting(std::string_view node) noexcept override {
        const std::lock_guard guard{mutex_};
        ++connects_[std::string{node}];
    }
    void disconnected(std::string_view node, std::error_code cause,
                      std::string_view detail) noexcept override {
        const std::lock_guard guard{mutex_};
        disconnects_.push_back({std::string{node}, cause, std::string{detail}});
    }
    void backing_off(std::string_view node, std::error_code cause, std::string_view detail,
                     std::chrono::nanoseconds pause) noexcept override {
        const std::lock_guard guard{mutex_};
        pauses_.push_back({std::string{node}, cause, std::string{detail}, pause});
    }

    std::vector<Entry> rounds() const { return copy(rounds_); }
    std::vector<Failure> disconnects() const { return copy(disconnects_); }
    std::vector<Failure> pauses() const { return copy(pauses_); }
    /// Connections of that node that were made and not lost.
    std::size_t connections(const std::string& node) const {
        const std::lock_guard guard{mutex_};
        const auto made = connects_.find(node);
        const auto lost = std::ranges::count(disconnects_, node, &Failure::node);
        return made == connects_.end() ? 0 : made->second - static_cast<std::size_t>(lost);
    }
    void clear() {
        const std::lock_guard guard{mutex_};
        rounds_.clear();
        pauses_.clear();
    }

private:
    template <class Part>
    Part copy(const Part& part) const {
        const std::lock_guard guard{mutex_};
        return part;
    }

    mutable std::mutex mutex_{};
    std::vector<Entry> rounds_{};
    std::map<std::string, std::size_t> connects_{};
    std::vector<Failure> disconnects_{};
    std::vector<Failure> pauses_{};
};

constexpr std::size_t set = 0;
constexpr std::size_t extension = 1;
constexpr std::size_t release = 2;

std::vector<std::size_t> kinds(const ObserverLog& log) {
    std::vector<std::size_t> result;
    for (const auto& entry : log.rounds()) result.push_back(entry.kind);
    return result;
}

class AnObserver : public InEachRound {
protected:
    /// The entry has what the result has.
    static void expect_same(const ObserverLog::Entry& entry, const Result& result) {
        for (std::size_t node = 0; node < result.nodes().size(); ++node) {
            EXPECT_EQ(entry.votes[node], result.nodes()[node].vote);
            EXPECT_EQ(entry.causes[node], result.nodes()[node].cause);
        }
    }

    ObserverLog log{};
    FaultWorld world{3, {.node_timeout = 300ms, .round = GetParam(), .observer = &log}};
};
INSTANTIATE_TEST_SUITE_P(Asking, AnObserver, each_round(), by_round);

TEST_P(AnObserver, IsToldOfEachRoundWhatTheResultSays) {
    world.warm_up();
    log.clear();
    auto lock = world.lock();
    std::optional<Result> acquired;
    const auto taken = time_taken([&] { acquired = lock.acquire(); });
    const auto extended = lock.extend();
    const auto released = lock.release();
    ASSERT_THAT(kinds(log), ElementsAre(set, extension, release));
    const auto rounds = log.rounds();
    expect_same(rounds[0], *acquired);
    expect_same(rounds[1], extended);
    expect_same(rounds[2], released);
    for (const auto& round : rounds) {
        EXPECT_EQ(round.resource, the_resource);
        EXPECT_GT(round.took, 0ns);
    }
    EXPECT_LE(rounds[0].took, taken);
}

TEST_P(AnObserver, IsToldOfEachAttemptAndItsRelease) {
    for (auto& server : world) ASSERT_EQ(occupy(server), "OK");
    auto lock = world.lock({.retry = {.attempts = 3, .delay = 1ms}});
    EXPECT_THAT(lock.acquire(), FailsWith(Errc::held_by_other));
    EXPECT_THAT(kinds(log), ElementsAre(set, release, set, release, set, release));
}

TEST_P(AnObserver, IsToldWhyANodeDidNotVote) {
    world.warm_up();
    world.link(0).black_hole();
    auto lock = world.lock();
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
    ASSERT_THAT(log.pauses(), SizeIs(1));
    const auto pause = log.pauses()[0];
    EXPECT_EQ(pause.node, world.link(0).name());
    EXPECT_EQ(pause.cause, Errc::timed_out);
    EXPECT_GT(pause.pause, 0ms);
    EXPECT_LE(pause.pause, 1s);
}

TEST_P(AnObserver, IsToldWhyAConnectionEnds) {
    world.warm_up();
    auto lock = world.lock();
    world.link(1).cut_after(2);
    EXPECT_TRUE(wait_until([&] {
        (void)lock.acquire();
        (void)lock.release();
        return !log.disconnects().empty();
    }));
    for (const auto& disconnect : log.disconnects()) {
        EXPECT_EQ(disconnect.node, world.link(1).name());
        EXPECT_EQ(disconnect.cause, Errc::connection_failed);
        EXPECT_THAT(disconnect.detail, HasSubstr("closed by the server"));
    }
}

// Those made less those lost are the connections there are, whatever the fault.
TEST_P(AnObserver, CanCountTheConnectionsThereAre) {
    const std::vector<std::function<void(TcpProxy&)>> faults{
        [](auto& link) { link.reset(); },      [](auto& link) { link.cut_after(2); },
        [](auto& link) { link.cut_after(8); }, [](auto& link) { link.replace_replies("+NO\r\n"); },
        [](auto& link) { link.refuse(); },     [](auto& link) { link.duplicate_replies(); },
        [](auto& link) { link.hold(); }};
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

/// Locks another resource on the same nodes in each call, but not in those it causes itself.
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

TEST_P(AnObserver, MayLockOnTheSameNodesFromWithinACall) {
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
    EXPECT_GE(observer.successes(), at_first + 8);  // six rounds, a disconnection, a pause
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

TEST_P(AnObserver, ThatIsSlowDelaysNoOtherThread) {
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
}  // namespace redlock::test
