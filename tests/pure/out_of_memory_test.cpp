// The effects on a lock if memory runs out at any allocation. This program replaces operator new by one that
// fails on demand.
#include "memory_loop.hpp"
#include "support/replaced_new.hpp"
#include "support/round_loop.hpp"
#include "virtual_loop.hpp"
#include "waiting_world.hpp"
#include "world.hpp"

#include <redlock/async_leader.hpp>
#include <redlock/async_lock.hpp>
#include <redlock/async_semaphore.hpp>
#include <redlock/query.hpp>
#include <redlock/semaphore.hpp>

#include "blocking_renewals.hpp"

#include <new>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr long never = -1;
long until_failure = never;  // how many allocations succeed before one fails
bool for_good = false;       // whether all later ones fail as well
long failures_at_once = 1;   // otherwise: how many fail, one after the other
bool failed = false;

bool fails() {
    if (until_failure < 0) return false;
    if (until_failure-- > 0) return false;
    failed = true;
    if (for_good || --failures_at_once > 0) until_failure = 0;
    return true;
}

}  // namespace

void redlock::support::before_allocation() {
    if (fails()) throw std::bad_alloc{};
}

namespace redlock::test {
namespace {

/// Runs `action` and lets the allocation after the next `count` fail. Returns whether there was one.
template <class Action>
bool fails_after(long count, Action action, bool and_then_all = false) {
    failed = false;
    for_good = and_then_all;
    until_failure = count;
    action();
    until_failure = never;
    failures_at_once = 1;
    return failed;
}

/// A client that allocates before and after a round. The servers in between have enough memory.
class Client : public World {
public:
    void ask(std::span<const Request> requests, const RoundLimits& limits,
             std::span<Tally> tallies) override {
        ::operator delete(::operator new(1));
        const auto left = std::exchange(until_failure, never);
        World::ask(requests, limits, tallies);
        until_failure = left;
        ::operator delete(::operator new(1));
    }
};

const auto no_memory = std::make_error_code(std::errc::not_enough_memory);

struct OutOfMemory : testing::TestWithParam<bool> {
    LockOptions options(detail::Renewer* watchdog) const {
        return {.ttl = 30s, .retry = {.attempts = 1}, .fencing = GetParam(), .watchdog = watchdog};
    }
};
INSTANTIATE_TEST_SUITE_P(WithFencing, OutOfMemory, testing::Bool());

TEST_P(OutOfMemory, AnAcquireFailsAndLeavesNoKeys) {
    long count = 0;
    for (bool went_on = true; went_on; ++count) {
        Client world;
        detail::BlockingRenewals queue{world.clock};
        auto lock = world.lock(options(&queue));
        Result result{Errc::not_held};
        went_on = fails_after(count, [&] { result = lock.acquire(); });
        if (!result) {
            EXPECT_EQ(result.error(), no_memory) << count;
            EXPECT_TRUE(world.clean()) << count;
            EXPECT_FALSE(lock.valid());
            EXPECT_TRUE(queue.idle());
            EXPECT_THAT(lock.acquire(), Succeeds());
        }
        EXPECT_TRUE(lock.valid());
    }
    EXPECT_GT(count, 3) << "nothing was asked for: this shows nothing";
}

// The first slot is held by another client, so the acquisition also needs the memory of a query.
TEST_P(OutOfMemory, ASemaphoreFailsAndLeavesNoKeys) {
    long count = 0;
    for (bool went_on = true; went_on; ++count) {
        Client world;
        detail::BlockingRenewals queue{world.clock};
        for (std::size_t node = 0; node < world.size(); ++node)
            world.command(node, {"SET", "{jobs}:slot:0", "x", "PX", "1000"});
        Semaphore semaphore{world, "jobs", 2, options(&queue), world.clock, world.entropy};
        Result result{Errc::not_held};
        went_on = fails_after(count, [&] { result = semaphore.acquire(); });
        if (!result) {
            EXPECT_EQ(result.error(), no_memory) << count;
            world.pass(2s);  // the key of the other client expires
            for (const auto* const slot : {"{jobs}:slot:0", "{jobs}:slot:1"})
                EXPECT_EQ(world.held_by({}, slot), world.size()) << count;
            EXPECT_FALSE(semaphore.valid());
            EXPECT_TRUE(queue.idle());
            EXPECT_THAT(semaphore.acquire(), Succeeds());
        }
        EXPECT_TRUE(semaphore.valid());
    }
    EXPECT_GT(count, 5) << "nothing was asked for: this shows nothing";
}

TEST_P(OutOfMemory, AnExtensionOrAReleaseFailsAndCanBeRepeated) {
    for (long count = 0;; ++count) {
        Client world;
        detail::BlockingRenewals queue{world.clock};
        auto lock = world.lock(options(&queue));
        EXPECT_THAT(lock.acquire(), Succeeds());
        Result extended{Errc::not_held};
        const bool first = fails_after(count, [&] { extended = lock.extend(); });
        if (!extended) {
            EXPECT_EQ(extended.error(), no_memory);
        }
        EXPECT_TRUE(lock.valid());
        Result released{Errc::not_held};
        const bool second = fails_after(count, [&] { released = lock.release(); });
        if (!released) {
            EXPECT_EQ(released.error(), no_memory);
            EXPECT_THAT(lock.release(), Succeeds());
        }
        EXPECT_TRUE(world.clean());
        if (!first && !second) break;
    }
}

/// An event loop, and a lock or a semaphore in it. Nodes, loop and completions have enough memory.
template <class AsyncType>
struct LoopWithoutMemory {
    explicit LoopWithoutMemory(bool fencing)
        : lock{make(
              {.ttl = 30s, .retry = {.attempts = 1}, .fencing = fencing, .watchdog = loop_watchdog()})} {}

