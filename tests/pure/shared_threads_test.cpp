// Threads that share connections (lane.hpp), over a network in memory and in virtual time. One of the threads
// leads, and the others sleep. A test begins the rounds of further threads while the leading thread waits.
#include "memory_network.hpp"
#include "support/wait_until.hpp"

#include <redlock/detail/renewer.hpp>

#include "redis/lane.hpp"
#include "redis/lanes.hpp"
#include "round/lane_choice.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace redlock::test::shared_threads_test {
namespace {

using support::wait_until;

/// Lets a test act while a thread waits.
class WatchedNetwork final : public Network {
public:
    explicit WatchedNetwork(MemoryNetwork& memory) : memory_(memory) {}

    /// Calls `action` in the wait after the next `skipped` waits.
    void during_wait(std::function<void()> action, int skipped = 0) {
        action_ = std::move(action);
        skipped_ = skipped;
    }
    /// Suspends the process for `span` after the first wait that ends at `instant` or later.
    void suspend_at(Clock::time_point instant, Clock::duration span) {
        suspended_at_ = instant;
        suspended_for_ = span;
    }
    std::function<void()> during_connect{};
    bool has_memory = true;
    bool has_wakeup = false;
    /// Returns how often a thread has woken the leading thread.
    int wake_ups() const { return wake_ups_; }

    Clock& clock() noexcept override { return memory_.clock(); }
    Entropy& entropy() noexcept override { return memory_.entropy(); }
    std::unique_ptr<Socket> connect(const Address& address, std::chrono::milliseconds longest_wait,
                                    int& error) override {
        if (!std::exchange(has_memory, true)) throw std::bad_alloc{};
        if (during_connect) during_connect();
        return memory_.connect(address, longest_wait, error);
    }
    void wait_for_descriptors(std::span<PollEntry> entries, Clock::time_point now, Clock::time_point until,
                              const std::stop_token& stop) override {
        if (action_ && skipped_-- == 0) std::exchange(action_, {})();
        const bool woken = woken_;
        memory_.wait(entries, now, woken ? now : until, stop);
        if (woken) entries.front().ready = true;
        if (clock().now() >= suspended_at_) {
            suspended_at_ = Clock::never();
            memory_.pass(suspended_for_);
        }
    }
    std::unique_ptr<BackgroundTask> make_task(BackgroundTask::Function function) override {
        return memory_.make_task(std::move(function));
    }
    std::unique_ptr<Wakeup> make_wakeup() override {
        return has_wakeup ? std::make_unique<CountedWakeup>(*this) : nullptr;
    }

private:
    struct CountedWakeup final : Wakeup {
        explicit CountedWakeup(WatchedNetwork& network) : of(network) {}
        PollEntry poll_entry() const noexcept override { return {}; }
        void wake() noexcept override {
            of.woken_ = true;
            ++of.wake_ups_;
        }
        void reset() noexcept override { of.woken_ = false; }
        WatchedNetwork& of;
    };

    std::atomic<bool> woken_ = false;
    std::atomic<int> wake_ups_ = 0;
    MemoryNetwork& memory_;
    std::function<void()> action_{};
    int skipped_ = 0;
    Clock::time_point suspended_at_ = Clock::never();
    Clock::duration suspended_for_{};
};

/// The round of a thread that need not be joined. A round that never ends fails the test program.
class OtherThread : detail::NotCopied {
public:
    explicit OtherThread(std::function<void()> work)
        : thread_{[this, work = std::move(work)] {
              try {
                  work();
              } catch (const std::bad_alloc&) {
                  out_of_memory_ = true;
              }
              over_ = true;
          }} {}
    ~OtherThread() {
        if (!wait_until([this] { return over_.load(); }, 20s)) {
            const auto& test = *testing::UnitTest::GetInstance()->current_test_info();
            std::cout << "a thread is never woken\n[  FAILED  ] " << test.test_suite_name() << "."
                      << test.name() << " hangs" << std::endl;
            std::_Exit(1);
        }
        thread_.join();
    }

    bool out_of_memory() const { return out_of_memory_; }
    bool over() const { return over_; }

private:
    std::atomic<bool> over_ = false;
    std::atomic<bool> out_of_memory_ = false;
    std::thread thread_;
};

constexpr std::size_t size = 3;

/// What a test knows of a round: its command and its votes.
struct Asked : detail::NotCopied {
    Asked(Verb verb, std::string resource, std::string its_owner, RoundLimits its_limits = {})
        : resources{std::move(resource)}, owner(std::move(its_owner)), limits(std::move(its_limits)) {
        request = {.command = {.verb = verb, .resources = resources, .owner = owner, .ttl = 10s}};
    }

