// The effects on a lock if memory runs out at any allocation. This program replaces operator new by one that
// fails on demand.
#include "fronts.hpp"
#include "memory_loop_world.hpp"
#include "support/memory_shortage.hpp"
#include "support/round_loop.hpp"

#include <redlock/async_leader.hpp>
#include <redlock/detail/memory.hpp>
#include <redlock/query.hpp>

#include <cstddef>
#include <new>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "redis/node.hpp"
#include "round/kept_releases.hpp"

namespace redlock::test::out_of_memory_test {
namespace {

using detail::has_memory_for;
using support::at_each_allocation;
using support::Shortage;
using support::shortage;

/// A client that allocates before and after a round. The servers in between have enough memory.
class Client : public World {
public:
    using World::World;
    void ask(std::span<const Request> requests, const RoundLimits& limits,
             std::span<Tally> tallies) override {
        ::operator delete(::operator new(1));
        const auto left = std::exchange(shortage.until_failure, Shortage::never);
        World::ask(requests, limits, tallies);
        shortage.until_failure = left;
        ::operator delete(::operator new(1));
    }
};

const auto no_memory = std::make_error_code(std::errc::not_enough_memory);

/// The parameters are the front, and whether the locks have fencing. Those with fencing have seven nodes,
/// whose votes need memory.
struct OutOfMemory : testing::TestWithParam<std::tuple<Front, bool>> {
    struct Setting : WorldOfAnyFront<Client> {
        Setting()
            : WorldOfAnyFront(std::get<Front>(GetParam()), std::get<bool>(GetParam()) ? std::size_t{7} : 5) {}
        LockOptions options() {
            return {.ttl = 30s,
                    .retry = {.attempts = 1},
                    .fencing = std::get<bool>(GetParam()),
                    .watchdog = watchdog()};
        }
    };
};
INSTANTIATE_TEST_SUITE_P(WithFencing, OutOfMemory, testing::Combine(each_front, testing::Bool()));

TEST_P(OutOfMemory, AnAcquireFailsAndLeavesNoKeys) {
    at_each_allocation(3, [](auto starve) {
        Setting world;
        auto lock = world.lock(world.options());
        Result result{Errc::not_held};
        starve([&] { result = lock.acquire(); });
        if (!result) {
            EXPECT_EQ(result.error(), no_memory);
            EXPECT_TRUE(world.clean());
            EXPECT_FALSE(lock.valid());
            EXPECT_TRUE(world.queue.idle());
            EXPECT_THAT(lock.acquire(), Succeeds());
        }
        EXPECT_TRUE(lock.valid());
    });
}

// The first slot is held by another client, so the acquisition also needs the memory of a query.
TEST_P(OutOfMemory, ASemaphoreFailsAndLeavesNoKeys) {
    at_each_allocation(5, [](auto starve) {
        Setting world;
        for (std::size_t node = 0; node < world.size(); ++node)
            world.command(node, {"SET", "{jobs}:slot:0", "x", "PX", "1000"});
        auto semaphore = world.semaphore("jobs", 2, world.options());
        Result result{Errc::not_held};
        starve([&] { result = semaphore.acquire(); });
        if (!result) {
            EXPECT_EQ(result.error(), no_memory);
            world.pass(2s);  // the key of the other client expires
            for (const auto* const slot : {"{jobs}:slot:0", "{jobs}:slot:1"})
                EXPECT_EQ(world.held_by({}, slot), world.size());
            EXPECT_FALSE(semaphore.valid());
            EXPECT_TRUE(world.queue.idle());
            EXPECT_THAT(semaphore.acquire(), Succeeds());
        }
        EXPECT_TRUE(semaphore.valid());
    });
}

TEST_P(OutOfMemory, AnExtensionOrAReleaseFailsAndCanBeRepeated) {
    at_each_allocation(1, [](auto starve) {
        Setting world;
        auto lock = world.held(world.options());
        Result extended{Errc::not_held};
        starve([&] { extended = lock.extend(); });
        if (!extended) {
            EXPECT_EQ(extended.error(), no_memory);
        }
        EXPECT_TRUE(lock.valid());
        Result released{Errc::not_held};
        starve([&] { released = lock.release(); });
        if (!released) {
            EXPECT_EQ(released.error(), no_memory);
            EXPECT_THAT(lock.release(), Succeeds());
        }
        EXPECT_TRUE(world.clean());
    });
}

class OutOfMemoryInALoop : public OutOfMemory {};
INSTANTIATE_TEST_SUITE_P(WithFencing, OutOfMemoryInALoop,
                         testing::Combine(testing::Values(Front::loop), testing::Bool()));

TEST_P(OutOfMemoryInALoop, ALockIsReleasedAfterItsDestruction) {
    at_each_allocation(1, [](auto starve) {
        Setting world;
        auto lock = world.held(world.options());
        starve([&] { (void)lock.release(); });
        starve([&] { (void)AnyLock{std::move(lock)}; });
        world.pass(5s);
        EXPECT_TRUE(world.clean());
    });
}

// An operation that fails at once calls its completion later. Until then, no other operation can begin.
TEST_P(OutOfMemoryInALoop, AnOperationThatHasFailedIsUnderWayUntilItsCompletionIsCalled) {
    at_each_allocation(3, [](auto starve) {
        Setting world;
        AsyncLock lock{world.of_loop, the_resource, world.options()};
        std::vector<std::error_code> errors;
        const auto acquire = [&] { lock.acquire([&](const Result& it) { errors.push_back(it.error()); }); };
        bool begun = false;
        starve([&] { begun = has_memory_for(acquire); });
        acquire();
        world.pass(1s);
        ASSERT_EQ(errors.size(), begun ? 2U : 1U);
        EXPECT_EQ(errors.back() == std::errc::operation_in_progress, begun);
    });
}

// In a loop, its release waits for memory until the validity has ended.
TEST_P(OutOfMemory, ADestroyedLockReportsNoLoss) {
    Setting world;
    int losses = 0;
    auto options = world.options();
    options.on_lost = [&](const Result&) { ++losses; };
    std::optional<AnyLock> lock{world.held(options)};
    world.pass(1s);
    shortage.begin(0, Shortage::for_good);
    lock.reset();
    world.pass(1min);
    shortage.end();
    EXPECT_EQ(losses, 0);
}

// C6. Whatever fails in one turn, a later one extends.
TEST_P(OutOfMemory, AWatchdogExtendsInALaterTurn) {
    at_each_allocation(5, [](auto starve) {
        Setting world;
        auto lock = world.held(world.options());
        auto other = world.held("other", world.options());
        world.clock.advance(12s);
        starve([&] { world.pass(0s); });
        world.pass(1min);
        EXPECT_TRUE(lock.valid());
        EXPECT_TRUE(other.valid());
        EXPECT_THAT(lock.release(), Succeeds());
    });
}

// C6. If there is no memory as long as the lock is valid, its loss is still reported in time.
TEST_P(OutOfMemory, TheLossIsStillReported) {
    Setting world;
    Clock::time_point told{};
    auto options = world.options();
    options.on_lost = [&](const Result&) { told = world.clock.now(); };
    auto lock = world.held(options);
    const auto lost = lock.lost();
    const auto valid_until = world.clock.now() + lock.remaining();
    shortage.begin(0, Shortage::for_good);
    world.pass(1min);
    shortage.end();
    EXPECT_TRUE(lost.stop_requested());
    EXPECT_LE(told, valid_until);
    EXPECT_GT(told, valid_until - 1s);
}

// The memory runs out once, or until a term has ended. Then the leader must lead, and leave no key.
TEST(LeaderOutOfMemory, LeadsInALoopWhenThereIsMemoryAgain) {
    for (const auto failures : {1L, Shortage::for_good})
        at_each_allocation(
            20,
            [](auto starve) {
                WorldOfAnyFront<Client> world{Front::loop};
                int ends = 0;
                int begins = 0;
                std::optional<AsyncTerm> term;
                AsyncLeader leader{world.of_loop,
                                   the_resource,
                                   {.ttl = 30s,
                                    .retry = {.attempts = 1, .delay = 100ms},
                                    .on_error = [](const std::exception_ptr&) {},
                                    .on_failure = [](auto& it) { EXPECT_EQ(it.error(), no_memory); }}};
                const auto run = [&] {
                    leader.run([&](AsyncTerm it) { term.emplace(std::move(it)); },
                               [&](const std::exception_ptr& it) { ends += it ? 100 : 1; });
                    ++begins;
                };
                starve([&] {
                    (void)has_memory_for(run);
                    world.pass(1s);
                    term.reset();
                    world.pass(1s);
                });
                if (begins == 0) run();
                world.pass(30s);
                EXPECT_TRUE(term && !term->lost().stop_requested());
                leader.cancel();
                term.reset();
                world.pass(1s);
                EXPECT_EQ(begins, 1);
                EXPECT_EQ(ends, 1);
                EXPECT_TRUE(world.clean());
            },
            failures);
}

/// The servers have enough memory.
template <class Parameter>
struct OutOfMemoryInTheClient : testing::TestWithParam<Parameter> {
    OutOfMemoryInTheClient() {
        OutsideTheClient::entered_or_left = [] { std::swap(shortage.until_failure, left_of_the_client); };
    }
    ~OutOfMemoryInTheClient() override { OutsideTheClient::entered_or_left = nullptr; }