    AsyncType make(LockOptions options) {
        if constexpr (std::is_same_v<AsyncType, AsyncLock>)
            return {of_loop, the_resource, std::move(options)};
        else
            return {of_loop, the_resource, 3, std::move(options)};
    }
    void run() {
        const auto until = world.clock.now() + 5s;
        while (loop.run_once(until)) {
        }
    }
    /// Begins the operation, and runs it to its end. The allocation after the next `count` fails, if there is
    /// one.
    template <class Begin>
    Result run(Begin begin, long count = never) {
        std::optional<Result> result;
        Completion done{[&](Result it) { result = std::move(it); }};
        allocation_failed = fails_after(count, [&] {
            try {
                begin(std::move(done));
            } catch (const std::bad_alloc&) {
                result = Result{no_memory};
            }
            run();
        });
        run();
        return result.value_or(Result{std::make_error_code(std::errc::timed_out)});
    }
    Result acquire(long count = never) {
        return run([&](Completion done) { lock.acquire(std::move(done)); }, count);
    }
    Result extend(long count = never) {
        return run([&](Completion done) { lock.extend(std::move(done)); }, count);
    }
    Result release(long count = never) {
        return run([&](Completion done) { lock.release(std::move(done)); }, count);
    }

    Client world;
    VirtualLoop loop{world.clock};
    AsyncNodes of_loop{world, loop, world.clock, world.entropy};
    AsyncType lock;
    bool allocation_failed = false;
};

template <class AsyncType>
void an_acquire_fails_and_leaves_no_keys(bool fencing) {
    for (long count = 0;; ++count) {
        LoopWithoutMemory<AsyncType> it{fencing};
        const auto result = it.acquire(count);
        const bool failed_once = it.allocation_failed;
        if (!result) {
            EXPECT_EQ(result.error(), no_memory) << count;
            EXPECT_FALSE(it.lock.valid()) << count;
            EXPECT_TRUE(it.world.clean()) << count;
            EXPECT_THAT(it.acquire(), Succeeds()) << count;
        }
        EXPECT_TRUE(it.lock.valid()) << count;
        if (!failed_once) break;
    }
}

TEST_P(OutOfMemory, AnAcquireInALoopFailsAndLeavesNoKeys) {
    an_acquire_fails_and_leaves_no_keys<AsyncLock>(GetParam());
}

TEST_P(OutOfMemory, ASemaphoreOfALoopFailsAndLeavesNoKeys) {
    an_acquire_fails_and_leaves_no_keys<AsyncSemaphore>(GetParam());
}

// There may be no memory to begin the extensions of a lock that was acquired.
TEST_P(OutOfMemory, AnAcquireInALoopFailsAndKeepsTheMinimumHoldIfTheLockWasAcquired) {
    int kept = 0;
    for (long count = 0;; ++count) {
        LoopWithoutMemory<AsyncLock> it{GetParam()};
        auto with_min_hold = options(loop_watchdog());
        with_min_hold.min_hold = 20s;
        it.lock = it.make(with_min_hold);
        const auto result = it.acquire(count);
        if (!it.allocation_failed) break;
        if (result) continue;
        EXPECT_EQ(result.error(), no_memory) << count;
        const bool keeps = it.world.held_by("redlock:min-hold") == it.world.size();
        kept += keeps ? 1 : 0;
        EXPECT_TRUE(keeps || it.world.clean()) << count;
    }
    EXPECT_GT(kept, 0);
}

TEST_P(OutOfMemory, AnExtensionOrAReleaseInALoopFailsAndCanBeRepeated) {
    for (long count = 0;; ++count) {
        LoopWithoutMemory<AsyncLock> it{GetParam()};
        EXPECT_THAT(it.acquire(), Succeeds());
        if (const auto result = it.extend(count); !result) {
            EXPECT_EQ(result.error(), no_memory) << count;
        }
        const bool first = it.allocation_failed;
        EXPECT_TRUE(it.lock.valid()) << count;
        const auto result = it.release(count);
        const bool second = it.allocation_failed;
        if (!result) {
            EXPECT_EQ(result.error(), no_memory) << count;
            EXPECT_THAT(it.release(), Succeeds()) << count;
        }
        EXPECT_TRUE(it.world.clean()) << count;
        if (!first && !second) break;
    }
}

TEST_P(OutOfMemory, ALockOfALoopIsReleasedAfterItsDestruction) {
    for (long count = 0;; ++count) {
        LoopWithoutMemory<AsyncLock> it{GetParam()};
        EXPECT_THAT(it.acquire(), Succeeds());
        (void)it.release(count);
        const bool first = it.allocation_failed;
        const bool second = fails_after(count, [&] { AsyncLock{std::move(it.lock)}; });
        it.run();
        EXPECT_TRUE(it.world.clean()) << count;
        if (!first && !second) break;
    }
}

// Its release waits for memory until the validity has ended.
TEST_P(OutOfMemory, ADestroyedLockOfALoopReportsNoLoss) {
    Client world;
    VirtualLoop loop{world.clock};
    AsyncNodes of_loop{world, loop, world.clock, world.entropy};
    const auto run_for = [&](Clock::duration span) {
        const auto end = world.clock.now() + span;
        while (loop.run_once(end)) {
        }
    };
    int losses = 0;
    auto with_callback = options(loop_watchdog());
    with_callback.on_lost = [&](const Result&) { ++losses; };
    std::optional<AsyncLock> lock{std::in_place, of_loop, the_resource, with_callback};
    lock->acquire([](const Result& it) { EXPECT_THAT(it, Succeeds()); });
    run_for(1s);
    ASSERT_TRUE(lock->valid());
    (void)fails_after(
        0,
        [&] {
            lock.reset();
            run_for(1min);
        },
        true);
    EXPECT_EQ(losses, 0);
}

/// Runs a leader in a loop. The allocation after the next `count` fails, and all later ones if `for_good`,
/// until a term has ended. Then the leader must lead, and leave no key. Returns false if no allocation has
/// failed.
bool leads_after_a_failure(long count, bool for_good_then) {
    Client world;
    VirtualLoop loop{world.clock};
    AsyncNodes of_loop{world, loop, world.clock, world.entropy};
    const auto pass = [&](Clock::duration span) {
        const auto end = world.clock.now() + span;
        while (loop.run_once(end)) {
        }
        world.clock.advance_to(end);
    };
    int ends = 0;
    int begins = 0;
    std::optional<AsyncTerm> term;
    AsyncLeader leader{of_loop,
                       the_resource,
                       {.ttl = 30s,
                        .retry = {.attempts = 1, .delay = 100ms},
                        .on_error = [](const std::exception_ptr&) {},
                        .on_failure = [](const Result& it) { EXPECT_EQ(it.error(), no_memory); }}};
    const auto run = [&] {
        try {
            leader.run([&](AsyncTerm it) { term.emplace(std::move(it)); },
                       [&](const std::exception_ptr& it) { ends += it ? 100 : 1; });
            ++begins;
        } catch (const std::bad_alloc&) {
        }
    };
    const bool failed_once = fails_after(
        count,
        [&] {
            run();
            pass(1s);
            term.reset();
            pass(1s);
        },
        for_good_then);
    if (begins == 0) run();
    pass(30s);
    EXPECT_TRUE(term) << count;
    EXPECT_FALSE(term && term->lost().stop_requested()) << count;
    leader.cancel();
    term.reset();
    pass(1s);
    EXPECT_EQ(begins, 1) << count;
    EXPECT_EQ(ends, 1) << count;
    EXPECT_TRUE(world.clean()) << count;
    return failed_once;
}

TEST(LeaderOutOfMemory, LeadsInALoopWhenThereIsMemoryAgain) {
    for (const bool for_good_then : {false, true}) {
        long count = 0;
        while (leads_after_a_failure(count, for_good_then)) ++count;
        EXPECT_GT(count, 20);
    }
}

/// A client with the real nodes, rounds and connections. Its servers in memory have enough memory.
/// The parameters are the fencing, the order of a round, and the number of processors. Without processors,
/// the rounds of threads share connections.
class OutOfMemoryInARound : public testing::TestWithParam<std::tuple<bool, Round, std::size_t>> {
protected:
    OutOfMemoryInARound() {
        OutsideTheClient::entered_or_left = [] { std::swap(until_failure, left_of_the_client); };
    }
    ~OutOfMemoryInARound() override { OutsideTheClient::entered_or_left = nullptr; }