    template <class Rounds>
    void ask(Rounds& rounds, auto... follows) {
        rounds.ask({&request, 1}, limits, {&tally, 1}, follows...);
    }

    const std::vector<std::string> resources;
    const std::string owner;
    const RoundLimits limits;
    Request request{};
    Tally tally{names_of(size)};
};

class InMemory : public testing::Test {
protected:
    /// Returns the connections and commands of a server that begin with this command.
    std::vector<std::string> log(std::size_t node) { return memory.server(node).log(); }
    std::string value(std::size_t node, const std::string& resource) {
        return memory.text_at(node, resource);
    }
    void forget_logs() {
        for (std::size_t node = 0; node < size; ++node) memory.server(node).forget_log();
    }

    MemoryNetwork memory{size};
    WatchedNetwork network{memory};
    const NodesOptions options{.round = Round::all_at_once};
};

// A thread of low priority may lose its processor in a system call, and others need the mutex.
TEST_F(InMemory, NoServerIsLockedDuringASystemCall) {
    const auto configs = for_one_process(memory.configs());
    std::size_t connections = 0;
    std::size_t unlocked = 0;
    network.during_connect = [&] {
        ++connections;
        const OtherThread other{[&] {
            for (const auto& it : configs) {
                (void)it.server->last_failure();  // locks it
                ++unlocked;
            }
        }};
    };
    Lane lane{configs, options, network};
    for (int i = 0; i < 2; ++i) {
        Asked set{Verb::set_if_absent, "r", "A"};
        set.ask(lane);
        memory.pass(5ms);
        memory.server(2).paused = true;
        Asked release{Verb::compare_and_delete, "r", "A", {.awaits_answers = false}};
        release.ask(lane);
        memory.server(2).close_connections(memory.clock().now());  // the release is to be sent again
        memory.pass(5ms);
        memory.server(2).paused = false;
    }
    EXPECT_GT(connections, configs.size()) << "a connection was begun for a release, too";
    EXPECT_EQ(unlocked, connections * configs.size());
}

// Threads avoid such a lane. So nobody else would ever find that it can connect again.
TEST_F(InMemory, ALaneWithoutDescriptorsIsTriedAgainAfterTenSeconds) {
    Lane lane{memory.configs(), options, network};
    memory.has_no_descriptor = true;
    Asked set{Verb::set_if_absent, "r", "A"};
    set.ask(lane);
    EXPECT_GE(lane.unconnected(), 2U);
    memory.pass(10s);
    EXPECT_EQ(lane.unconnected(), 0U);
}

TEST_F(InMemory, ALaneThatHasConnectedSinceLacksNoDescriptor) {
    Lane lane{memory.configs(), options, network};
    const auto ask = [&] { Asked{Verb::set_if_absent, "r", "A"}.ask(lane); };
    memory.has_no_descriptor = true;
    ask();
    memory.has_no_descriptor = false;
    ask();
    for (std::size_t node = 0; node < size; ++node) memory.server(node).paused = true;
    ask();
    EXPECT_EQ(lane.unconnected(), 0U);
}

TEST_F(InMemory, ALaneWhoseServersAreDownLacksNoDescriptor) {
    Lane lane{memory.configs(), options, network};
    for (std::size_t node = 0; node < size; ++node) memory.server(node).refuses = true;
    Asked set{Verb::set_if_absent, "r", "A"};
    set.ask(lane);
    EXPECT_EQ(lane.unconnected(), 0U);
}

// ---- One lane

struct SharedRoundsOfThreads : InMemory {
    Asked& set(const std::string& resource, RoundLimits limits = {}) {
        return asked.emplace_back(Verb::set_if_absent, resource, "owner of " + resource, std::move(limits));
    }
    Asked& release(const std::string& resource, RoundLimits limits = {}) {
        return asked.emplace_back(Verb::compare_and_delete, resource, "owner of " + resource,
                                  std::move(limits));
    }
    /// Makes the round in the thread of the test.
    void make(Asked& round) { round.ask(*rounds); }
    /// Begins the round in another thread, and waits until it sleeps or is about to.
    void begin(Asked& round) {
        const auto before = rounds->new_rounds();
        others.push_back(std::make_unique<OtherThread>([this, &round] { round.ask(*rounds); }));
        ASSERT_TRUE(wait_until([&] { return rounds->new_rounds() > before || others.back()->over(); }));
    }
    /// Makes the round in the thread of the test. During it, another thread makes and leaves its round, and
    /// then a third one the release, before `then` is called.
    void make_while_others_leave(Asked& round, Asked& left, Asked& undo, const std::function<void()>& then) {
        const auto is_over = [&] { return others.back()->over(); };
        network.during_wait([&] {
            begin(left);
            network.during_wait(
                [&] {
                    ASSERT_TRUE(wait_until(is_over, 20s));
                    begin(undo);
                    ASSERT_TRUE(wait_until(is_over, 20s));
                    then();
                },
                2);
        });
        make(round);
    }
    /// Gives the rounds so much time that no thread leaves its round on a busy machine.
    void be_patient() {
        rounds.emplace(memory.configs(), NodesOptions{.node_timeout = 10s, .round = Round::all_at_once},
                       network);
        SetUp();
    }
    void SetUp() override {
        make(set("first"));
        make(release("first"));
        memory.pass(5ms);
        forget_logs();
    }