    static inline long left_of_the_client = Shortage::never;
};

using Rounds = std::tuple<bool, Round, std::size_t>;

/// A client with the real nodes, rounds and connections. The parameters are the fencing, the order of a
/// round, and the number of processors. Without processors, the rounds of threads share connections.
class OutOfMemoryInARound : public OutOfMemoryInTheClient<Rounds> {
protected:
    static std::size_t processors() { return std::get<std::size_t>(GetParam()); }

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

    /// A client that has the lock, and whose rounds ask all nodes at once.
    struct Holder : WaitingWorld {
        explicit Holder(bool fair = false)
            : WaitingWorld(3, {.node_timeout = 50ms, .round = Round::all_at_once}, processors()),
              lock{nodes,
                   "r",
                   {.ttl = 10min, .retry = {.attempts = 1}, .fair = fair},
                   network.clock(),
                   entropy} {
            EXPECT_THAT(lock.acquire(), Succeeds());
            network.pass(2ms);
        }
        /// The first round probes the node if it is not trusted.
        void expect_release_at(std::size_t node) {
            for (int i = 0; i < 2; ++i) {
                network.pass(2s);
                (void)query(nodes, "another");
            }
            network.pass(50ms);
            EXPECT_EQ(holder(node), "(nil)");
        }

        MemoryNodes& nodes = client();
        Lock lock;
    };
};
INSTANTIATE_TEST_SUITE_P(WithFencing, OutOfMemoryInARound,
                         testing::Combine(testing::Bool(),
                                          testing::Values(Round::sequential, Round::all_at_once),
                                          testing::Values(many_processors, std::size_t{0})));

TEST_P(OutOfMemoryInARound, AnAcquireFailsAndLeavesNoKeys) {
    at_each_allocation(20, [](auto starve) {
        Setting it;
        Result result{Errc::not_held};
        starve([&] { result = it.lock.acquire(); });
        if (!result) {
            // A node has no vote if its connection breaks because it reads without memory.
            EXPECT_TRUE(result.error() == no_memory || result.error() == Errc::no_quorum);
            EXPECT_TRUE(it.clean());
            EXPECT_FALSE(it.lock.valid());
            EXPECT_THAT(it.lock.acquire(), Succeeds());
        }
        EXPECT_TRUE(it.lock.valid());
    });
}

TEST_P(OutOfMemoryInARound, AnExtensionOrAReleaseFailsAndCanBeRepeated) {
    at_each_allocation(1, [](auto starve) {
        Setting it;
        EXPECT_THAT(it.lock.acquire(), Succeeds());
        Result extended{Errc::not_held};
        starve([&] { extended = it.lock.extend(); });
        EXPECT_TRUE(it.lock.valid()) << extended.message();
        Result released{Errc::not_held};
        starve([&] { released = it.lock.release(); });
        if (!released) {
            EXPECT_THAT(it.lock.release(), Succeeds());
        }
        EXPECT_TRUE(it.clean());
    });
}

// The connections take longer than unlock() waits, so a background task makes them.
TEST_P(OutOfMemoryInARound, AnUnsentReleaseIsSentByTheBackgroundTask) {
    at_each_allocation(1, [&](auto starve) {
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
        starve([&] { network.pass(50ms); });
        EXPECT_TRUE(it.clean());
    });
}

// Without memory, there is no report on a node that is left alone. Another node, which was not awaited, still
// keeps the connection on which its SET is pending. (A sequential round awaits all trusted nodes.)
TEST_P(OutOfMemoryInARound, ALostReportCostsNoOtherNodeItsConnection) {
    const std::vector<std::string> resources{"r"};
    int successes = 0;
    at_each_allocation(
        1,
        [&](auto starve) {
            WaitingWorld world{5, {.node_timeout = 50ms, .round = Round::all_at_once}, processors()};
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
            starve([&] { (void)has_memory_for([&] { granted = ask(Verb::set_if_absent).granted(); }); });
            if (granted < 3) return;
            ++successes;
            (void)ask(Verb::compare_and_delete);
            EXPECT_EQ(frozen.connections(), connections);
        },
        Shortage::for_good);
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
    at_each_allocation(
        20,
        [&](auto starve) {
            Setting it;
            starve([&] { use(it.lock); });
            it.world.network.pass(31s);
            auto lock = it.new_lock();
            EXPECT_THAT(lock.acquire(), Succeeds());
        },
        Shortage::for_good);
}

// C6. Memory runs out in one turn, or in all turns of some seconds. A later turn extends the lock.
TEST_P(OutOfMemoryInARound, AWatchdogExtendsInALaterTurn) {
    for (const auto failures : {1L, Shortage::for_good})
        at_each_allocation(
            5,
            [](auto starve) {
                Setting it;
                auto& clock = it.world.network.clock();
                detail::BlockingRenewals queue{clock};
                const auto turns_until = [&](Clock::time_point end) {
                    for (auto next = queue.make_pass(); next < end; next = queue.make_pass())
                        it.world.network.pass(next - clock.now());
                    it.world.network.pass(end - clock.now());
                };
                auto lock = it.new_lock(&queue);
                EXPECT_THAT(lock.acquire(), Succeeds());
                const auto start = clock.now();
                starve([&] { turns_until(start + 20s); });
                turns_until(start + 60s);
                EXPECT_TRUE(lock.valid());
                EXPECT_FALSE(lock.lost().stop_requested());
                EXPECT_THAT(lock.release(), Succeeds());
            },
            failures);
}

// Rounds that share connections.
TEST_P(OutOfMemoryInARound, ASharedConnectionThatCannotBeBegunLeavesNothingBehind) {
    const auto names = names_of(3);
    const std::vector<std::string> resources{"r"};
    const Request request{
        .command = {.verb = Verb::set_if_absent, .resources = resources, .owner = "A", .ttl = 10s}};
    at_each_allocation(1, [&](auto starve) {
        MemoryNetwork network{3};
        NodeGroup group{network.configs(), {}, network};
        support::RoundLoop loop{group, network.clock()};
        const auto turn = [&] {
            loop.turn([&](auto entries, auto until) { network.wait(entries, network.clock().now(), until); },
                      network.clock().now() + 1s);
        };
        support::SharedRound first{group, names, request};
        support::SharedRound second{group, names, request};
        starve([&] {
            const bool ended = has_memory_for([&] {
                loop.begin(first);
                while (!first.over()) turn();
            });
            if (!ended) loop.forget(first);
        });
        loop.begin(second);
        while (!second.over()) turn();
        EXPECT_GE(second.tally().granted() + second.tally().refused(), 2U);
    });
}

// A connection whose late replies were read becomes idle again, or is closed.
TEST_P(OutOfMemoryInARound, ANodeKeepsItsConnections) {
    for (const bool closed : {false, true})
        at_each_allocation(5, [&](auto starve) {
            Setting it;
            auto& server = it.world.network.server(0);
            EXPECT_THAT(it.lock.acquire(), Succeeds());
            EXPECT_THAT(it.lock.release(), Succeeds());
            server.paused = true;
            EXPECT_THAT(it.lock.acquire(), FailsWith(Errc::no_quorum));
            if (closed) server.close_connections(it.world.now());
            it.world.network.resume(0);
            Result result{Errc::not_held};
            starve([&] { result = it.lock.acquire(); });
            it.world.network.pass(2s);
            if (!result) {
                EXPECT_THAT(it.lock.acquire(), Succeeds());
            }
            EXPECT_TRUE(it.lock.valid());
        });
}

/// An event loop with the real nodes, rounds and connections. The parameter is the number of allocations that
/// fail, one after the other.
class OutOfMemoryInTheLoop : public OutOfMemoryInTheClient<long> {
protected:
    struct Setting : MemoryLoopWorld {
        Setting() : MemoryLoopWorld{{.node_timeout = 1min}} {}
        /// Runs the loop until it has nothing left to do, although its functions throw std::bad_alloc.
        void run_for(Clock::duration span) {
            const auto end = now() + span;
            while (now() < end) (void)has_memory_for([&] { loop.run_once(end); });
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

        std::optional<AsyncLock> lock{};
    };
};
INSTANTIATE_TEST_SUITE_P(Failures, OutOfMemoryInTheLoop, testing::Values(1, 8, 30));

// The node_timeout is so long that the operation ends in time only if each failure is noticed at once.
TEST_P(OutOfMemoryInTheLoop, AnAcquisitionThrowsOrCallsItsCompletionOnceAndLeavesNoKey) {
    int successes = 0;
    at_each_allocation(
        20,
        [&](auto starve) {
            Setting it;
            it.lock.emplace(*it.of_loop, "r",
                            LockOptions{.ttl = 10min, .retry = {.attempts = 1}, .watchdog = loop_watchdog()});
            it.lock->acquire(it.report());
            it.run_for(10ms);
            it.lock->release(it.report());
            it.run_for(10ms);
            it.close_connections();
            it.network.pass(5ms);  // so that the acquisition begins new connections
            ASSERT_EQ(it.results.size(), 2U);
            it.results.clear();
            starve([&] {
                if (!has_memory_for([&] { it.lock->acquire(it.report()); }))
                    it.results.emplace_back(no_memory);
                it.run_for(5s);
            });
            ASSERT_EQ(it.results.size(), 1U);
            successes += it.results.front() ? 1 : 0;
            ASSERT_TRUE(it.results.front() || it.clean());
            it.lock.reset();
            it.run_for(5s);
            ASSERT_TRUE(it.clean());
            ASSERT_EQ(it.results.size(), 1U);
        },
        GetParam());
    EXPECT_GT(successes, 0);
}

class OutOfMemoryInTheListeners : public OutOfMemoryInTheLoop {
protected:
    static LockOptions options() { return {.ttl = 1min, .retry = {.delay = 100ms}, .fair = true}; }
};
INSTANTIATE_TEST_SUITE_P(OneFailure, OutOfMemoryInTheListeners, testing::Values(1));

// The waiters of a loop share a listener. After the failure, the loop must neither call a waiter that was
// destroyed nor keep a listener that no waiter uses.
TEST_P(OutOfMemoryInTheListeners, AWaiterThatFailsDisturbsNoOtherWaiter) {
    for (const bool other_waits : {false, true}) {
        int failures = 0;
        int late = 0;
        at_each_allocation(20, [&](auto starve) {
            MemoryLoopWorld world;
            std::optional<Result> of_waiter;
            std::optional<Result> of_other;
            AsyncLock waiter{*world.of_loop, "r", options()};
            AsyncLock other{*world.of_loop, "r", options()};
            const auto let_other_wait = [&] {
                if (of_other && of_other->error() != no_memory) return;
                of_other.reset();
                other.acquire_for(1min, [&](Result it) { of_other = std::move(it); });
            };
            auto holder = world.lock(world.client(), {}, {.ttl = 1min});
            ASSERT_THAT(holder.acquire(), Succeeds());
            if (other_waits) let_other_wait();
            world.run_for(20ms);
            starve([&] {
                const auto acquire = [&] {
                    waiter.acquire_for(30ms, [&](Result it) { of_waiter = std::move(it); });
                };
                if (!has_memory_for(acquire)) of_waiter = Result{no_memory};
                world.run_for(150ms);
            });
            ASSERT_TRUE(of_waiter);
            ASSERT_EQ(world.loop.watches_anything(), other_waits && !of_other);
            failures += of_waiter->error() == no_memory ? 1 : 0;
            if (!other_waits || of_other) let_other_wait();
            world.run_for(50ms);
            ASSERT_FALSE(of_other) << of_other->message();
            (void)holder.release();
            world.run_for(20ms);
            late += of_other ? 0 : 1;
            world.run_for(500ms);
            ASSERT_TRUE(of_other);
            ASSERT_THAT(*of_other, Succeeds());
            other.release([](const Result& it) { EXPECT_THAT(it, Succeeds()); });
            world.run_for(500ms);
            ASSERT_FALSE(world.loop.watches_anything());
        });
        EXPECT_GT(failures, 15) << "nothing was asked for: this shows nothing";
        EXPECT_LT(late, 10) << "a ticket may stay in the queue, and then delays the next waiter";
    }
}

// Two messages arrive together: one with the ticket of a waiter that has left, and one for another waiter.
TEST_P(OutOfMemoryInTheListeners, AMessageThatCannotBeGivenBackHidesNoOtherMessage) {
    int woken = 0;
    at_each_allocation(5, [&](auto starve) {
        MemoryLoopWorld world;
        std::optional<AsyncLock> gone{std::in_place, *world.of_loop, "r", options()};
        AsyncLock waiter{*world.of_loop, "r", options()};
        std::optional<Result> of_waiter;
        auto holder = world.lock(world.client(), {}, {.ttl = 1min});
        ASSERT_THAT(holder.acquire(), Succeeds());
        gone->acquire_for(1min, [](const Result&) {});
        world.run_for(20ms);
        waiter.acquire_for(1min, [&](Result it) { of_waiter = std::move(it); });
        world.run_for(20ms);
        const auto tickets = world.queued(0);
        ASSERT_EQ(tickets.size(), 2U);
        gone.reset();
        world.run_for(20ms);
        world.forget_log();
        const auto channel = tickets.front().substr(0, tickets.front().find('|'));
        for (const auto& ticket : tickets) EXPECT_EQ(world.ask(0, {"PUBLISH", channel, ticket}), "1");
        starve([&] { world.run_for(30ms); });
        // Without memory, the connection may break, too. The waiter then goes to another node.
        if (of_waiter || !world.all(1, "SUBSCRIBE").empty()) return;
        ++woken;
        EXPECT_FALSE(world.all(0, "leave and set").empty());
    });
    EXPECT_GT(woken, 5) << "nothing was asked for: this shows nothing";
}

// The connection of a release that nobody awaits breaks. Only completions may throw exceptions into the loop
// of the program.
TEST_P(OutOfMemoryInARound, AReleaseIsSentAgainInALoopWhenThereIsMemoryAgain) {
    for (const auto failures : {1L, Shortage::for_good})
        at_each_allocation(
            3,
            [](auto starve) {
                MemoryLoopWorld world;
                std::optional<AsyncLock> lock{std::in_place, *world.of_loop, "r", LockOptions{.ttl = 10min}};
                lock->acquire([](const Result& it) { EXPECT_THAT(it, Succeeds()); });
                world.run_for(10ms);
                auto& server = world.network.server(1);
                server.paused = true;
                lock.reset();
                world.run_for(10ms);
                server.close_connections(world.now());
                server.resume(world.now());
                starve([&] { EXPECT_NO_THROW(world.run_for(5ms)); });
                world.run_for(30ms);
                EXPECT_EQ(world.holder(1), "(nil)");
            },
            failures);
}

// The connection of the node that did not reply breaks after the round.
TEST_P(OutOfMemoryInARound, AReleaseThatAllOtherNodesHaveExecutedIsSentAgain) {
    int executed = 0;
    at_each_allocation(1, [&](auto starve) {
        Holder world;
        auto& server = world.network.server(1);
        server.paused = true;
        starve([&] { (void)world.lock.release(); });
        if (world.holder(0) != "(nil)" || world.holder(2) != "(nil)") return;
        ++executed;
        server.close_connections(world.now());
        server.resume(world.now());
        world.expect_release_at(1);
    });
    EXPECT_GT(executed, 0) << "no release was executed: this shows nothing";
}

// The server refuses the form of the release after the round.
TEST_P(OutOfMemoryInARound, AReleaseWithoutAQueueIsSentAgain) {
    at_each_allocation(3, [](auto starve) {
        Holder world{true};
        auto& server = world.network.server(1);
        server.paused = true;
        ASSERT_THAT(world.lock.release(), Succeeds());
        server.refuses_command = [](const auto& words) {
            return words.size() > 2 && words[2] == "2" ? "-NOPERM no permission for the key\r\n" : "";
        };
        world.network.resume(1);
        // Without memory, the next query takes its place.
        starve([&] { (void)has_memory_for([&] { (void)query(world.nodes, "another"); }); });
        world.expect_release_at(1);
    });
}

// The connection breaks in the round of the release, which sends the release again itself.
TEST_P(OutOfMemoryInARound, AReleaseWhoseConnectionBreaksIsSentAgain) {
    int broken = 0;
    at_each_allocation(1, [&](auto starve) {
        bool breaks = false;
        Holder world;
        world.network.server(1).refuses_command = [&](const auto& words) {
            return words[0] == "EVAL" && !std::exchange(breaks, true) ? "garbage\r\n" : "";
        };
        starve([&] { (void)world.lock.release(); });
        if (!breaks) return;
        ++broken;
        world.expect_release_at(1);
    });
    EXPECT_GT(broken, 1) << "the release did not need memory again: this shows nothing";
}

// The releases of the first connections need no memory. Only one for which there is none is dropped.
TEST(KeptReleasesOutOfMemory, KeepTheOthers) {
    constexpr std::size_t without_memory = 64;
    at_each_allocation(0, [](auto starve) {
        const std::vector<std::string> resource{"r"};
        std::vector<detail::PendingReplies> connections(without_memory + 1);
        for (auto& it : connections)
            it.add({.verb = Verb::compare_and_delete, .resources = resource, .owner = "A"}, nullptr);
        KeptReleases all;
        starve([&] {
            for (auto& it : connections) all.keep(std::move(it), true);
        });
        std::size_t sent = 0;
        all.send_again(true, {}, [&](const auto&) { ++sent; });
        EXPECT_EQ(sent, without_memory + (shortage.has_failed ? 0 : 1));
    });
}

class OutOfMemoryInANode : public testing::Test {
protected:
    struct User final : ConnectionUser {
        bool on_progress(std::size_t, Clock::time_point) noexcept override { return false; }
    };
    static Link& join(Node& node, MemoryNetwork& network) {
        return *node.join(release, network.clock().now(), false).connection;
    }