    struct Setting {
        WaitingWorld world{3,
                           {.node_timeout = 50ms, .round = std::get<Round>(GetParam())},
                           std::get<std::size_t>(GetParam())};
        MemoryNodes& nodes = world.client();
        Lock lock = new_lock();

        /// One node has failed and is in back-off. The connections to the others do not exist yet.
        Setting() {
            world.network.server(2).refuses = true;
            (void)nodes.ask({.command = {.verb = Verb::query, .resources = lock.resources()}, .to = 4});
        }
        Lock new_lock(detail::Renewer* watchdog = nullptr) {
            return {nodes,
                    "r",
                    {.ttl = 30s,
                     .retry = {.attempts = 1},
                     .fencing = std::get<bool>(GetParam()),
                     .watchdog = watchdog},
                    world.network.clock(),
                    world.entropy};
        }
        bool clean() { return world.holder(0) == "(nil)" && world.holder(1) == "(nil)"; }
    };

    static inline long left_of_the_client = never;
};
INSTANTIATE_TEST_SUITE_P(WithFencing, OutOfMemoryInARound,
                         testing::Combine(testing::Bool(),
                                          testing::Values(Round::sequential, Round::all_at_once),
                                          testing::Values(many_processors, std::size_t{0})));

TEST_P(OutOfMemoryInARound, AnAcquireFailsAndLeavesNoKeys) {
    long count = 0;
    for (bool went_on = true; went_on; ++count) {
        Setting it;
        Result result{Errc::not_held};
        went_on = fails_after(count, [&] { result = it.lock.acquire(); });
        if (!result) {
            // Other rounds can break a shared connection. Therefore its failure counts as that of the node.
            if (std::get<std::size_t>(GetParam()) > 0) {
                EXPECT_EQ(result.error(), no_memory) << count;
            }
            EXPECT_TRUE(it.clean()) << count;
            EXPECT_FALSE(it.lock.valid());
            EXPECT_THAT(it.lock.acquire(), Succeeds()) << count;
        }
        EXPECT_TRUE(it.lock.valid()) << count;
    }
    EXPECT_GT(count, 20) << "nothing was asked for: this shows nothing";
}

TEST_P(OutOfMemoryInARound, AnExtensionOrAReleaseFailsAndCanBeRepeated) {
    for (long count = 0;; ++count) {
        Setting it;
        EXPECT_THAT(it.lock.acquire(), Succeeds());
        Result extended{Errc::not_held};
        const bool first = fails_after(count, [&] { extended = it.lock.extend(); });
        EXPECT_TRUE(it.lock.valid()) << count << ": " << extended.message();
        Result released{Errc::not_held};
        const bool second = fails_after(count, [&] { released = it.lock.release(); });
        if (!released) {
            EXPECT_THAT(it.lock.release(), Succeeds()) << count;
        }
        EXPECT_TRUE(it.clean()) << count;
        if (!first && !second) break;
    }
}

// The connections take longer than unlock() waits, so a background task makes them. Only if rounds share
// connections, the release can need later rounds.
TEST_P(OutOfMemoryInARound, AnUnsentReleaseIsSentByTheBackgroundTask) {
    const int later_rounds = std::get<std::size_t>(GetParam()) == 0 ? 3 : 0;
    long count = 0;
    for (bool went_on = true; went_on; ++count) {
        Setting it;
        auto& network = it.world.network;
        EXPECT_THAT(it.lock.acquire(), Succeeds());
        network.pass(2ms);
        for (const auto node : {0U, 1U}) {
            network.server(node).close_connections(network.clock().now());
            network.server(node).unreachable = true;
        }
        network.pass(20ms);
        it.lock.unlock();
        EXPECT_FALSE(it.clean()) << "or this shows nothing";
        for (const auto node : {0U, 1U}) network.server(node).unreachable = false;
        went_on = fails_after(count, [&] { network.pass(50ms); });
        for (int i = 0; i < later_rounds; ++i) {
            network.pass(2s);
            (void)query(it.nodes, "another");
        }
        network.pass(later_rounds * 1ms);
        EXPECT_TRUE(it.clean()) << count;
    }
    EXPECT_GT(count, 1) << "nothing was asked for: this shows nothing";
}

// Without memory, there is no report on a node that is left alone. Another node, which was not awaited, still
// keeps the connection on which its SET is pending. (A sequential round awaits all trusted nodes.)
TEST_P(OutOfMemoryInARound, ALostReportCostsNoOtherNodeItsConnection) {
    const std::vector<std::string> resources{"r"};
    long count = 0;
    int successes = 0;
    for (bool went_on = true; went_on; ++count) {
        WaitingWorld world{
            5, {.node_timeout = 50ms, .round = Round::all_at_once}, std::get<std::size_t>(GetParam())};
        auto& nodes = world.client();
        const auto ask = [&](Verb verb) {
            return nodes.ask(
                {.command = {.verb = verb, .resources = resources, .owner = "A", .ttl = 30s}, .to = 31});
        };
        auto& left_alone = world.network.server(0);
        auto& frozen = world.network.server(4);
        left_alone.refuses = true;
        (void)ask(Verb::query);
        frozen.paused = true;
        const auto connections = frozen.connections();
        std::size_t granted = 0;
        went_on = fails_after(
            count,
            [&] {
                try {
                    granted = ask(Verb::set_if_absent).granted();
                } catch (const std::bad_alloc&) {
                    granted = 0;
                }
            },
            true);
        if (granted < 3) continue;
        ++successes;
        (void)ask(Verb::compare_and_delete);
        EXPECT_EQ(frozen.connections(), connections) << count;
    }
    EXPECT_GT(successes, 1) << "no report was lost: this shows nothing";
}

// From some allocation on all fail, also those in destructors and in noexcept functions.
TEST_P(OutOfMemoryInARound, TheProcessDoesNotEnd) {
    const auto use = [](Lock& lock) {
        (void)lock.acquire();
        (void)lock.extend();
        (void)lock.release();
        (void)lock.acquire();
        lock.unlock();
        (void)lock.acquire();
        Lock{std::move(lock)};
    };
    long count = 0;
    for (bool went_on = true; went_on; ++count) {
        Setting it;
        went_on = fails_after(
            count, [&] { use(it.lock); }, true);
        it.world.network.pass(31s);
        auto lock = it.new_lock();
        EXPECT_THAT(lock.acquire(), Succeeds()) << count;
    }
    EXPECT_GT(count, 20) << "nothing was asked for: this shows nothing";
}

// C6. Memory runs out in one turn, or in all turns of some seconds. A later turn extends the lock.
TEST_P(OutOfMemoryInARound, AWatchdogExtendsInALaterTurn) {
    for (const bool for_all_turns : {false, true}) {
        long count = 0;
        for (bool went_on = true; went_on; ++count) {
            Setting it;
            auto& clock = it.world.network.clock();
            detail::BlockingRenewals queue{clock};
            const auto turns_until = [&](Clock::time_point end) {
                for (auto next = queue.turn(); next < end; next = queue.turn())
                    it.world.network.pass(next - clock.now());
                it.world.network.pass(end - clock.now());
            };
            auto lock = it.new_lock(&queue);
            EXPECT_THAT(lock.acquire(), Succeeds());
            const auto start = clock.now();
            went_on = fails_after(
                count, [&] { turns_until(start + 20s); }, for_all_turns);
            turns_until(start + 60s);
            EXPECT_TRUE(lock.valid()) << count;
            EXPECT_FALSE(lock.lost().stop_requested()) << count;
            EXPECT_THAT(lock.release(), Succeeds()) << count;
        }
        EXPECT_GT(count, 5) << "nothing was asked for: this shows nothing";
    }
}

// Rounds that share connections.
TEST_P(OutOfMemoryInARound, ASharedConnectionThatCannotBeBegunLeavesNothingBehind) {
    const auto names = std::make_shared<const std::vector<std::string>>(std::vector<std::string>(3, "n"));
    const std::vector<std::string> resources{"r"};
    const Request request{
        .command = {.verb = Verb::set_if_absent, .resources = resources, .owner = "A", .ttl = 10s}};
    long count = 0;
    for (bool went_on = true; went_on; ++count) {
        MemoryNetwork network{3};
        NodeGroup group{network.configs(), {}, network, NodeGroup::Connections::shared};
        support::RoundLoop loop{group, network.clock()};
        const auto turn = [&] {
            loop.turn([&](auto entries, auto until) { network.wait(entries, network.clock().now(), until); },
                      network.clock().now() + 1s);
        };
        support::SharedRound first{group, names, request};
        support::SharedRound second{group, names, request};
        went_on = fails_after(count, [&] {
            try {
                loop.begin(first);
                while (!first.over()) turn();
            } catch (const std::bad_alloc&) {
                loop.forget(first);
            }
        });
        loop.begin(second);
        while (!second.over()) turn();
        EXPECT_GE(second.tally().granted() + second.tally().refused(), 2U) << count;
    }
}

// A connection whose late replies were read becomes idle again, or is closed.
TEST_P(OutOfMemoryInARound, ANodeKeepsItsConnections) {
    for (const bool closed : {false, true}) {
        long count = 0;
        for (bool went_on = true; went_on; ++count) {
            Setting it;
            auto& server = it.world.network.server(0);
            EXPECT_THAT(it.lock.acquire(), Succeeds());
            EXPECT_THAT(it.lock.release(), Succeeds());
            server.paused = true;
            EXPECT_THAT(it.lock.acquire(), FailsWith(Errc::no_quorum));
            if (closed) server.close_connections(it.world.now());
            it.world.network.resume(0);
            Result result{Errc::not_held};
            went_on = fails_after(count, [&] { result = it.lock.acquire(); });
            it.world.network.pass(2s);
            if (!result) {
                EXPECT_THAT(it.lock.acquire(), Succeeds()) << count;
            }
            EXPECT_TRUE(it.lock.valid()) << count;
        }
        EXPECT_GT(count, 5) << "nothing was asked for: this shows nothing";
    }
}

/// An event loop with the real nodes, rounds and connections. The parameter is the number of allocations that
/// fail, one after the other.
class OutOfMemoryInTheLoop : public testing::TestWithParam<long> {
protected:
    OutOfMemoryInTheLoop() {
        OutsideTheClient::entered_or_left = [] { std::swap(until_failure, left_of_the_client); };
    }
    ~OutOfMemoryInTheLoop() override { OutsideTheClient::entered_or_left = nullptr; }