    std::optional<Lane> rounds{std::in_place, memory.configs(), options, network};
    std::deque<Asked> asked{};
    std::vector<std::unique_ptr<OtherThread>> others{};
};

TEST_F(SharedRoundsOfThreads, AreMadeByTheLeadingThreadOnOneConnection) {
    be_patient();
    auto& mine = set("mine");
    std::vector<Asked*> theirs;
    for (const auto* const name : {"a", "b", "c"}) theirs.push_back(&set(name));
    network.during_wait([&] {
        for (auto* const it : theirs) begin(*it);
    });
    make(mine);
    others.clear();
    EXPECT_GE(mine.tally.granted(), 2U);
    for (const auto* const it : theirs) EXPECT_GE(it->tally.granted(), 2U);
    for (std::size_t node = 0; node < size; ++node)
        EXPECT_THAT(log(node), ElementsAre("2 SET", "2 SET", "2 SET", "2 SET"));
}

// The leading thread returns when its own round is over. The other round has just begun.
TEST_F(SharedRoundsOfThreads, GoOnWithASuccessor) {
    be_patient();
    auto& mine = set("mine");
    auto& theirs = set("theirs");
    network.during_wait([&] { begin(theirs); });
    make(mine);
    others.clear();
    EXPECT_GE(theirs.tally.granted(), 2U);
}

TEST_F(SharedRoundsOfThreads, WakeTheLeadingThreadEachTime) {
    network.has_wakeup = true;
    be_patient();
    auto& mine = set("mine");
    auto& second = set("second");
    auto& third = set("third");
    network.during_wait([&] {
        begin(second);
        EXPECT_TRUE(wait_until([&] { return network.wake_ups() == 1; }, 20s));
        network.during_wait([&] {
            begin(third);
            EXPECT_TRUE(wait_until([&] { return network.wake_ups() == 2; }, 20s));
        });
    });
    make(mine);
    others.clear();
    EXPECT_GE(third.tally.granted(), 2U);
}

TEST_F(SharedRoundsOfThreads, DoNotBeginAfterTheirDeadlines) {
    for (std::size_t node = 0; node < size; ++node) memory.server(node).latency = 20ms;
    auto& mine = set("mine");
    auto& late = set("late", {.deadline = memory.clock().now() + 1us});
    network.during_wait([&] { begin(late); });
    make(mine);
    others.clear();
    for (std::size_t node = 0; node < size; ++node) {
        EXPECT_FALSE(late.tally[node].sent);
        EXPECT_THAT(log(node), ElementsAre("1 SET"));
    }
}

// B1. The release is collected behind a SET without a reply. Nobody waits for either of them.
TEST_F(SharedRoundsOfThreads, LeaveNoCollectedReleaseBehind) {
    memory.server(0).paused = true;
    make(set("mine"));  // decided by the other nodes
    make(release("mine", {.awaits_answers = false}));
    memory.server(0).resume(memory.clock().now());
    EXPECT_THAT(log(0), ElementsAre("1 SET", "1 EVAL"));
    EXPECT_EQ(value(0, "mine"), "");
}

// The release is queued on a connection that is still being made. The background task sends it, but not at
// its first attempt.
TEST_F(SharedRoundsOfThreads, LeaveUnsentReleasesToTheBackgroundTask) {
    make(set("mine"));
    memory.pass(5ms);
    memory.server(0).close_connections(memory.clock().now());
    memory.server(0).unreachable = true;
    memory.pass(5ms);
    make(release("mine"));
    memory.pass(10ms);
    EXPECT_EQ(value(0, "mine"), "owner of mine");
    memory.server(0).unreachable = false;
    memory.pass(35ms);
    EXPECT_EQ(value(0, "mine"), "");
}

// This network has no descriptor with which another thread could wake the leading thread. The leading thread
// looks for new rounds each millisecond, and ends its own in time.
TEST_F(SharedRoundsOfThreads, EndAtTheirTimeWhileTheLeadingThreadLooksForNewOnes) {
    for (std::size_t node = 0; node < size; ++node) memory.server(node).paused = true;
    const auto start = memory.clock().now();
    const auto waits = memory.waits();
    make(set("mine"));
    EXPECT_LE(memory.clock().now() - start, 52ms);
    EXPECT_GE(memory.waits() - waits, 45U);
}

/// The parameter says for how long the process is suspended.
class SharedRoundsOfASuspendedProcess : public SharedRoundsOfThreads,
                                        public testing::WithParamInterface<std::chrono::milliseconds> {};
// The wait of the round ends after 25 ms, half of node_timeout.
INSTANTIATE_TEST_SUITE_P(ForSomeTime, SharedRoundsOfASuspendedProcess, testing::Values(20ms, 30ms));

// After 2 ms, two nodes have granted, and the process is suspended before it reads that. The last node has an
// eighth of node_timeout to become ready, and has answered the handshake within this time.
TEST_P(SharedRoundsOfASuspendedProcess, LookAtANodeOnceMoreBeforeTheyGiveItUp) {
    memory.server(2).close_connections(memory.clock().now());
    memory.pass(5ms);
    for (const auto node : {0U, 1U}) memory.server(node).latency = 2ms;
    memory.server(2).latency = 3ms;
    memory.server(2).unreachable = true;
    memory.clock().after(1ms, [this] { memory.server(2).unreachable = false; });
    network.suspend_at(memory.clock().now() + 2ms, GetParam());
    auto& round = set("r");
    make(round);
    EXPECT_EQ(round.tally.granted(), 2U);
    EXPECT_TRUE(round.tally[2].sent) << round.tally[2].cause.message() << ", " << round.tally[2].detail;
    EXPECT_EQ(value(2, "r"), "owner of r");
}

// ---- A leading thread that gets no processor. The other threads sleep in real time.

// A9. The round has not begun, so its thread takes it back.
TEST_F(SharedRoundsOfThreads, AreTakenBackIfTheLeadingThreadIsLate) {
    auto& mine = set("mine");
    auto& theirs = set("theirs");
    network.during_wait([&] {
        begin(theirs);
        ASSERT_TRUE(wait_until([&] { return others.back()->over(); }, 20s));
        EXPECT_TRUE(rounds->is_stalled());
    });
    make(mine);
    EXPECT_FALSE(rounds->is_stalled());
    EXPECT_GE(mine.tally.granted(), 2U);
    for (std::size_t node = 0; node < size; ++node) {
        EXPECT_FALSE(theirs.tally[node].sent);
        EXPECT_EQ(theirs.tally[node].cause, Errc::timed_out);
        EXPECT_THAT(log(node), ElementsAre("1 SET"));
    }
}

// The leading thread gets no processor in its last pass, in which it begins the other round.
TEST_F(SharedRoundsOfThreads, AreAvoidedNoMoreWhenTheLateLeadingThreadHasReturned) {
    memory.server(2).close_connections(memory.clock().now());
    memory.pass(5ms);
    auto& mine = set("mine");
    mine.request.to = NodeSet{0b011};
    auto& theirs = asked.emplace_back(Verb::query, "theirs", "");
    theirs.request.to = NodeSet{0b100};
    network.during_wait([&] { begin(theirs); });
    bool was_stalled = false;
    network.during_connect = [&] {
        ASSERT_TRUE(wait_until([&] { return others.back()->over(); }, 20s));
        was_stalled = rounds->is_stalled();
    };
    make(mine);
    EXPECT_TRUE(was_stalled) << "or this test shows nothing";
    EXPECT_FALSE(rounds->is_stalled());
}

// A9, B1, B5. The leading thread has written the SET. The release follows behind it, although its thread has
// left, too.
TEST_F(SharedRoundsOfThreads, AreReleasedThoughTheLeadingThreadIsLate) {
    for (std::size_t node = 0; node < size; ++node) memory.server(node).paused = true;
    auto& mine = set("mine");
    auto& theirs = set("theirs");
    auto& undo = release("theirs");
    make_while_others_leave(mine, theirs, undo, [&] {
        EXPECT_EQ(theirs.tally.sent().count(), size);
        for (std::size_t node = 0; node < size; ++node) memory.resume(node);
    });
    memory.pass(5ms);
    for (std::size_t node = 0; node < size; ++node) {
        EXPECT_THAT(log(node), ElementsAre("1 SET", "1 SET", testing::StartsWith("1 EVAL")));
        EXPECT_EQ(value(node, "theirs"), "");
        EXPECT_EQ(value(node, "mine"), "owner of mine");
    }
}

// The connection is being made, so the SET waits. The release would be written at once.
TEST_F(SharedRoundsOfThreads, EndALeftRoundBeforeItsReleaseBegins) {
    for (std::size_t node = 0; node < size; ++node) {
        memory.server(node).close_connections(memory.clock().now());
        memory.server(node).latency = 10ms;
    }
    memory.pass(5ms);
    auto& mine = set("mine");
    auto& theirs = set("theirs");
    auto& undo = release("theirs");
    make_while_others_leave(mine, theirs, undo, [] {});
    memory.pass(100ms);
    for (std::size_t node = 0; node < size; ++node) EXPECT_EQ(value(node, "theirs"), "");
}

// unlock() promises an eighth of node_timeout, beyond which a thread waits for another eighth.
TEST_F(SharedRoundsOfThreads, AreLeftSoonIfTheyAwaitNoAnswer) {
    rounds.emplace(memory.configs(), NodesOptions{.node_timeout = 2s}, network);
    auto& slow = release("slow");
    auto& unlock = release("mine", {.awaits_answers = false});
    network.during_wait([&] {
        begin(slow);
        begin(unlock);
        ASSERT_TRUE(wait_until([&] { return others.back()->over(); }, 20s));
        EXPECT_FALSE(others.front()->over()) << "it waits for node_timeout";
    });
    make(set("mine"));
}

TEST_F(SharedRoundsOfThreads, AreNotAwaitedIfTheirThreadDoesNotFollowTheLeadingThread) {
    auto& handed_over = release("theirs", {.awaits_answers = false});
    network.during_wait([&] { handed_over.ask(*rounds, Lane::Patience::none); });
    make(set("mine"));
    for (std::size_t node = 0; node < size; ++node) {
        EXPECT_TRUE(handed_over.tally[node].sent);
        EXPECT_EQ(handed_over.tally[node].cause, Errc::not_awaited);
        EXPECT_EQ(handed_over.tally[node].detail, "");
    }
}

// The thread that asks for the release returns before the leading thread sends it.
TEST_F(SharedRoundsOfThreads, OutliveTheArgumentsOfAThreadThatLeaves) {
    const std::string resource = "a resource with a name that is not short";
    make(set(resource));
    network.during_wait([&] {
        auto release = std::make_unique<Asked>(Verb::compare_and_delete, resource, "owner of " + resource);
        begin(*release);
        ASSERT_TRUE(wait_until([&] { return others.back()->over(); }, 20s));
        release.reset();
        const std::vector<std::string> reuses(100, std::string(resource.size(), 'x'));
    });
    make(set("mine"));
    memory.pass(5ms);
    for (std::size_t node = 0; node < size; ++node) EXPECT_EQ(value(node, resource), "");
}

// There is no memory for a connection to the second node.
TEST_F(SharedRoundsOfThreads, ThrowInTheirOwnThread) {
    rounds.emplace(memory.configs(), options, network);
    auto& mine = release("mine");
    mine.request.to = NodeSet{0b001};
    auto& theirs = asked.emplace_back(Verb::query, "theirs", "");
    theirs.request.to = NodeSet{0b010};
    network.during_wait([&] {
        begin(theirs);
        network.has_memory = false;
    });
    make(mine);
    ASSERT_TRUE(wait_until([&] { return others.front()->over(); }, 20s));
    EXPECT_TRUE(others.front()->out_of_memory());
    EXPECT_EQ(mine.tally[0].vote, Vote::refused);
    make(theirs);
    EXPECT_EQ(theirs.tally[1].vote, Vote::granted) << theirs.tally[1].detail;
}

TEST_F(SharedRoundsOfThreads, ThrowInTheLeadingThread) {
    for (std::size_t node = 0; node < size; ++node)
        memory.server(node).close_connections(memory.clock().now());
    memory.pass(5ms);
    network.has_memory = false;
    EXPECT_THROW(make(set("mine")), std::bad_alloc);
    auto& next = set("next");
    make(next);
    EXPECT_GE(next.tally.granted(), 2U);
}

// ---- Several lanes

/// With one processor, a round shares if another one is under way.
struct LanesOfOneProcessor : InMemory {
    Asked& ask(Verb verb, const std::string& resource, const std::string& owner, RoundLimits limits = {}) {
        auto& it = asked.emplace_back(verb, resource, owner, std::move(limits));
        it.ask(*group);
        return it;
    }
    Asked& set(const std::string& resource) {
        return ask(Verb::set_if_absent, resource, "owner of " + resource);
    }
    Asked& release(const std::string& resource) {
        return ask(Verb::compare_and_delete, resource, "owner of " + resource);
    }
    /// Lets a round of another thread begin and end while one of this thread waits.
    void share(const std::function<void()>& others_round) {
        network.during_wait([&] { const OtherThread other{others_round}; });
        set("busy");
        release("busy");
    }
    /// Makes rounds without company, until rounds have connections of their own again.
    void calm_down() {
        for (unsigned i = 0; i < detail::rounds_until_alone; ++i)
            ask(Verb::compare_and_expire, "nothing", "nobody");
    }
    void SetUp() override {
        set("first");
        release("first");
        memory.pass(5ms);
        share([this] {
            set("second");
            release("second");
        });
        calm_down();
        memory.pass(5ms);
        forget_logs();
    }