    static inline const std::vector<std::string> resource{"r"};
    static inline const Command release{
        .verb = Verb::compare_and_delete, .resources = resource, .owner = "A"};
};

// The Sentinels name another server, and there is no memory for the detail of the failure.
TEST_F(OutOfMemoryInANode, AConnectionToAFormerMasterIsBrokenInTheNextRound) {
    at_each_allocation(0, [](auto starve) {
        MemoryNetwork network{2};
        std::uint16_t named = 1;
        auto config = network.configs().front();
        config.sentinels = std::make_shared<const std::vector<NodeConfig>>(1);
        config.asks_sentinels = [&] { return Resolution::of_host("127.0.0.1", named); };
        Node node{config, network, {}};
        User user;
        auto& link = join(node, network);
        node.drop_former();
        named = 2;
        (void)node.server().addresses(config);  // as for a connection of another group
        starve([&] { (void)has_memory_for([&] { node.drop_former(); }); });
        node.drop_former();
        EXPECT_TRUE(link.broken());
        link.leave(user);
    });
}

TEST_F(OutOfMemoryInANode, AReleaseIsNotGivenUpOnAConnectionThatGoesOn) {
    at_each_allocation(0, [](auto starve) {
        MemoryNetwork network{1};
        network.server(0).unreachable = true;
        Node node{network.configs().front(), network, {}};
        User user;
        std::vector<Link*> links;
        while (links.size() <= max_draining) {
            auto& link = *links.emplace_back(&join(node, network));
            link.send({&release, 1}, user);
            link.pending().stop_awaiting(user);
            link.leave(user);
            link.start_draining(network.clock().now());
        }
        starve([&] { (void)has_memory_for([&] { join(node, network).leave(user); }); });
        const auto& oldest = *links.front();
        EXPECT_EQ(oldest.pending().releases_to_repeat(), oldest.broken() ? 0U : 1U);
    });
}

TEST_F(OutOfMemoryInANode, EachKeptReleaseIsSentAgainOnce) {
    at_each_allocation(1, [](auto starve) {
        MemoryNetwork network{1};
        network.server(0).unreachable = true;
        Node node{network.configs().front(), network, {}};
        detail::PendingReplies releases;
        for (int i = 0; i < 5; ++i) releases.add(release, nullptr);
        node.server().kept().keep(std::move(releases), true);
        starve([&] { (void)has_memory_for([&] { (void)node.write_collected(network.clock().now()); }); });
        std::vector<Connection*> connections;
        node.append_unfinished(connections, true);
        std::size_t sent = 0;
        for (const auto* const it : connections) sent += it->pending().releases_to_repeat();
        EXPECT_EQ(sent, 5U);
    });
}

class OutOfMemoryInTheQueue : public OutOfMemoryInARound {};
INSTANTIATE_TEST_SUITE_P(WithoutFencing, OutOfMemoryInTheQueue,
                         testing::Values(Rounds{false, Round::all_at_once, many_processors},
                                         Rounds{false, Round::all_at_once, 0}));

TEST_P(OutOfMemoryInTheQueue, AWaiterLeavesTheQueueAndNoKeys) {
    at_each_allocation(20, [](auto starve) {
        WaitingWorld world;
        auto holder = world.lock(world.client());
        auto waiter = world.lock(world.client());
        EXPECT_THAT(holder.acquire(), Succeeds());
        starve([&] { EXPECT_FALSE(waiter.acquire_for(300ms)); });
        EXPECT_THAT(holder.release(), Succeeds());
        world.network.pass(1s);
        EXPECT_THAT(waiter.acquire_for(1s), Succeeds());
    });
}

// The watchdog's thread sleeps in this function, and so does a release() that waits for the end of an
// extension.
void sleep_without_memory(Clock::time_point until, const std::stop_token& stop) {
    shortage.has_failed = false;
    shortage.begin(0, Shortage::for_good);
    boot_clock().sleep_until(until, stop);
    shortage.end();
    EXPECT_FALSE(shortage.has_failed);
}

TEST(OutOfMemoryInTheBootClock, ASleepNeedsNoMemory) {
    const std::stop_source stop;
    const auto until = boot_clock().now() + 1ms;
    sleep_without_memory(until, stop.get_token());
    EXPECT_GE(boot_clock().now(), until);
}

TEST(OutOfMemoryInTheBootClock, AStopEndsASleepWithoutMemory) {
    std::stop_source stop;
    const std::jthread stopper{[&] { stop.request_stop(); }};
    sleep_without_memory(Clock::never(), stop.get_token());
    EXPECT_TRUE(stop.stop_requested());
}

}  // namespace
}  // namespace redlock::test::out_of_memory_test
