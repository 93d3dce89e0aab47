// Operations in an event loop that are cancelled, or whose lock is destroyed, or whose loop is shut down, at
// each point at which they wait. The servers are in memory, and everything else is the real library.
#include "memory_loop_world.hpp"

#include <redlock/async_semaphore.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test::suspension_points_test {
namespace {

/// Servers, nodes and a loop with one lock.
struct LoopWorld : MemoryLoopWorld {
    explicit LoopWorld(const LockOptions& options, std::vector<std::string> its_resources = {"r"},
                       milliseconds quarantine = {})
        : MemoryLoopWorld{{.node_timeout = 50ms, .quarantine = quarantine}},
          resources(std::move(its_resources)) {
        lock.emplace(*of_loop, resources, options);
    }

    void run_to_the_end() {
        const auto end = now() + 1min;
        while (results.empty() && now() < end) loop.run_once(end);
        ASSERT_EQ(results.size(), 1U);
    }
    void occupy(const std::string& owner) {
        for (std::size_t node = 0; node < size; ++node) hold(node, owner);
    }
    void free_all() {
        for (std::size_t node = 0; node < size; ++node) release_at(node, "other");
    }
    /// Returns on how many nodes a lock has a resource or a description, or a waiter is in the queue or
    /// woken.
    std::size_t traces() {
        std::size_t count = 0;
        for (std::size_t node = 0; node < size; ++node)
            if (!queued(node).empty() ||
                ask(node, {"GET", "{" + resources.front() + "}:holder"}) != "(nil)" ||
                std::ranges::any_of(resources, [&](const auto& it) { return is_held(node, it); }))
                ++count;
        return count;
    }
    /// Returns true if the key has an owner other than those of the scenario.
    bool is_held(std::size_t node, const std::string& resource) {
        const auto value = ask(node, {"GET", resource});
        if (value != "redlock:shared") return value != "(nil)" && value != "other";
        const auto* const readers = network.find(node, "{" + resource + "}:readers");
        return readers && std::ranges::any_of(readers->scores, [&](const auto& it) {
                   return !other_reader || it.first != other_reader->owner();
               });
    }

    const std::vector<std::string> resources;
    std::optional<Lock> other_reader{};  // of another process
    std::optional<AsyncLock> lock{};
};

/// An operation that begins in a world, and what happens in this world meanwhile.
struct Scenario {
    const char* name;
    LockOptions options;
    void (*prepare)(LoopWorld&);
    void (*begin)(LoopWorld&);
    std::vector<std::string> resources{"r"};
    milliseconds quarantine{};

    friend std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
        return out << scenario.name;
    }
};

const LockOptions plain{.ttl = 10s, .retry = {.delay = 100ms}};
const LockOptions fenced{.ttl = 10s, .retry = {.delay = 100ms}, .fencing = true};
const LockOptions fair{.ttl = 10s, .retry = {.delay = 100ms}, .fair = true};
const LockOptions shared{.ttl = 10s, .retry = {.delay = 100ms}, .shared = true};
const LockOptions fenced_reader{.ttl = 10s, .retry = {.delay = 100ms}, .fencing = true, .shared = true};
const LockOptions quarantined{.ttl = 2s, .retry = {.delay = 100ms}};
constexpr milliseconds quarantine = 2s;
const LockOptions described{.ttl = 10s, .holder = "a test"};

void acquire_first(LoopWorld& world) {
    world.lock->acquire(world.report());
    world.run_to_the_end();
    world.results.clear();
}

void silence_a_node(LoopWorld& world) {
    world.network.server(1).paused = true;
}

void others_hold_for_a_while(LoopWorld& world) {
    world.occupy("other");
    world.after(700ms, [&world] { world.free_all(); });
}

/// No release wakes the waiter, which finds the resource free by itself.
void others_vanish_after_a_while(LoopWorld& world) {
    world.occupy("other");
    world.after(700ms, [&world] {
        for (std::size_t node = 0; node < world.size; ++node) world.ask(node, {"DEL", "r"});
    });
}

void readers_hold_for_a_while(LoopWorld& world) {
    world.other_reader.emplace(world.client(), "r", shared, world.network.clock(), world.entropy);
    const auto result = world.other_reader->acquire();
    ASSERT_TRUE(result) << result.message();
    world.after(700ms, [&world] { (void)world.other_reader->release(); });
}

