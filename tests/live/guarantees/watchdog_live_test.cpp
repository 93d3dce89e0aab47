// Rules C6 to C10 and B7 against real servers, in real time, with the threads of a real Watchdog.
#include "guarantee_world.hpp"
#include "hostile_server.hpp"

#include <redlock/detail/scripts.hpp>

#include <csignal>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace redlock::test {
namespace {

/// What the watchdog has told, and when.
class Notices {
public:
    std::function<void(const Result&)> listener() {
        return [this](const Result& loss) { note(loss); };
    }

    void note(const Result& loss) {
        const auto now = boot_clock().now();
        const std::lock_guard guard{mutex_};
        losses_.push_back(loss);
        last_ = now;
        news_.notify_all();  // while nobody can have seen the news, and ended us
    }

    /// Waits for so many; false if they do not come.
    bool wait_for(std::size_t count) {
        std::unique_lock guard{mutex_};
        return news_.wait_for(guard, 30s, [&] { return losses_.size() >= count; });
    }

    std::vector<Result> losses() {
        const std::lock_guard guard{mutex_};
        return losses_;
    }
    Clock::time_point last() {
        const std::lock_guard guard{mutex_};
        return last_;
    }

private:
    std::mutex mutex_;
    std::condition_variable news_;
    std::vector<Result> losses_;
    Clock::time_point last_{};
};

/// Budgets that ttls of a second or two can bear.
constexpr NodesOptions brisk{.node_timeout = 400ms};

LockOptions watched_by(Watchdog& watchdog, milliseconds ttl = 1500ms) {
    return {.ttl = ttl, .retry = {.attempts = 1}, .watchdog = &watchdog};
}

bool extends(const Heard& heard) {
    if (!heard.words.front().starts_with("EVAL")) return false;
    const auto& script = heard.words[1];  // of a long one the beginning
    return script == detail::compare_and_expire.sha1 || script == detail::expire_all.sha1 ||
           detail::compare_and_expire.text.starts_with(std::string_view{script}.substr(0, 80));
}

/// How often a server was asked to extend.
std::size_t extensions(const Monitor& monitor) {
    return static_cast<std::size_t>(std::ranges::count_if(monitor.commands(), extends));
}

Clock::time_point end_of(const Lock& lock) {
    return boot_clock().now() + lock.remaining();
}

// ---- Extending

TEST(Watchdog, HoldsALockForManyTimesItsTtl) {
    LiveWorld world{5, brisk};
    Watchdog watchdog;
    Notices notices;
    auto options = watched_by(watchdog);
    options.on_lost = notices.listener();
    auto lock = world.lock(options);
    ASSERT_THAT(lock.acquire(), Succeeds());
    const std::string owner{lock.owner()};
    const Monitor monitor{world[0]};
    EXPECT_TRUE(wait_until([&] { return extensions(monitor) >= 8; }));
    EXPECT_TRUE(lock.valid());
    EXPECT_EQ(lock.owner(), owner);
    EXPECT_EQ(world.keys_of(owner), 5U);
    EXPECT_THAT(lock.release(), Succeeds());
    EXPECT_TRUE(world.clean());
    EXPECT_THAT(notices.losses(), IsEmpty());
}

TEST(Watchdog, DoesSoWithOneNodeFrozenAndOneDead) {
    LiveWorld world{5, brisk};
    Watchdog watchdog;
    auto lock = world.lock(watched_by(watchdog));
    ASSERT_THAT(lock.acquire(), Succeeds());
    world[1].freeze();
    world[3].kill();
    const Monitor monitor{world[0]};
    EXPECT_TRUE(wait_until([&] { return extensions(monitor) >= 8; }));
    EXPECT_TRUE(lock.valid());
    EXPECT_EQ(lock.lost().stop_requested(), false);
    world[1].thaw();
}

// Whatever the lock is made of goes through the pipeline as well.
TEST(Watchdog, ExtendsFencedLocksOnSeveralResourcesUnderAQuarantine) {
    QuarantineWorld world{3};
    Watchdog watchdog;
    auto options = watched_by(watchdog, 3s);
    options.fencing = true;
    Lock lock{world.nodes, {"orders:42", "stock:7"}, options};
    ASSERT_THAT(lock.acquire(), Succeeds());
    const auto token = lock.fencing_token();
    const Monitor monitor{world[2]};
    EXPECT_TRUE(wait_until([&] { return extensions(monitor) >= 3; }));
    EXPECT_TRUE(lock.valid());
    EXPECT_EQ(lock.fencing_token(), token);
    for (const auto* const resource : {"orders:42", "stock:7"})
        for (const auto& server : world) EXPECT_EQ(holder(server, resource), lock.owner());
}

TEST(Watchdog, HoldsAThousandLocks) {
    LiveWorld world{5, brisk};
    Watchdog watchdog;
    Notices notices;
    auto options = watched_by(watchdog, 3s);
    options.on_lost = notices.listener();
    std::vector<Lock> locks;
    for (int i = 0; i < 1'000; ++i) {
        locks.push_back(world.lock("resource " + std::to_string(i), options));
        ASSERT_THAT(locks.back().acquire(), Succeeds());
    }
    const Monitor monitor{world[4]};
    EXPECT_TRUE(wait_until([&] { return extensions(monitor) >= 4'000; }));
    EXPECT_THAT(notices.losses(), IsEmpty());
    for (auto& lock : locks) {
        EXPECT_TRUE(lock.valid());
        EXPECT_THAT(lock.release(), Succeeds());
    }
    EXPECT_TRUE(world.clean());
}

// D6. The servers forget their scripts: a round is lost at most, and the next one brings them again.
TEST(Watchdog, BringsScriptsAgainThatTheServersHaveForgotten) {
    LiveWorld world{3, brisk};
    Watchdog watchdog;
    std::vector<Lock> locks;
    for (int i = 0; i < 20; ++i) {
        locks.push_back(world.lock("resource " + std::to_string(i), watched_by(watchdog)));
        ASSERT_THAT(locks.back().acquire(), Succeeds());
    }
    const Monitor monitor{world[0]};
    for (std::size_t round = 1; round <= 5; ++round) {
        for (const auto& server : world) ASSERT_EQ(server.command({"SCRIPT", "FLUSH"}), "OK");
        ASSERT_TRUE(wait_until([&] { return extensions(monitor) >= 40 * round; }));
    }
    for (const auto& lock : locks) EXPECT_TRUE(lock.valid());
}

// The holder extends, too, and asks all the time: nobody is in anybody's way.
TEST(Watchdog, WorksBesideAHolderWhoExtendsAndAsks) {
    LiveWorld world{3, brisk};
    Watchdog watchdog;
    auto lock = world.lock(watched_by(watchdog, 600ms));
    ASSERT_THAT(lock.acquire(), Succeeds());
    const Monitor monitor{world[0]};
    int asked = 0;
    EXPECT_TRUE(wait_until([&] {
        if (++asked % 100 == 0) {
            EXPECT_THAT(lock.extend(), Succeeds());
        }
        EXPECT_GT(lock.remaining(), 0ms);
        return lock.valid() && asked >= 1'000 && extensions(monitor) >= 10;
    }));
    EXPECT_THAT(lock.release(), Succeeds());
}

// ---- Losing

struct HangingMajority : testing::TestWithParam<Standstill> {};
INSTANTIATE_TEST_SUITE_P(When, HangingMajority, testing::ValuesIn(standstills()), by_name);

// C6. The notice comes in time though the round that would save the lock hangs.
TEST_P(HangingMajority, DoesNotDelayTheNotice) {
    LiveWorld world{5, {.node_timeout = 1900ms}};
    Watchdog watchdog;
    Notices notices;
    auto options = watched_by(watchdog, 2s);
    options.on_lost = notices.listener();
    auto lock = world.lock(options);
    ASSERT_TRUE(world.warm_up());
    ASSERT_THAT(lock.acquire(), Succeeds());
    const auto lost = lock.lost();
    for (const std::size_t node : {1U, 2U, 3U}) GetParam().begin(world[node]);
    auto end = end_of(lock);
    while (lock.valid()) end = std::max(end, end_of(lock));  // one more extension may have come through
    EXPECT_TRUE(notices.wait_for(1));
    EXPECT_THAT(notices.last() - end, LastsAtMost(200ms));  // the round would go on for 600 ms
    EXPECT_FALSE(lock.valid());
    EXPECT_THAT(notices.losses(), testing::ElementsAre(FailsWith(Errc::lost)));
    for (const std::size_t node : {1U, 2U, 3U}) GetParam().end(world[node]);
    EXPECT_THAT(lock.release(), FailsWith(Errc::lost));
    EXPECT_TRUE(wait_until([&] { return world.clean(); }));
}

// C10. Locks on other nodes are extended all the while, though a round here takes twice their ttl.
TEST_P(HangingMajority, DelaysNoLockOnOtherNodes) {
    LiveWorld world{5, {.node_timeout = 2s}};
    LiveWorld others{3, {.node_timeout = 300ms}};
    Watchdog watchdog;
    std::vector<Lock> hanging;
    for (int i = 0; i < 10; ++i) {
        hanging.push_back(world.lock("resource " + std::to_string(i), watched_by(watchdog, 4s)));
        ASSERT_THAT(hanging.back().acquire(), Succeeds());
    }
    for (const std::size_t node : {1U, 2U, 3U}) GetParam().begin(world[node]);
    auto lock = others.lock(watched_by(watchdog, 1s));
    ASSERT_THAT(lock.acquire(), Succeeds());
    EXPECT_TRUE(wait_until([&] {
        return std::ranges::all_of(hanging, [](const Lock& it) { return it.lost().stop_requested(); });
    }));
    EXPECT_TRUE(lock.valid());
    for (const std::size_t node : {1U, 2U, 3U}) GetParam().end(world[node]);
}

TEST(Watchdog, TellsAtOnceThatAMajorityHasLostTheKey) {
    LiveWorld world{3, brisk};
    Watchdog watchdog;
    Notices notices;
    auto options = watched_by(watchdog, 3s);
    options.on_lost = notices.listener();
    auto lock = world.lock(options);
    ASSERT_THAT(lock.acquire(), Succeeds());
    const auto end = end_of(lock);
    for (const std::size_t node : {0U, 2U}) ASSERT_EQ(world[node].command({"DEL", the_resource}), "1");
    ASSERT_TRUE(notices.wait_for(1));
    EXPECT_LT(notices.last(), end - 1s);
    EXPECT_FALSE(lock.valid());
    EXPECT_THAT(notices.losses()[0].message(), HasSubstr("lost on 2 of 3 nodes"));
}

// S30. A young node may have forgotten other holders: its word does not extend.
TEST(Watchdog, DoesNotCountNodesInQuarantine) {
    QuarantineWorld world{3};
    Watchdog watchdog;
    Notices notices;
    auto options = watched_by(watchdog, 2s);
    options.on_lost = notices.listener();
    auto lock = world.lock(options);
    ASSERT_THAT(lock.acquire(), Succeeds());
    for (const std::size_t node : {0U, 1U}) whole_since(world[node], 0ms);
    ASSERT_TRUE(notices.wait_for(1));
    EXPECT_THAT(notices.losses()[0], FailsWith(Errc::lost));
    EXPECT_THAT(notices.losses()[0].message(), HasSubstr("quarantined"));
}

// D1, A3. What is not an answer is not counted, whichever of the pipelined replies it is.
TEST(Watchdog, DoesNotCountNonsense) {
    LiveWorld world{2};
    std::atomic<int> lies = 0;
    HostileServer server{[&](Guest& guest) {
        while (true) {
            const auto words = guest.hear();
            const bool extends = words.front().starts_with("EVAL") && words.size() == 6;
            if (extends) ++lies;
            guest.say(words.front() == "PING" ? "+PONG\r\n" : words.front() == "SET" ? "+OK\r\n" : ":7\r\n");
        }
    }};
    auto uris = world.uris();
    uris.push_back(server.uri());
    RedisNodes nodes{uris, brisk};
    Watchdog watchdog;
    Notices notices;
    auto options = watched_by(watchdog);
    options.on_lost = notices.listener();
    std::vector<Lock> locks;
    for (int i = 0; i < 3; ++i) {
        locks.emplace_back(nodes, "resource " + std::to_string(i), options);
        ASSERT_THAT(locks.back().acquire(), Succeeds());
    }
    EXPECT_TRUE(wait_until([&] { return lies >= 3; }));
    for (const auto& lock : locks) EXPECT_TRUE(lock.valid()) << "two of three are sound";
    world[1].kill();
    EXPECT_TRUE(notices.wait_for(3));
    EXPECT_THAT(notices.losses()[0].message(), HasSubstr("unexpected reply"));
}

// C7.
TEST(Watchdog, StopsAtTheHoldLimit) {
    LiveWorld world{3, brisk};
    Watchdog watchdog;
    Notices notices;
    auto options = watched_by(watchdog, 600ms);
    options.max_hold = 1s;
    options.on_lost = notices.listener();
    auto lock = world.lock(options);
    EXPECT_THAT(time_taken([&] {
                    ASSERT_THAT(lock.acquire(), Succeeds());
                    ASSERT_TRUE(notices.wait_for(1));
                }),
                LastsAtLeast(1s));
    EXPECT_THAT(notices.losses()[0], FailsWith(Errc::hold_limit));
    EXPECT_FALSE(lock.valid());
    EXPECT_TRUE(wait_until([&] { return world.clean(); })) << "without a release: the keys expire";
}

// ---- C8, C9, B7: the end

// B7. Released at any moment, also in the middle of a round: no extension comes after the release.
TEST(Watchdog, ExtendsNothingAfterARelease) {
    LiveWorld world{3, {.node_timeout = 40ms}};
    Watchdog watchdog;
    const Monitor monitor{world[1]};
    std::minstd_rand random;
    std::vector<std::string> owners;
    for (int i = 0; i < 60; ++i) {
        auto lock = world.lock("resource " + std::to_string(i % 3), watched_by(watchdog, 60ms));
        if (!lock.acquire()) continue;  // a busy machine
        owners.emplace_back(lock.owner());
        std::this_thread::sleep_for(std::chrono::milliseconds{18 + random() % 8});  // about when it is due
        (void)lock.release();
        (void)world.lock("released:" + owners.back(), {.ttl = 1s}).acquire();  // a mark in what it hears
    }
    std::this_thread::sleep_for(100ms);
    const auto commands = monitor.commands();
    for (const auto& owner : owners) {
        bool released = false;
        for (const auto& heard : commands) {
            if (!heard.says(owner) && !heard.says("released:" + owner)) continue;
            EXPECT_FALSE(released && extends(heard)) << "extended after its release";
            released = released || heard.says("released:" + owner);
        }
    }
    EXPECT_GE(extensions(monitor), 1U) << "nothing was ever extended: this shows nothing";
}

/// Three nodes that grant everything, and keep the watchdog in its round until they are told to end it.
class SlowToExtend : public Nodes {
public:
    SlowToExtend() : Nodes({"a", "b", "c"}) {}

    void ask(std::span<const Request> requests, const RoundLimits&, std::span<Tally> tallies) override {
        if (requests.front().command.verb == Verb::compare_and_expire) {
            asked.set_value();
            end.get_future().wait();
        }
        for (std::size_t i = 0; i < requests.size(); ++i)
            for (std::size_t node = 0; node < size(); ++node)
                if (requests[i].to[node]) tallies[i].grant(node);
    }

    std::promise<void> asked;
    std::promise<void> end;
};

// B7. What is under way could still be sent: the release waits for its end.
TEST(Watchdog, IsWaitedForByAReleaseInTheMiddleOfARound) {
    SlowToExtend nodes;
    Watchdog watchdog;
    Lock lock{nodes, the_resource, watched_by(watchdog, 300ms)};
    ASSERT_THAT(lock.acquire(), Succeeds());
    nodes.asked.get_future().wait();
    auto release = std::async(std::launch::async, [&] { return lock.release(); });
    EXPECT_EQ(release.wait_for(50ms), std::future_status::timeout);
    nodes.end.set_value();
    ASSERT_EQ(release.wait_for(20s), std::future_status::ready);
    EXPECT_THAT(release.get(), Succeeds());
}

// C8.
TEST(Watchdog, LetsTheCallbackReleaseAndAcquireAgain) {
    LiveWorld world{3, brisk};
    Watchdog watchdog;
    std::optional<Lock> lock;
    std::promise<Result> outcome;
    auto options = watched_by(watchdog);
    options.on_lost = [&](const Result&) {
        EXPECT_THAT(lock->release(), FailsWith(Errc::lost));
        outcome.set_value(lock->acquire());
    };
    lock.emplace(world.lock(options));
    ASSERT_THAT(lock->acquire(), Succeeds());
    for (const std::size_t node : {0U, 1U}) (void)world[node].command({"DEL", the_resource});
    auto future = outcome.get_future();
    ASSERT_EQ(future.wait_for(20s), std::future_status::ready);
    EXPECT_THAT(future.get(), Succeeds());
    EXPECT_TRUE(lock->valid());
}

// C8. The holder goes on in its thread while the callback releases what was lost, and nothing later.
TEST(Watchdog, LetsTheHolderAcquireAnewWhileTheCallbackReleases) {
    LiveWorld world{3, brisk};
    Watchdog watchdog;
    Notices notices;
    std::atomic<std::size_t> begun = 0;
    std::optional<Lock> lock;
    auto options = watched_by(watchdog, 10s);
    options.on_lost = [&](const Result& loss) {
        ++begun;
        (void)lock->release();
        notices.note(loss);
    };
    lock.emplace(world.lock(options));
    for (std::size_t i = 1; i <= 30; ++i) {
        ASSERT_THAT(lock->acquire(), Succeeds());
        for (const std::size_t node : {0U, 1U}) ASSERT_EQ(world[node].command({"DEL", the_resource}), "1");
        EXPECT_THAT(lock->extend(), FailsWith(Errc::lost));
        ASSERT_TRUE(wait_until([&] { return begun == i; }));
        ASSERT_THAT(lock->acquire(), Succeeds());
        ASSERT_TRUE(notices.wait_for(i));
        EXPECT_TRUE(lock->valid());
        EXPECT_TRUE(wait_until([&] { return world.keys_of(std::string{lock->owner()}) == 3; }));
        EXPECT_THAT(lock->release(), Succeeds());
    }
    EXPECT_THAT(notices.losses(), SizeIs(30));
}

// C8. While one loss is being told, the other lock is released and acquired anew: it is not told of then.
TEST(Watchdog, TellsNoLossOfWhatWasReleasedMeanwhile) {
    LiveWorld world{3, brisk};
    Watchdog watchdog;
    Notices notices;
    std::promise<int> first;
    std::promise<void> go_on;
    std::vector<Lock> locks;
    for (int i = 0; i < 2; ++i) {
        auto options = watched_by(watchdog, 3s);
        options.on_lost = [&, i](const Result& loss) {
            notices.note(loss);
            first.set_value(i);  // throws the second time: what the callback throws is swallowed
            go_on.get_future().wait();
        };
        locks.push_back(world.lock("resource " + std::to_string(i), options));
        ASSERT_THAT(locks.back().acquire(), Succeeds());
    }
    for (const std::size_t node : {0U, 1U})
        ASSERT_EQ(world[node].command({"DEL", "resource 0", "resource 1"}), "2");
    auto told = first.get_future();
    ASSERT_EQ(told.wait_for(20s), std::future_status::ready);
    auto& other = locks[told.get() == 0 ? 1 : 0];
    EXPECT_THAT(other.release(), FailsWith(Errc::lost));
    ASSERT_THAT(other.acquire(), Succeeds());
    const Monitor monitor{world[0]};
    go_on.set_value();
    EXPECT_TRUE(wait_until([&] { return extensions(monitor) >= 2; }));
    EXPECT_TRUE(other.valid());
    EXPECT_FALSE(other.lost().stop_requested());
    EXPECT_THAT(notices.losses(), SizeIs(1));
}

/// Releases a lock at the end of the watchdog's round, in the watchdog's thread.
class ReleasingObserver : public Observer {
public:
    void round_ended(const Command& command, const Tally&, std::chrono::nanoseconds) noexcept override {
        if (command.verb == Verb::compare_and_expire) released.set_value(lock->release());
    }
    std::optional<Lock> lock{};
    std::promise<Result> released{};
};

// C9.
TEST(Watchdog, LetsAnObserverOfItsRoundRelease) {
    LiveWorld world{3};
    ReleasingObserver observer;
    RedisNodes nodes{world.uris(), {.node_timeout = 400ms, .observer = &observer}};
    Watchdog watchdog;
    observer.lock.emplace(nodes, the_resource, watched_by(watchdog));
    ASSERT_THAT(observer.lock->acquire(), Succeeds());
    auto released = observer.released.get_future();
    ASSERT_EQ(released.wait_for(20s), std::future_status::ready);
    EXPECT_THAT(released.get(), Succeeds());
    EXPECT_TRUE(world.clean());
    observer.lock.reset();
}

// C9. From the callback, while another thread destroys it as well: one of the two does.
TEST(Watchdog, MayBeDestroyedFromAnyThread) {
    LiveWorld world{3, {.node_timeout = 40ms}};
    Watchdog watchdog;
    for (int i = 0; i < 40; ++i) {
        struct Shared {
            std::mutex mutex{};
            std::unique_ptr<Lock> lock{};
        };
        const auto shared = std::make_shared<Shared>();
        const auto destroy = [shared] {
            const std::lock_guard guard{shared->mutex};
            shared->lock.reset();
        };
        auto options = watched_by(watchdog, 60ms);
        options.on_lost = [destroy](const Result&) { destroy(); };
        shared->lock = std::make_unique<Lock>(world.lock("resource " + std::to_string(i), options));
        if (!shared->lock->acquire()) continue;
        for (const std::size_t node : {0U, 1U})
            (void)world[node].command({"DEL", "resource " + std::to_string(i)});
        std::this_thread::sleep_for(std::chrono::milliseconds{15 + i % 15});  // about when it finds out
        destroy();
    }
    EXPECT_TRUE(wait_until([&] { return world.clean(); }));
}

TEST(Watchdog, MayBeDestroyedItselfInACallback) {
    LiveWorld world{1, {.node_timeout = 50ms}};
    std::promise<void> gone;
    auto watchdog = std::make_unique<Watchdog>();
    auto options = watched_by(*watchdog, 300ms);
    std::optional<Lock> lock;
    options.on_lost = [&](const Result&) {
        lock.reset();
        watchdog.reset();
        gone.set_value();
    };
    lock.emplace(world.lock(options));
    ASSERT_THAT(lock->acquire(), Succeeds());
    (void)world[0].command({"DEL", the_resource});
    EXPECT_EQ(gone.get_future().wait_for(20s), std::future_status::ready);
}

// C10, D9. Many threads acquire, ask, extend and release under one watchdog, while a server comes and goes.
TEST(Watchdog, ServesManyThreads) {
    LiveWorld world{3, brisk};
    Watchdog watchdog;
    std::atomic<int> holds = 0;
    {
        std::vector<std::jthread> threads;
        for (int thread = 0; thread < 8; ++thread)
            threads.emplace_back([&, thread] {
                auto options = watched_by(watchdog, 1s);
                std::atomic<int> losses = 0;
                options.on_lost = [&](const Result&) { ++losses; };
                for (int i = 0; i < 6; ++i) {
                    auto lock = world.lock("resource " + std::to_string(thread), options);
                    if (!lock.acquire_for(5s)) continue;
                    const auto end = boot_clock().now() + 400ms;
                    while (boot_clock().now() < end && lock.valid()) std::this_thread::sleep_for(1ms);
                    if (i % 2 == 0) (void)lock.extend();
                    if (lock.release()) ++holds;
                }
            });
        world[2].kill();
        EXPECT_TRUE(wait_until([&] { return holds >= 8; }));
        world[2].restart_empty();
    }
    EXPECT_GE(holds, 40);
}

// ---- Its thread

std::vector<std::filesystem::path> tasks() {
    std::thread{[] {}}.join();  // with the first thread, a sanitizer begins one of its own
    std::vector<std::filesystem::path> result;
    for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task"})
        result.push_back(task.path());
    return result;
}

// C10, E. One for all locks on the same nodes, from its construction to its destruction; where locks on other
// nodes are held as well, one more, which goes on to others when those are not held any more.
TEST(Watchdog, HasOneThreadForEachNodes) {
    LiveWorld world{3, brisk};
    LiveWorld others{1, brisk};
    ASSERT_TRUE(world.warm_up() && others.warm_up());
    const auto before = tasks().size();
    {
        Watchdog watchdog;
        EXPECT_EQ(tasks().size(), before + 1);
        std::vector<Lock> locks;
        for (int i = 0; i < 50; ++i) {
            locks.push_back(world.lock("resource " + std::to_string(i), watched_by(watchdog, 600ms)));
            ASSERT_THAT(locks.back().acquire(), Succeeds());
        }
        const Monitor monitor{world[0]};
        EXPECT_TRUE(wait_until([&] { return extensions(monitor) >= 100; }));
        EXPECT_EQ(tasks().size(), before + 1);

        auto other = others.lock(watched_by(watchdog));
        ASSERT_THAT(other.acquire(), Succeeds());
        EXPECT_EQ(tasks().size(), before + 2);
        EXPECT_THAT(other.release(), Succeeds());
        for (int i = 0; i < 20; ++i) {  // the turn of the one before may not be over yet
            RedisNodes more{others.uris(), brisk};
            Lock another{more, the_resource, watched_by(watchdog)};
            ASSERT_THAT(another.acquire(), Succeeds());
        }
        EXPECT_LE(tasks().size(), before + 4);
    }
    EXPECT_TRUE(wait_until([&] { return tasks().size() == before; }));
}

// The signal handlers of the program do not run in a thread of ours.
TEST(Watchdog, BlocksAllSignalsInItsThread) {
    const auto before = tasks();
    Watchdog watchdog;
    auto after = tasks();
    std::erase_if(after, [&](const auto& task) { return std::ranges::find(before, task) != before.end(); });
    ASSERT_THAT(after, SizeIs(1));
    std::ifstream status{after[0] / "status"};
    std::string line;
    while (std::getline(status, line) && !line.starts_with("SigBlk:")) {
    }
    const auto blocked = std::stoull(line.substr(line.find('\t')), nullptr, 16);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1, SIGALRM, SIGPIPE})
        EXPECT_TRUE((blocked >> (signal - 1) & 1U) != 0) << signal;
}

}  // namespace
}  // namespace redlock::test