    struct Setting : WaitingWorld {
        /// Runs the loop until it has nothing left to do, although its functions throw std::bad_alloc.
        void run_for(Clock::duration span) {
            const auto end = now() + span;
            while (now() < end) try {
                    loop.run_once(end);
                } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the loop goes on
                }
        }
        /// Disconnects the client from all servers.
        void close_connections() {
            for (std::size_t node = 0; node < size; ++node) network.server(node).close_connections(now());
        }
        bool clean() {
            for (std::size_t node = 0; node < size; ++node)
                if (holder(node) != "(nil)") return false;
            return true;
        }

        MemoryLoopNodes nodes{network, size, {.node_timeout = 1min}};
        MemoryLoop loop{network};
        AsyncNodes of_loop{nodes, loop, network.clock(), entropy};
        std::optional<AsyncLock> lock{};
    };

    static inline long left_of_the_client = never;
};
INSTANTIATE_TEST_SUITE_P(Failures, OutOfMemoryInTheLoop, testing::Values(1, 8, 30));

// The node_timeout is so long that the operation ends in time only if each failure is noticed at once.
TEST_P(OutOfMemoryInTheLoop, AnAcquisitionThrowsOrCallsItsCompletionOnceAndLeavesNoKey) {
    long count = 0;
    int successes = 0;
    int failures = 0;
    for (bool went_on = true; went_on; ++count) {
        Setting it;
        it.lock.emplace(it.of_loop, "r",
                        LockOptions{.ttl = 10min, .retry = {.attempts = 1}, .watchdog = loop_watchdog()});
        std::vector<Result> results;
        it.lock->acquire([&](Result result) { results.push_back(std::move(result)); });
        it.run_for(10ms);
        it.lock->release([&](Result result) { results.push_back(std::move(result)); });
        it.run_for(10ms);
        it.close_connections();
        it.network.pass(5ms);  // so that the acquisition begins new connections
        ASSERT_EQ(results.size(), 2U);
        results.clear();
        failures_at_once = GetParam();
        went_on = fails_after(count, [&] {
            try {
                it.lock->acquire([&](Result result) { results.push_back(std::move(result)); });
            } catch (const std::bad_alloc&) {
                results.emplace_back(no_memory);
            }
            it.run_for(5s);
        });
        ASSERT_EQ(results.size(), 1U) << "failure of allocation " << count;
        ++(results.front() ? successes : failures);
        if (!results.front()) {
            ASSERT_TRUE(it.clean()) << "failure of allocation " << count;
        }
        it.lock.reset();
        it.run_for(5s);
        ASSERT_TRUE(it.clean()) << "failure of allocation " << count;
        ASSERT_EQ(results.size(), 1U);
    }
    EXPECT_GT(failures, 20) << "nothing was asked for: this shows nothing";
    EXPECT_GT(successes, 0);
}

class OutOfMemoryInTheListeners : public OutOfMemoryInTheLoop {};
INSTANTIATE_TEST_SUITE_P(OneFailure, OutOfMemoryInTheListeners, testing::Values(1));

// The waiters of a loop share a listener. After the failure, the loop must neither call a waiter that was
// destroyed nor keep a listener that no waiter uses.
TEST_P(OutOfMemoryInTheListeners, AWaiterThatFailsDisturbsNoOtherWaiter) {
    for (const bool other_waits : {false, true}) {
        long count = 0;
        int failures = 0;
        int late = 0;
        for (bool went_on = true; went_on; ++count) {
            WaitingWorld world;
            MemoryLoopNodes nodes{world.network, world.size, {.node_timeout = 50ms}};
            MemoryLoop loop{world.network};
            AsyncNodes of_loop{nodes, loop, world.network.clock(), world.entropy};
            const auto run_for = [&](Clock::duration span) {
                const auto end = world.now() + span;
                while (loop.run_once(end)) {
                }
            };
            std::optional<Result> of_waiter;
            std::optional<Result> of_other;
            const LockOptions options{.ttl = 1min, .retry = {.delay = 100ms}, .fair = true};
            AsyncLock waiter{of_loop, "r", options};
            AsyncLock other{of_loop, "r", options};
            const auto let_other_wait = [&] {
                if (of_other && of_other->error() != no_memory) return;
                of_other.reset();
                other.acquire_for(1min, [&](Result it) { of_other = std::move(it); });
            };
            auto holder = world.lock(world.client(), {}, {.ttl = 1min});
            ASSERT_THAT(holder.acquire(), Succeeds());
            if (other_waits) let_other_wait();
            run_for(20ms);
            went_on = fails_after(count, [&] {
                try {
                    waiter.acquire_for(30ms, [&](Result it) { of_waiter = std::move(it); });
                } catch (const std::bad_alloc&) {
                    of_waiter = Result{no_memory};
                }
                run_for(150ms);
            });
            ASSERT_TRUE(of_waiter) << count;
            ASSERT_EQ(loop.watches_anything(), other_waits && !of_other) << count;
            failures += of_waiter->error() == no_memory ? 1 : 0;
            if (!other_waits || of_other) let_other_wait();
            run_for(50ms);
            ASSERT_FALSE(of_other) << count << ": " << of_other->message();
            (void)holder.release();
            run_for(20ms);
            late += of_other ? 0 : 1;
            run_for(500ms);
            ASSERT_TRUE(of_other) << count;
            ASSERT_THAT(*of_other, Succeeds()) << count;
            other.release([](const Result& it) { EXPECT_THAT(it, Succeeds()); });
            run_for(500ms);
            ASSERT_FALSE(loop.watches_anything()) << count;
        }
        EXPECT_GT(failures, 20) << "nothing was asked for: this shows nothing";
        EXPECT_LT(late, 10) << "a ticket may stay in the queue, and then delays the next waiter";
    }
}

// Two messages arrive together: one with the ticket of a waiter that has left, and one for another waiter.
TEST_P(OutOfMemoryInTheListeners, AMessageThatCannotBeGivenBackHidesNoOtherMessage) {
    long count = 0;
    int woken = 0;
    for (bool went_on = true; went_on; ++count) {
        WaitingWorld world;
        MemoryLoopNodes nodes{world.network, world.size, {.node_timeout = 50ms}};
        MemoryLoop loop{world.network};
        AsyncNodes of_loop{nodes, loop, world.network.clock(), world.entropy};
        const auto run_for = [&](Clock::duration span) {
            const auto end = world.now() + span;
            while (loop.run_once(end)) {
            }
        };
        const LockOptions options{.ttl = 1min, .retry = {.delay = 100ms}, .fair = true};
        std::optional<AsyncLock> gone{std::in_place, of_loop, "r", options};
        AsyncLock waiter{of_loop, "r", options};
        std::optional<Result> of_waiter;
        auto holder = world.lock(world.client(), {}, {.ttl = 1min});
        ASSERT_THAT(holder.acquire(), Succeeds());
        gone->acquire_for(1min, [](const Result&) {});
        run_for(20ms);
        waiter.acquire_for(1min, [&](Result it) { of_waiter = std::move(it); });
        run_for(20ms);
        const auto tickets = world.queued(0);
        ASSERT_EQ(tickets.size(), 2U);
        gone.reset();
        run_for(20ms);
        world.forget_log();
        const auto channel = tickets.front().substr(0, tickets.front().find('|'));
        for (const auto& ticket : tickets) EXPECT_EQ(world.ask(0, {"PUBLISH", channel, ticket}), "1");
        went_on = fails_after(count, [&] { run_for(30ms); });
        // Without memory, the connection may break, too. The waiter then goes to another node.
        if (of_waiter || !world.all(1, "SUBSCRIBE").empty()) continue;
        ++woken;
        EXPECT_FALSE(world.all(0, "leave and set").empty()) << count;
    }
    EXPECT_GT(woken, 5) << "nothing was asked for: this shows nothing";
}

// The connection of a release that nobody awaits breaks. Only completions may throw exceptions into the loop
// of the program.
TEST_P(OutOfMemoryInARound, AReleaseIsSentAgainInALoopWhenThereIsMemoryAgain) {
    for (const bool for_good_then : {false, true}) {
        long count = 0;
        for (bool went_on = true; went_on; ++count) {
            WaitingWorld world;
            MemoryLoopNodes nodes{world.network, world.size, {.node_timeout = 50ms}};
            MemoryLoop loop{world.network};
            AsyncNodes of_loop{nodes, loop, world.network.clock(), world.entropy};
            const auto run_for = [&](Clock::duration span) {
                const auto end = world.now() + span;
                while (world.now() < end && (loop.run_once(end) || world.now() < end)) {
                }
            };
            std::optional<AsyncLock> lock{std::in_place, of_loop, "r", LockOptions{.ttl = 10min}};
            lock->acquire([](const Result& it) { EXPECT_THAT(it, Succeeds()); });
            run_for(10ms);
            auto& server = world.network.server(1);
            server.paused = true;
            lock.reset();
            run_for(10ms);
            server.close_connections(world.now());
            server.resume(world.now());
            bool thrown = false;
            went_on = fails_after(
                count,
                [&] {
                    try {
                        run_for(5ms);
                    } catch (const std::bad_alloc&) {
                        thrown = true;
                    }
                },
                for_good_then);
            EXPECT_FALSE(thrown) << count;
            run_for(30ms);
            EXPECT_EQ(world.holder(1), "(nil)") << count;
        }
        EXPECT_GT(count, 3) << "nothing was asked for: this shows nothing";
    }
}

// The connection of the node that did not reply breaks after the round.
TEST_P(OutOfMemoryInARound, AReleaseThatAllOtherNodesHaveExecutedIsSentAgain) {
    long count = 0;
    int executed = 0;
    for (bool went_on = true; went_on; ++count) {
        WaitingWorld world{
            3, {.node_timeout = 50ms, .round = Round::all_at_once}, std::get<std::size_t>(GetParam())};
        auto& nodes = world.client();
        Lock lock{nodes, "r", {.ttl = 10min, .retry = {.attempts = 1}}, world.network.clock(), world.entropy};
        ASSERT_THAT(lock.acquire(), Succeeds());
        world.network.pass(2ms);
        auto& server = world.network.server(1);
        server.paused = true;
        Result released{Errc::not_held};
        went_on = fails_after(count, [&] { released = lock.release(); });
        if (world.holder(0) != "(nil)" || world.holder(2) != "(nil)") continue;
        ++executed;
        server.close_connections(world.now());
        server.resume(world.now());
        for (int i = 0; i < 2; ++i) {
            world.network.pass(2s);
            (void)query(nodes, "another");
        }
        world.network.pass(50ms);
        EXPECT_EQ(world.holder(1), "(nil)") << count;
    }
    EXPECT_GT(executed, 0) << "no release was executed: this shows nothing";
}

// The server refuses the form of the release after the round.
TEST_P(OutOfMemoryInARound, AReleaseWithoutAQueueIsSentAgain) {
    long count = 0;
    for (bool went_on = true; went_on; ++count) {
        WaitingWorld world{
            3, {.node_timeout = 50ms, .round = Round::all_at_once}, std::get<std::size_t>(GetParam())};
        auto& nodes = world.client();
        Lock lock{nodes,
                  "r",
                  {.ttl = 10min, .retry = {.attempts = 1}, .fair = true},
                  world.network.clock(),
                  world.entropy};
        ASSERT_THAT(lock.acquire(), Succeeds());
        world.network.pass(2ms);
        auto& server = world.network.server(1);
        server.paused = true;
        ASSERT_THAT(lock.release(), Succeeds());
        server.refuses_command = [](const auto& words) {
            return words.size() > 2 && words[2] == "2" ? "-NOPERM no permission for the key\r\n" : "";
        };
        world.network.resume(1);
        went_on = fails_after(count, [&] {
            try {
                (void)query(nodes, "another");
            } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the next query takes its place
            }
        });
        for (int i = 0; i < 2; ++i) {
            world.network.pass(2s);
            (void)query(nodes, "another");
        }
        world.network.pass(50ms);
        EXPECT_EQ(world.holder(1), "(nil)") << count;
    }
    EXPECT_GT(count, 3) << "nothing was asked for: this shows nothing";
}