/// The quarantine of all nodes ends. Then one of them loses its data.
void forget_the_data_of_a_node(LoopWorld& world) {
    world.lock->try_acquire(world.report());
    world.run_to_the_end();
    EXPECT_EQ(std::exchange(world.results, {}).at(0).error(), Errc::no_quorum);
    world.run_for(quarantine);
    world.ask(1, {"DEL", "redlock:marker"});
}

void acquire(LoopWorld& world) {
    world.lock->acquire_for(3s, world.report());
}

void hold_with_a_silent_node(LoopWorld& world) {
    acquire_first(world);
    silence_a_node(world);
}

void hold_through_a_loss(LoopWorld& world) {
    forget_the_data_of_a_node(world);
    acquire_first(world);
}

void extend(LoopWorld& world) {
    world.lock->extend(world.report());
}

void release(LoopWorld& world) {
    world.lock->release(world.report());
}

class AtEachSuspensionPoint : public testing::TestWithParam<Scenario> {
protected:
    /// Calls `test` with a new world after each number of turns of the loop at which the operation of the
    /// scenario is under way.
    void at_each(const std::function<void(LoopWorld&)>& test) {
        constexpr int most = 2000;
        for (int turns = 0; turns < most; ++turns) {
            LoopWorld world{GetParam().options, GetParam().resources, GetParam().quarantine};
            GetParam().prepare(world);
            GetParam().begin(world);
            const auto latest = world.now() + 1min;
            for (int i = 0; i < turns && world.results.empty(); ++i) world.loop.run_once(latest);
            if (!world.results.empty()) {
                EXPECT_TRUE(world.results[0]) << "undisturbed: " << world.results[0].message();
                return;
            }
            SCOPED_TRACE("after " + std::to_string(turns) + " turns");
            test(world);
            if (HasFailure()) return;
        }
        FAIL() << "the operation does not end";
    }

    /// Everything has been sent, and all servers have executed it.
    static void settle(LoopWorld& world) {
        world.run_for(200ms);
        for (std::size_t node = 0; node < world.size; ++node) world.network.resume(node);
        world.run_for(200ms);
    }
};

TEST_P(AtEachSuspensionPoint, ACancelledOperationCallsItsCompletionAndLeavesNothing) {
    at_each([](LoopWorld& world) {
        world.lock->cancel();
        const auto start = world.now();
        world.run_to_the_end();
        EXPECT_LE(world.now() - start, 2 * 50ms + 2ms);
        settle(world);
        EXPECT_EQ(world.results.size(), 1U);
        if (world.lock->valid())
            EXPECT_GE(world.traces(), 2U) << "a majority";
        else
            EXPECT_EQ(world.traces(), 0U);
    });
}

TEST_P(AtEachSuspensionPoint, ADestroyedLockCallsItsCompletionAndLeavesNothing) {
    at_each([](LoopWorld& world) {
        world.lock.reset();
        settle(world);
        ASSERT_EQ(world.results.size(), 1U);
        EXPECT_EQ(world.results[0].error(), Errc::cancelled);
        EXPECT_EQ(world.traces(), 0U);
    });
}

TEST_P(AtEachSuspensionPoint, AShutdownCallsNoCompletionAndLeavesNothing) {
    at_each([](LoopWorld& world) {
        const auto held = world.lock->valid();
        world.of_loop->shut_down();
        EXPECT_FALSE(world.loop.watches_anything());
        if (!held) settle(world);
        world.lock.reset();
        world.of_loop.reset();
        settle(world);
        EXPECT_TRUE(world.results.empty());
        EXPECT_EQ(world.traces(), 0U);
    });
}

// The release must be written at the shutdown, and not when the AsyncNodes is destroyed.
TEST_P(AtEachSuspensionPoint, AShutdownReleasesALockThatWasDestroyedBefore) {
    at_each([](LoopWorld& world) {
        world.lock.reset();
        world.of_loop->shut_down();
        settle(world);
        EXPECT_TRUE(world.results.empty());
        EXPECT_EQ(world.traces(), 0U);
    });
}

