// The flows of src/flow: an attempt that is destroyed while it waits for a round, and the limits of stack and
// memory.
#include "world.hpp"

#include <redlock/algorithm/algorithm.hpp>

#include "flow/attempt.hpp"
#include "flow/flow.hpp"

#include <pthread.h>

#include <array>
#include <cstddef>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <vector>

namespace redlock::test::flow_test {
namespace {

/// One attempt with fencing, which a test drives round by round.
class AttemptInSteps {
public:
    explicit AttemptInSteps(World& world, bool fair = false)
        : world_(world),
          request_{.resources = resources_, .ttl = 10s, .drift_factor = 0.01, .fencing = true, .fair = fair} {
        operation_.start(*flow_);
    }

    bool ended() const { return operation_.ended(); }
    const flow::Awaited& awaited() const { return operation_.awaited(); }
    void make_round() {
        const auto& round = std::get<flow::AwaitedRound>(operation_.awaited());
        world_.ask({round.request, 1}, *round.limits, {round.tally, 1});
    }
    void resume(std::exception_ptr failure = {}) { operation_.resume(std::move(failure)); }
    std::error_code error() const { return flow_->result(); }

    /// Destroys the flow as a cancelled operation of an event loop does, and sends what is left to send.
    void destroy() {
        flow_.reset();
        if (const auto release = attempt_.unreleased()) (void)world_.ask(*release);
    }

    void request_stop() { stop_.request_stop(); }

    flow::Attempt& attempt() { return attempt_; }
    const flow::FrameMemory& frames() const { return operation_.frames(); }

private:
    World& world_;
    const std::vector<std::string> resources_{the_resource};
    const algorithm::LeaseRequest request_;
    std::stop_source stop_{};
    const RoundLimits limits_{.stop = stop_.get_token()};
    flow::BlockingOperation operation_{world_};
    algorithm::RoundResult round_{.tally = world_.blank_tally(), .valid_until = {}, .ended = {}};
    flow::Attempt attempt_{operation_, world_.clock, world_.entropy, request_, limits_, nullptr, round_};
    std::optional<flow::Flow> flow_{attempt_.run()};
};

/// Makes this many rounds, and destroys the flow before or after the next one. Returns false if the flow
/// ended before.
bool destroy_after(int rounds, bool next_is_made, World& world) {
    AttemptInSteps steps{world};
    for (int made = 0; made < rounds && !steps.ended(); ++made) {
        steps.make_round();
        steps.resume();
    }
    if (steps.ended()) return false;
    if (next_is_made) steps.make_round();
    steps.destroy();
    return true;
}

TEST(AttemptFlow, LeavesNoKeyIfItIsDestroyedWhileItWaits) {
    for (const bool next_is_made : {false, true}) {
        for (int rounds = 0;; ++rounds) {
            World world;
            world.count_on(1,
                           world.seed() + 5);  // so that a second round has to raise the counts of the others
            world.occupy(1s, 0);
            if (!destroy_after(rounds, next_is_made, world)) {
                EXPECT_EQ(rounds, 2) << "the SET and one raise of the counts";
                break;
            }
            EXPECT_EQ(world.held_by(""), 4U) << "after " << rounds << " rounds";
        }
    }
}

TEST(AttemptFlow, LeavesNoKeyIfItIsDestroyedInItsOwnRelease) {
    for (const bool next_is_made : {false, true}) {
        World world;
        world.occupy(1s, 0, 1, 2);
        ASSERT_TRUE(destroy_after(1, next_is_made, world));
        EXPECT_EQ(world.held_by(""), 2U);
    }
}

// Otherwise a node whose key the first release has deleted would wake a second waiter.
TEST(AttemptFlow, SaysThatItsReleaseIsSentAgain) {
    for (const bool throws : {false, true}) {
        World world;
        world.cut(0, 1, 2);
        AttemptInSteps steps{world, true};
        steps.make_round();
        steps.request_stop();
        steps.resume();
        const auto& release = *std::get<flow::AwaitedRound>(steps.awaited()).request;
        ASSERT_TRUE(release.command.queue) << "it wakes the next waiter, because the attempt was cancelled";
        EXPECT_FALSE(release.command.queue->only_passes_on);
        steps.make_round();
        if (throws) steps.resume(std::make_exception_ptr(std::bad_alloc{}));
        const auto again = steps.attempt().unreleased();
        ASSERT_TRUE(again && again->command.queue);
        EXPECT_TRUE(again->command.queue->only_passes_on);
    }
}

TEST(AttemptFlow, ReleasesALeaseThatNobodyHasTaken) {
    World world;
    AttemptInSteps steps{world, true};
    while (!steps.ended()) {
        steps.make_round();
        steps.resume();
    }
    EXPECT_FALSE(steps.error());
    EXPECT_EQ(world.held_by(steps.attempt().lease().owner.view()), 5U);
    steps.destroy();
    EXPECT_TRUE(world.clean());
    EXPECT_TRUE(steps.attempt().unreleased()->command.queue->only_passes_on);
}

TEST(AttemptFlow, NeedsNoReleaseAfterItsOwn) {
    World world;
    world.occupy(1s, 0, 1, 2);
    AttemptInSteps steps{world};
    while (!steps.ended()) {
        steps.make_round();
        steps.resume();
    }
    EXPECT_EQ(steps.error(), Errc::held_by_other);
    EXPECT_FALSE(steps.attempt().unreleased());
}

TEST(AttemptFlow, NeedsNoReleaseIfNoByteWasSent) {
    World world;
    world.cut_all();
    AttemptInSteps steps{world};
    steps.make_round();
    steps.resume();
    EXPECT_TRUE(steps.ended());
    EXPECT_EQ(steps.error(), Errc::no_quorum);
    EXPECT_FALSE(steps.attempt().unreleased());
}

TEST(AttemptFlow, LeavesItsReleaseAfterARoundThatThrows) {
    World world;
    AttemptInSteps steps{world};
    steps.make_round();
    steps.resume(std::make_exception_ptr(std::bad_alloc{}));
    EXPECT_TRUE(steps.ended());
    EXPECT_THROW((void)steps.error(), std::bad_alloc);
    EXPECT_FALSE(world.clean());
    steps.destroy();
    EXPECT_TRUE(world.clean());
}

// Its round is under way, or has thrown.
TEST(AttemptFlow, WakesTheNextWaiterWithItsReleaseIfItIsFair) {
    for (const bool fair : {false, true}) {
        World world;
        AttemptInSteps steps{world, fair};
        for (const bool throws : {false, true}) {
            if (throws) steps.resume(std::make_exception_ptr(std::bad_alloc{}));
            ASSERT_EQ(steps.ended(), throws);
            const auto release = steps.attempt().unreleased();
            ASSERT_TRUE(release);
            EXPECT_EQ(release->command.queue != nullptr, fair);
        }
    }
}

#if !defined(__SANITIZE_ADDRESS__)  // which makes frames larger
TEST(AttemptFlow, HasItsFramesInTheOperation) {
    World world;
    world.count_on(1, world.seed() + 5);
    AttemptInSteps steps{world};
    steps.make_round();
    steps.resume();
    EXPECT_FALSE(steps.ended());
    EXPECT_EQ(steps.frames().overflows(), 0U);
}
#endif

/// Awaits a flow many times. Each of these flows waits for a round, or ends at once.
class Loop final : public flow::Steps {
public:
    Loop(flow::Operation& operation, int times) : Steps(operation), times_(times) {}