// The connection breaks in the round of the release, which sends the release again itself.
TEST_P(OutOfMemoryInARound, AReleaseWhoseConnectionBreaksIsSentAgain) {
    long count = 0;
    int broken = 0;
    for (bool went_on = true; went_on; ++count) {
        bool breaks = false;
        WaitingWorld world{
            3, {.node_timeout = 50ms, .round = Round::all_at_once}, std::get<std::size_t>(GetParam())};
        auto& nodes = world.client();
        Lock lock{nodes, "r", {.ttl = 10min, .retry = {.attempts = 1}}, world.network.clock(), world.entropy};
        ASSERT_THAT(lock.acquire(), Succeeds());
        world.network.pass(2ms);
        world.network.server(1).refuses_command = [&](const auto& words) {
            return words[0] == "EVAL" && !std::exchange(breaks, true) ? "garbage\r\n" : "";
        };
        went_on = fails_after(count, [&] { (void)lock.release(); });
        if (!breaks) continue;
        ++broken;
        for (int i = 0; i < 2; ++i) {
            world.network.pass(2s);
            (void)query(nodes, "another");
        }
        world.network.pass(50ms);
        EXPECT_EQ(world.holder(1), "(nil)") << count;
    }
    EXPECT_GT(broken, 1) << "the release did not need memory again: this shows nothing";
}