// The AsyncSemaphore is not destroyed, so only the acquisition itself can release the slot.
TEST(SemaphoreAtEachSuspensionPoint, AShutdownReleasesTheSlotThatIsBeingAcquired) {
    for (int turns = 0;; ++turns) {
        LoopWorld world{plain};
        AsyncSemaphore semaphore{*world.of_loop, "jobs", 2, {.ttl = 10min}};
        semaphore.acquire(world.report());
        for (int i = 0; i < turns && world.results.empty(); ++i) world.loop.run_once(world.now() + 1min);
        if (!world.results.empty()) {
            EXPECT_GT(turns, 3);
            break;
        }
        const bool acquired = semaphore.valid();
        world.of_loop->shut_down();
        world.network.pass(200ms);
        for (std::size_t node = 0; node < world.size; ++node)
            EXPECT_EQ(world.ask(node, {"EXISTS", "{jobs}:slot:0", "{jobs}:slot:1"}), acquired ? "1" : "0")
                << "after " << turns << " turns";
    }
}

/// Acquires a lock, and shuts its loop down: first before its release, and then after each number of turns at
/// which the release is under way. Calls `test` when everything has been sent.
void release_at_a_shutdown(const LockOptions& options, const std::function<void(LoopWorld&)>& test) {
    for (int turns = -1;; ++turns) {
        LoopWorld world{options};
        acquire_first(world);
        world.forget_log();
        if (turns >= 0) world.lock->release(world.report());
        for (int i = 0; i < turns && world.results.empty(); ++i) world.loop.run_once(world.now() + 1min);
        if (!world.results.empty()) {
            EXPECT_GT(turns, 1);
            return;
        }
        SCOPED_TRACE(turns < 0 ? "without a release" : "after " + std::to_string(turns) + " turns");
        world.of_loop->shut_down();
        world.lock.reset();
        world.network.pass(200ms);
        test(world);
    }
}

TEST(AReleaseAtAShutdown, KeepsTheResourceForTheMinimumHoldTime) {
    release_at_a_shutdown({.ttl = 10s, .min_hold = 5s}, [](LoopWorld& world) {
        for (std::size_t node = 0; node < world.size; ++node)
            EXPECT_EQ(world.holder(node), "redlock:min-hold");
    });
}

TEST(AReleaseAtAShutdown, WakesTheNextWaiter) {
    release_at_a_shutdown(fair, [](LoopWorld& world) {
        for (std::size_t node = 0; node < world.size; ++node)
            EXPECT_THAT(world.verbs(node), AllOf(Contains("wake"), Not(Contains("delete"))));
    });
}

TEST(ALockDestroyedDuringAnExtension, ReportsNoLossThatTheExtensionFinds) {
    int reports = 0;
    const auto count = [&reports](auto&&...) { ++reports; };
    LoopWorld world{{.ttl = 10s, .watchdog = loop_watchdog(), .on_lost = count}};
    acquire_first(world);
    const std::stop_callback on_stop{world.lock->lost(), count};
    for (std::size_t node = 0; node < world.size; ++node) world.ask(node, {"DEL", "r"});
    world.lock->extend(world.report());
    world.lock.reset();
    world.run_to_the_end();
    EXPECT_EQ(world.results[0].error(), Errc::cancelled);
    EXPECT_EQ(reports, 0);
}

TEST(ALockDestroyedDuringAnExtension, CallsNoOnLostIfACallbackOfLostHasDestroyedIt) {
    int losses = 0;
    LoopWorld world{{.ttl = 10s, .watchdog = loop_watchdog(), .on_lost = [&losses](auto&&) { ++losses; }}};
    acquire_first(world);
    for (std::size_t node = 0; node < world.size; ++node) world.network.server(node).paused = true;
    world.run_for(world.lock->remaining() - 20ms);
    world.lock->extend(world.report());
    const std::stop_callback on_stop{world.lock->lost(), [&world] { world.lock.reset(); }};
    world.run_to_the_end();
    EXPECT_FALSE(world.lock);
    EXPECT_EQ(world.results[0].error(), Errc::cancelled);
    EXPECT_EQ(losses, 0);
}

/// Lets an extension find that the nodes have lost the key, and does this in a callback of lost().
void find_the_loss(const std::function<void(LoopWorld&)>& callback) {
    LoopWorld world{{.ttl = 10s, .watchdog = loop_watchdog()}};
    acquire_first(world);
    for (std::size_t node = 1; node < world.size; ++node) world.ask(node, {"DEL", "r"});
    int calls = 0;
    const std::stop_callback on_stop{world.lock->lost(), [&] {
                                         ++calls;
                                         callback(world);
                                     }};
    world.lock->extend(world.report());
    world.run_for(200ms);
    EXPECT_EQ(calls, 1);
    const bool is_destroyed = !world.lock;
    EXPECT_EQ(world.holder(0) == "(nil)", is_destroyed) << "whether it was released";
}

