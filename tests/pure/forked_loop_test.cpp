// Rule D10 in an event loop: a child of fork() that goes on with its copy of the loop does nothing for the
// operations of its parent. The servers and the network are in memory, so the child has copies of them, too.
#include "live/forked_child.hpp"
#include "memory_loop_world.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::test::forked_loop_test {
namespace {

constexpr auto nothing = "0 ended, 0 transfers";

struct ForkedLoop : testing::Test, MemoryLoopWorld {
    ForkedLoop() : MemoryLoopWorld{{.node_timeout = 50ms, .round = Round::all_at_once}} {}

    /// The child reports how many operations have ended, and how often it has written to the servers or read
    /// from them since `then`.
    void tell(const Report& report, std::size_t then) {
        report(std::to_string(ended) + " ended, " + std::to_string(transfers() - then) + " transfers");
    }
    void expect_that_a_child_does_nothing_for(Clock::duration span) {
        const auto then = transfers();
        const ForkedChild child{[&](const Report& report) {
            run_for(span);
            tell(report, then);
        }};
        EXPECT_EQ(child.receive(), nothing);
    }
    Completion end() {
        return [this](const Result&) { ++ended; };
    }
    std::size_t transfers() {
        std::size_t count = 0;
        for (std::size_t node = 0; node < size; ++node)
            count += network.server(node).writes + network.server(node).reads;
        return count;
    }
    bool executed_everywhere(const std::string& verb) {
        for (std::size_t node = 0; node < size; ++node)
            if (all(node, verb).empty()) return false;
        return true;
    }

    std::optional<AsyncLock> lock{std::in_place, *of_loop, "r", LockOptions{.ttl = 1min}};
    std::size_t ended = 0;
};

TEST_F(ForkedLoop, ReadsNoReplyOfTheParent) {
    lock->try_acquire(end());
    while (!executed_everywhere("SET")) loop.run_once(Clock::never());
    ASSERT_EQ(ended, 0U) << "the replies are on their way";
    expect_that_a_child_does_nothing_for(1s);
    run_for(1s);
    EXPECT_EQ(ended, 1U);
}

TEST_F(ForkedLoop, HandlesNoTimerOfTheParent) {
    for (std::size_t node = 0; node < size; ++node) hold(node, "other");
    lock->acquire_for(1h, end());
    run_for(10s);
    ASSERT_EQ(ended, 0U) << "it pauses between its attempts";
    expect_that_a_child_does_nothing_for(1min);
}

TEST_F(ForkedLoop, NeitherItsShutdownNorItsDestructionTouchesTheLoopOrTheServers) {
    AsyncLock other{*of_loop, "other", {.ttl = 1min}};
    other.try_acquire(end());
    run_for(1s);
    ASSERT_EQ(std::exchange(ended, 0), 1U);
    for (std::size_t node = 0; node < size; ++node) network.server(node).paused = true;
    lock->try_acquire(end());
    (void)loop.run_once(now() + 10ms);
    ASSERT_TRUE(loop.watches_anything());
    const auto then = transfers();
    const ForkedChild child{[&](const Report& report) {
        of_loop->shut_down();
        tell(report, then);
        report(loop.watches_anything() ? "watches" : "has forgotten");
        lock.reset();
        of_loop.reset();
        tell(report, then);
        report(loop.watches_anything() ? "watches" : "has forgotten");
    }};
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(child.receive(), nothing);
        EXPECT_EQ(child.receive(), "watches");
    }
}

// Nothing but the AsyncNodes refers to the connection, which waits for the reply to a release.
TEST_F(ForkedLoop, ItsDestructionWithoutLocksTouchesNeitherTheLoopNorTheServers) {
    lock->try_acquire(end());
    run_for(1s);
    for (std::size_t node = 0; node < size; ++node) network.server(node).paused = true;
    lock.reset();
    (void)loop.run_once(now() + 10ms);
    ended = 0;
    const auto then = transfers();
    const ForkedChild child{[&](const Report& report) {
        of_loop.reset();
        tell(report, then);
        report(loop.watches_anything() ? "watches" : "has forgotten");
    }};
    EXPECT_EQ(child.receive(), nothing);
    EXPECT_EQ(child.receive(), "watches");
}

// The child returns from the completion into the turn of the loop that its parent has begun. In this turn,
// other operations would go on, and all commands of the turn would be written.
TEST_F(ForkedLoop, DoesNothingAfterACompletionThatHasForked) {
    const ForkedChild parent{[&](const Report& report) {
        std::optional<std::size_t> then;  // in its child
        lock.reset();
        of_loop.emplace(*nodes, loop, network.clock(), entropy);
        lock.emplace(*of_loop, "r", LockOptions{.ttl = 1min});
        lock->try_acquire(end());
        run_for(1s);
        std::vector<AsyncLock> others;
        for (const auto* const name : {"a", "b", "c"}) others.emplace_back(*of_loop, name);
        lock->release([&](const Result&) {
            others[1].try_acquire(end());
            if (::fork() == 0) then = transfers();
            ended = 0;
        });
        others[0].release(end());  // it is not held, so this ends in the same turn
        others[2].try_acquire(end());
        run_for(1s);
        if (then)
            tell(report, *then);
        else
            report(ended > 0 ? "others ended in the parent" : "nothing ended");
    }};
    EXPECT_THAT((std::vector{parent.receive(), parent.receive()}),
                testing::UnorderedElementsAre(nothing, "others ended in the parent"));
}

}  // namespace
}  // namespace redlock::test::forked_loop_test