    flow::Flow run() {
        for (int i = 0; i < times_; ++i) {
            const auto waiting = wait_for_round();
            const auto error = co_await waiting;
            if (error) co_return error;
            const auto ending = end_at_once();
            (void)co_await ending;
        }
        co_return std::error_code{};
    }

private:
    flow::Flow wait_for_round() {
        co_await ask(request_, limits_, votes_);
        co_return std::error_code{};
    }
    flow::Flow end_at_once() { co_return std::error_code{}; }

    int times_;
    const Request request_{};
    const RoundLimits limits_{};
    Tally votes_{};
};

/// Runs a Loop to its end, and returns the number of its rounds.
void* run_loop(void* rounds) {
    World world;
    flow::BlockingOperation operation{world};
    Loop loop{operation, 1'000'000};
    const auto flow = loop.run();
    auto& count = *static_cast<int*>(rounds);
    for (operation.start(flow); !operation.ended(); operation.resume()) ++count;
    return nullptr;
}

TEST(Flow, NeedsNoMoreStackForAMillionFlowsInALoop) {
    pthread_attr_t attributes;
    ASSERT_EQ(pthread_attr_init(&attributes), 0);
    ASSERT_EQ(pthread_attr_setstacksize(&attributes, std::size_t{256} * 1024), 0);
    int rounds = 0;
    pthread_t thread{};
    ASSERT_EQ(pthread_create(&thread, &attributes, run_loop, &rounds), 0);
    EXPECT_EQ(pthread_join(thread, nullptr), 0);
    EXPECT_EQ(pthread_attr_destroy(&attributes), 0);
    EXPECT_EQ(rounds, 1'000'000);
}

/// Has a frame that does not fit into the memory of an operation.
class Large final : public flow::Steps {
public:
    explicit Large(flow::Operation& operation) : Steps(operation) {}
    flow::Flow run() {
        std::array<char, 10'000> text{};
        text.fill('x');
        co_await ask(request_, limits_, votes_);
        co_return text.back() == 'x' ? std::error_code{} : make_error_code(Errc::lost);
    }

private:
    const Request request_{};
    const RoundLimits limits_{};
    Tally votes_{};
};

TEST(Flow, HasAFrameOnTheHeapIfItDoesNotFit) {
    World world;
    flow::BlockingOperation operation{world};
    Large large{operation};
    const auto flow = large.run();
    operation.start(flow);
    EXPECT_EQ(operation.frames().overflows(), 1U);
    operation.resume();
    EXPECT_FALSE(flow.result());
}

}  // namespace
}  // namespace redlock::test::flow_test