    std::optional<Lanes> group{std::in_place, for_one_process(memory.configs()), options, network, 1};
    std::deque<Asked> asked{};
};

TEST_F(LanesOfOneProcessor, SharesWhileTwoRoundsAreUnderWay) {
    set("alone");
    EXPECT_THAT(log(2), ElementsAre("1 SET"));
    share([this] { set("in company"); });
    EXPECT_THAT(log(2), Contains("2 SET"));
    forget_logs();
    set("afterwards");
    EXPECT_THAT(log(2), ElementsAre("2 SET"));
    calm_down();
    memory.pass(5ms);
    forget_logs();
    set("alone again");
    EXPECT_THAT(log(2), ElementsAre("1 SET"));
}

// B5. The SET is pending on a connection of a lane of its own.
TEST_F(LanesOfOneProcessor, SendsAReleaseBehindItsSetOnTheOwnLane) {
    memory.server(2).paused = true;
    set("mine");
    share([this] { set("theirs"); });
    release("mine");
    memory.resume(2);
    EXPECT_THAT(log(2), Contains("1 EVAL"));
    EXPECT_EQ(value(2, "mine"), "");
}

// The watchdog extends several locks in one round, and the SET of the second is pending on another lane.
TEST_F(LanesOfOneProcessor, SendsNoExtensionAheadOfItsSetOnTheOwnLane) {
    memory.server(2).paused = true;
    set("mine");
    share([this] { set("theirs"); });
    const Asked first{Verb::compare_and_expire, "theirs", "owner of theirs"};
    const Asked second{Verb::compare_and_expire, "mine", "owner of mine"};
    const std::array requests{first.request, second.request};
    std::array tallies{first.tally, second.tally};
    forget_logs();
    group->ask(requests, {}, tallies);
    EXPECT_EQ(log(0).size(), 2U);
    for (const auto& it : tallies) EXPECT_FALSE(it[2].sent);
}

/// What a thread that takes a turn of a watchdog does.
template <class Action>
void in_watchdog(Action action) {
    const detail::RenewalScope scope{{.renewals = &scope}};
    action();
}

TEST_F(LanesOfOneProcessor, RenewsLeasesWithoutSharing) {
    set("mine");
    forget_logs();
    share([&] { in_watchdog([&] { ask(Verb::compare_and_expire, "mine", "owner of mine"); }); });
    EXPECT_THAT(log(0), ElementsAre("1 SET", "3 PING", "3 EVAL", "2 EVALSHA"));
}

// B5. The SET of one lease is pending on the shared lane, whose leading thread gets no processor. The
// watchdog leaves out the node from which the reply is missing.
TEST_F(LanesOfOneProcessor, RenewsLeasesWithoutTheLeadingThreadOfASetOnTheSharedLane) {
    share([this] {
        memory.server(2).paused = true;
        set("theirs");
    });
    set("mine");
    const Asked first{Verb::compare_and_expire, "theirs", "owner of theirs"};
    const Asked second{Verb::compare_and_expire, "mine", "owner of mine"};
    for (const auto& requests : {std::vector{first.request, second.request}, std::vector{first.request}}) {
        std::vector<Tally> tallies(requests.size(), first.tally);
        network.during_wait([&] {
            const OtherThread watchdog{[&] { in_watchdog([&] { group->ask(requests, {}, tallies); }); }};
        });
        set("busy");
        release("busy");
        for (const auto& it : tallies) EXPECT_EQ(it.granted(), 2U);
        EXPECT_EQ(tallies[0][2].detail, detail::earlier_is_pending);
    }
}

// The description of a lease is left to the leading thread of the shared lane. Only its deletion must follow
// it.
TEST_F(LanesOfOneProcessor, RenewsALeaseWhoseDescriptionIsUnanswered) {
    share([this] { set("theirs"); });
    network.during_wait([&] {
        const OtherThread other{[&] {
            ask(Verb::describe_holder, "theirs", "owner of theirs", {.awaits_answers = false});
            in_watchdog([&] {
                const auto& extension = ask(Verb::compare_and_expire, "theirs", "owner of theirs");
                EXPECT_GE(extension.tally.granted(), 2U) << extension.tally[0].detail;
            });
        }};
    });
    set("busy");
}

// The thread of the watchdog does not wait for the leading thread, and the leading thread writes the
// description later.
TEST_F(LanesOfOneProcessor, DescribesRenewedLeasesWithoutWaiting) {
    set("mine");
    share([this] { set("in company"); });
    forget_logs();
    network.during_wait([&] {
        const OtherThread other{[&] {
            in_watchdog(
                [&] { ask(Verb::describe_holder, "mine", "owner of mine", {.awaits_answers = false}); });
        }};
    });
    set("busy");
    memory.pass(5ms);
    EXPECT_THAT(log(0), Contains(testing::StartsWith("1 EVAL")));
}

// The leading thread gets no processor. The first round that waits for it is lost, and the next one is not.
TEST_F(LanesOfOneProcessor, SharesNotWhileTheLeadingThreadIsLate) {
    share([this] { set("in company"); });
    network.during_wait([&] {
        {
            const OtherThread first{[&] { EXPECT_EQ(set("first").tally.granted(), 0U); }};
        }
        {
            const OtherThread second{[&] { EXPECT_GE(set("second").tally.granted(), 2U); }};
        }
    });
    set("leads");
}

// The background task of a lane leads it, and gets no processor. The first round that waits for it is lost,
// and the next one is not.
TEST_F(LanesOfOneProcessor, AvoidsALaneWhoseBackgroundTaskIsLate) {
    set("mine");
    memory.pass(1min);
    memory.server(2).forget_connections();
    ask(Verb::compare_and_delete, "mine", "owner of mine", {.awaits_answers = false});
    bool is_first = true;
    network.during_connect = [&] {
        if (!std::exchange(is_first, false)) return;
        const OtherThread other{[&] {
            EXPECT_EQ(set("first").tally.granted(), 0U) << "or this test shows nothing";
            EXPECT_GE(set("second").tally.granted(), 2U);
        }};
    };
    memory.pass(1min);
    EXPECT_FALSE(is_first);
}

// B5. The SET is pending on the shared lane, and rounds have lanes for themselves again.
TEST_F(LanesOfOneProcessor, SendsAReleaseBehindItsSetOnTheSharedLane) {
    share([this] {
        memory.server(2).paused = true;
        set("theirs");
    });
    calm_down();
    release("theirs");
    memory.resume(2);
    EXPECT_EQ(value(2, "theirs"), "");
    EXPECT_THAT(log(2), Not(Contains(testing::StartsWith("1 EVAL"))));
}

// The SET of a resource follows the release of its former owner, which is pending on the shared lane.
TEST_F(LanesOfOneProcessor, SendsASetBehindAReleaseOnTheSharedLane) {
    share([this] { set("theirs"); });
    memory.server(2).paused = true;  // for less than a node_timeout
    for (const auto node : {0U, 1U}) memory.server(node).latency = 100us;
    ask(Verb::compare_and_delete, "theirs", "owner of theirs", {.awaits_answers = false});
    calm_down();
    auto& next = ask(Verb::set_if_absent, "theirs", "another");
    memory.resume(2);
    EXPECT_EQ(value(2, "theirs"), "another");
    EXPECT_GE(next.tally.granted(), 2U);
}

// A waiter leaves the queue with its acquisition. Its command enter_queue is pending on the shared lane.
TEST_F(LanesOfOneProcessor, SendsAnAcquisitionBehindItsTicketOnTheSharedLane) {
    const QueueTerms terms{.ticket = "channel|1", .home = 2, .reservation_ttl = 100ms};
    const auto ask_for = [&](Verb verb, const std::string& owner, NodeSet to) -> Asked& {
        auto& it = asked.emplace_back(verb, "theirs", owner);
        it.request.command.queue = &terms;
        it.request.to = to;
        it.ask(*group);
        return it;
    };
    share([&] {
        memory.server(2).paused = true;
        ask_for(Verb::enter_queue, "channel|1", NodeSet{0b100});
    });
    calm_down();
    const auto& acquisition = ask_for(Verb::set_if_absent, "A", NodeSet{}.set());
    EXPECT_EQ(acquisition.tally[2].detail, detail::earlier_is_pending);
    memory.resume(2);
}

TEST_F(LanesOfOneProcessor, SharesNothingIfThatIsSwitchedOff) {
    group.emplace(memory.configs(), NodesOptions{.share_connections = false}, network, 1);
    share([this] { set("theirs"); });
    set("mine");
    for (const auto& it : log(2)) EXPECT_FALSE(it.starts_with("2 ")) << it;
}

const std::map<std::string, std::string> busy{{"", "-BUSY Redis is busy running a script.\r\n"}};

// A device on the way has forgotten the connections of both lanes, but only one of them owes a release.
TEST_F(LanesOfOneProcessor, SendAtTheirEndWhatAForgottenConnectionOwesOnANewOne) {
    set("mine");
    memory.pass(2s);
    memory.server(2).forget_connections();
    ask(Verb::compare_and_delete, "mine", "owner of mine", {.awaits_answers = false});
    ASSERT_EQ(value(2, "mine"), "owner of mine");
    group->close({});
    EXPECT_EQ(value(2, "mine"), "");
}

TEST_F(LanesOfOneProcessor, SendsAReleaseOfTheSharedLaneAgainOnTheOwnLane) {
    share([this] {
        set("theirs");
        memory.server(2).answers = busy;
        release("theirs");
    });
    calm_down();
    ASSERT_EQ(value(2, "theirs"), "owner of theirs");
    memory.server(2).answers.clear();
    memory.pass(2s);
    for (const auto* const it : {"a", "b"}) set(it);  // the first one probes the node
    memory.pass(50ms);
    EXPECT_EQ(value(2, "theirs"), "");
}

// The node cannot be reached for a moment. Each of many clients in one process finds that its connection is
// broken, and then tries all releases once more.
TEST_F(LanesOfOneProcessor, SendReleasesAgainThatOthersHaveTriedInVain) {
    const auto configs = for_one_process(memory.configs());
    std::deque<Lanes> clients;
    const auto name = [&] { return "r" + std::to_string(clients.size()); };
    auto& server = memory.server(2);
    for (int i = 0; i < 20; ++i) {
        clients.emplace_back(configs, options, network, 64);
        Asked set{Verb::set_if_absent, name(), "A"};
        set.ask(clients.back());
    }
    memory.pass(5ms);
    server.paused = true;
    for (std::size_t i = 0; i < clients.size(); ++i) {
        Asked release{Verb::compare_and_delete, "r" + std::to_string(i + 1), "A", {.awaits_answers = false}};
        release.ask(clients[i]);
    }
    server.paused = false;
    server.refuses = true;
    server.close_connections(memory.clock().now());
    memory.pass(5ms);
    const auto query = [&] {
        for (auto& it : clients) {
            Asked query{Verb::query, "another", "A"};
            query.ask(it);
            memory.pass(5ms);
        }
    };
    query();
    ASSERT_EQ(value(2, "r1"), "A");
    server.refuses = false;
    memory.pass(5s);
    for (int i = 0; i < 3; ++i) query();
    for (std::size_t i = 1; i <= clients.size(); ++i) EXPECT_EQ(value(2, "r" + std::to_string(i)), "") << i;
}

// If the connection were closed before, a server that cannot write its replies would not read the release.
TEST_F(LanesOfOneProcessor, WaitsInItsDestructorForTheReplyToARelease) {
    set("mine");
    memory.server(2).paused = true;
    ask(Verb::compare_and_delete, "mine", "owner of mine", {.awaits_answers = false});
    memory.clock().after(20ms, [this] { memory.server(2).resume(memory.clock().now()); });
    const auto start = memory.clock().now();
    group.reset();
    EXPECT_THAT(memory.clock().now() - start, IsBetween(20ms, 25ms));
}

// Both lanes have a release for a server that cannot be reached. The destructor waits for both together.
TEST_F(LanesOfOneProcessor, SendsTheReleasesOfBothLanesWithinOneNodeTimeout) {
    set("mine");
    share([this] { set("theirs"); });
    calm_down();
    memory.pass(5ms);
    memory.server(2).close_connections(memory.clock().now());
    memory.server(2).unreachable = true;
    memory.pass(15ms);
    ask(Verb::compare_and_delete, "mine", "owner of mine", {.awaits_answers = false});
    share([this] { ask(Verb::compare_and_delete, "theirs", "owner of theirs", {.awaits_answers = false}); });
    const auto start = memory.clock().now();
    group.reset();
    EXPECT_THAT(memory.clock().now() - start, IsBetween(40ms, 50ms));
}

}  // namespace
}  // namespace redlock::test::shared_threads_test