class OutOfMemoryInTheQueue : public OutOfMemoryInARound {};
INSTANTIATE_TEST_SUITE_P(WithoutFencing, OutOfMemoryInTheQueue,
                         testing::Values(std::tuple{false, Round::all_at_once, many_processors},
                                         std::tuple{false, Round::all_at_once, std::size_t{0}}));

TEST_P(OutOfMemoryInTheQueue, AWaiterLeavesTheQueueAndNoKeys) {
    long count = 0;
    for (bool went_on = true; went_on; ++count) {
        WaitingWorld world;
        auto holder = world.lock(world.client());
        auto waiter = world.lock(world.client());
        EXPECT_THAT(holder.acquire(), Succeeds());
        went_on = fails_after(count, [&] { EXPECT_FALSE(waiter.acquire_for(300ms)) << count; });
        EXPECT_THAT(holder.release(), Succeeds()) << count;
        world.network.pass(1s);
        EXPECT_THAT(waiter.acquire_for(1s), Succeeds()) << count;
    }
    EXPECT_GT(count, 20) << "nothing was asked for: this shows nothing";
}

// The watchdog's thread sleeps in this function, and so does a release() that waits for the end of an
// extension.
TEST(OutOfMemoryInTheBootClock, ASleepNeedsNoMemory) {
    std::stop_source stop;
    const auto until = boot_clock().now() + 1ms;
    EXPECT_FALSE(fails_after(
        0, [&] { boot_clock().sleep_until(until, stop.get_token()); }, true));
    EXPECT_GE(boot_clock().now(), until);
}