TEST(ACallbackOfTheLossThatAnExtensionFinds, MayShutTheLoopDown) {
    find_the_loss([](LoopWorld& world) { world.of_loop->shut_down(); });
}

TEST(ACallbackOfTheLossThatAnExtensionFinds, MayDestroyTheLock) {
    find_the_loss([](LoopWorld& world) { world.lock.reset(); });
}

TEST(ACallbackOfTheLossThatAnExtensionFinds, MayDestroyTheLockAndShutTheLoopDown) {
    find_the_loss([](LoopWorld& world) {
        world.lock.reset();
        world.of_loop->shut_down();
    });
}

TEST(ACallbackOfTheLossThatAnExtensionFinds, MayShutTheLoopDownAndDestroyTheLock) {
    find_the_loss([](LoopWorld& world) {
        world.of_loop->shut_down();
        world.lock.reset();
    });
}

INSTANTIATE_TEST_SUITE_P(
    Operations, AtEachSuspensionPoint,
    testing::Values(
        Scenario{"AcquiresAFreeResource", plain, [](LoopWorld&) {}, acquire},
        Scenario{"AcquiresWithASilentNode", plain, silence_a_node, acquire},
        Scenario{"AcquiresAHeldResource", plain, others_hold_for_a_while, acquire},
        Scenario{"AcquiresWithFencing", fenced, silence_a_node, acquire},
        Scenario{"AcquiresWithADescription", described, silence_a_node, acquire},
        Scenario{"AcquiresAsAReader", shared, silence_a_node, acquire},
        Scenario{"AcquiresAsAReaderBesideAnother", shared, readers_hold_for_a_while, acquire},
        Scenario{"AcquiresAsAReaderWithFencing", fenced_reader, silence_a_node, acquire},
        Scenario{"AcquiresAsAReaderWhatAWriterHolds", shared, others_hold_for_a_while, acquire},
        Scenario{"AcquiresAsAWriterWhatReadersHold", plain, readers_hold_for_a_while, acquire},
        Scenario{"AcquiresSeveral", plain, silence_a_node, acquire, {"r", "s"}},
        Scenario{"AcquiresSeveralWithFencing", fenced, silence_a_node, acquire, {"r", "s"}},
        Scenario{"AcquiresSeveralOfWhichOneIsHeld", plain, others_hold_for_a_while, acquire, {"q", "r"}},
        Scenario{
            "AcquiresWithAQuarantine", quarantined, forget_the_data_of_a_node, acquire, {"r"}, quarantine},
        Scenario{"AcquiresWithAQuarantineAndASilentNode",
                 quarantined,
                 [](LoopWorld& world) {
                     forget_the_data_of_a_node(world);
                     silence_a_node(world);
                 },
                 acquire,
                 {"r"},
                 quarantine},
        Scenario{"AcquiresAtTheEndOfAQuarantine", quarantined, [](LoopWorld&) {}, acquire, {"r"}, quarantine},
        Scenario{"WaitsInTheQueue", fair, others_hold_for_a_while, acquire},
        Scenario{"FindsAFreeResourceFromTheQueue", fair, others_vanish_after_a_while, acquire},
        Scenario{"FindsAFreeResourceWithASilentNode", fair,
                 [](LoopWorld& world) {
                     others_vanish_after_a_while(world);
                     silence_a_node(world);
                 },
                 acquire},
        Scenario{"WaitsInTheQueueWithASilentNode", fair,
                 [](LoopWorld& world) {
                     others_hold_for_a_while(world);
                     silence_a_node(world);
                 },
                 acquire},
        Scenario{"Extends", plain, hold_with_a_silent_node, extend},
        Scenario{"ExtendsAsAReader", shared, hold_with_a_silent_node, extend},
        Scenario{"ExtendsSeveral", plain, hold_with_a_silent_node, extend, {"r", "s"}},
        Scenario{"ExtendsWithAQuarantine", quarantined, hold_through_a_loss, extend, {"r"}, quarantine},
        Scenario{"Releases", fair, hold_with_a_silent_node, release},
        Scenario{"ReleasesAsAReader", shared, hold_with_a_silent_node, release},
        Scenario{"ReleasesWithADescription", described, acquire_first, release},
        Scenario{"ReleasesSeveral", plain, hold_with_a_silent_node, release, {"r", "s"}},
        Scenario{"ReleasesWithAQuarantine", quarantined, hold_through_a_loss, release, {"r"}, quarantine}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace redlock::test::suspension_points_test