TEST(OutOfMemoryInTheBootClock, AStopEndsASleepWithoutMemory) {
    std::stop_source stop;
    std::jthread stopper{[&] { stop.request_stop(); }};
    EXPECT_FALSE(fails_after(
        0, [&] { boot_clock().sleep_until(Clock::never(), stop.get_token()); }, true));
    EXPECT_TRUE(stop.stop_requested());
}

// C6. Whatever fails in one turn, a later one extends.
TEST_P(OutOfMemory, AWatchdogExtendsInALaterTurn) {
    long count = 0;
    for (bool went_on = true; went_on; ++count) {
        Client world;
        detail::BlockingRenewals queue{world.clock};
        auto lock = world.lock(options(&queue));
        auto other = world.lock("other", options(&queue));
        EXPECT_THAT(lock.acquire(), Succeeds());
        EXPECT_THAT(other.acquire(), Succeeds());
        world.clock.advance(12s);
        went_on = fails_after(count, [&] { (void)queue.turn(); });
        const auto end = world.clock.now() + 1min;
        for (auto next = queue.turn(); next < end; next = queue.turn()) world.clock.advance_to(next);
        world.clock.advance_to(end);
        EXPECT_TRUE(lock.valid()) << count;
        EXPECT_TRUE(other.valid()) << count;
        EXPECT_THAT(lock.release(), Succeeds());
    }
    EXPECT_GT(count, 5) << "nothing was asked for: this shows nothing";
}

// C6. If there is no memory as long as the lock is valid, its loss is still reported in time.
TEST_P(OutOfMemory, TheLossIsStillReported) {
    Client world;
    detail::BlockingRenewals queue{world.clock};
    Clock::time_point told{};
    auto with_notice = options(&queue);
    with_notice.on_lost = [&](const Result&) { told = world.clock.now(); };
    auto lock = world.lock(with_notice);
    EXPECT_THAT(lock.acquire(), Succeeds());
    const auto lost = lock.lost();
    const auto valid_until = world.clock.now() + lock.remaining();
    EXPECT_TRUE(fails_after(
        0,
        [&] {
            for (auto next = queue.turn(); next < Clock::never(); next = queue.turn())
                world.clock.advance_to(next);
        },
        true));
    EXPECT_TRUE(lost.stop_requested());
    EXPECT_LE(told, valid_until);
    EXPECT_GT(told, valid_until - 1s);
}

}  // namespace
}  // namespace redlock::test
