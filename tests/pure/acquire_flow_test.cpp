// The flow of an acquire that is destroyed or fails while it waits: whatever it waited for, the commands that
// are left to do remove its keys, its ticket and its reservation.
#include "waiting_world.hpp"
#include "world.hpp"

#include <redlock/algorithm/acquire.hpp>

#include "flow/acquire.hpp"
#include "flow/flow.hpp"
#include "flow/lock_operations.hpp"
#include "lock/lease_state.hpp"

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace redlock::test::acquire_flow_test {
namespace {

using testing::AnyOf;

/// One acquire, which a test runs step by step. A step ends when the flow waits for something.
class AcquireInSteps {
public:
    AcquireInSteps(Nodes& nodes, Clock& clock, Entropy& entropy, const std::string& resource, bool fair)
        : nodes_(nodes),
          resources_{resource},
          request_{.resources = resources_, .ttl = 10s, .drift_factor = 0.01, .fair = fair},
          operation_{nodes},
          acquire_{operation_, clock, entropy, request_, retry_, limits_} {
        operation_.start(flow_.emplace(acquire_.run()));
    }

    /// Makes this many steps. If `one_more`, also does what the flow then waits for, but does not continue
    /// it. Returns false if the flow has ended before.
    bool make(int steps, bool one_more) {
        for (int made = 0; made < steps && !operation_.ended(); ++made)
            operation_.resume(flow::do_awaited(operation_));
        if (operation_.ended()) return false;
        if (one_more) (void)flow::do_awaited(operation_);
        return true;
    }

    /// Continues the flow with an exception, which ends it.
    void fail() { operation_.resume(std::make_exception_ptr(std::bad_alloc{})); }

    /// Tries to send what is left to send, but there is no memory.
    void fail_to_send() try {
        acquire_.for_each_unreleased([](const Request&) { throw std::bad_alloc{}; });
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
    }

    /// Destroys the flow as a cancelled or failed operation does, and sends what is left to send.
    void destroy() {
        flow_.reset();
        acquire_.for_each_unreleased(
            [&](const Request& request) { (void)nodes_.ask(request, {.awaits_answers = false}); });
    }

    std::error_code error() const { return flow_->result(); }

private:
    Nodes& nodes_;
    const std::vector<std::string> resources_;
    const algorithm::LeaseRequest request_;
    const Retry retry_{.attempts = 5, .delay = 100ms};
    const algorithm::AcquireLimits limits_{.attempts = 5};
    flow::BlockingOperation operation_;
    flow::Acquire acquire_;
    std::optional<flow::Flow> flow_{};
};

/// Bob holds the resource for a while. Alice has a home node, listens and waits.
struct Contended : Waiting {
    void TestBody() override {}
    Contended() { bob_holds_for(300ms); }
    ~Contended() override { bobs.reset(); }
    AcquireInSteps acquire() { return {alice, network.clock(), entropy, "r", true}; }
};

TEST(AcquireFlow, LeavesNothingIfItIsDestroyedOrFailsWhileItWaits) {
    for (const bool fails : {false, true})
        for (const bool one_more : {false, true}) {
            int steps = 0;
            for (;; ++steps) {
                Contended world;
                auto acquire = world.acquire();
                if (!acquire.make(steps, one_more)) {
                    EXPECT_FALSE(acquire.error());
                    break;
                }
                SCOPED_TRACE((fails ? "fails after " : "destroyed after ") + std::to_string(steps));
                if (fails) {
                    acquire.fail();
                    EXPECT_THROW((void)acquire.error(), std::bad_alloc);
                }
                acquire.destroy();
                world.network.pass(20ms);
                for (std::size_t node = 0; node < world.size; ++node) {
                    EXPECT_THAT(world.queued(node), IsEmpty()) << "node " << node;
                    EXPECT_THAT(world.holder(node), AnyOf("(nil)", std::string{world.bobs->owner()}))
                        << "node " << node;
                }
            }
            EXPECT_GE(steps, 5)
                << "an attempt, its release, a subscription, a question, a message, an attempt";
        }
}

/// The home node has a stray key, and the other nodes become free. So Alice gets the lock without being
/// woken, and then takes her ticket out of the queue.
struct StrayKey : Waiting {
    void TestBody() override {}
    StrayKey() {
        others_hold();
        after(10ms, [this] {
            for (const std::size_t node : {1U, 2U}) ask(node, {"DEL", "r"});
        });
    }
    bool is_alices(std::size_t node) {
        const auto value = holder(node);
        return value != "(nil)" && value != "other";
    }
};

TEST(AcquireFlow, LeavesNoTicketAndNoKeyIfItIsDestroyedBeforeItsEnd) {
    bool was_in_queue = false;
    bool was_acquired = false;
    for (const bool one_more : {false, true})
        for (int steps = 0;; ++steps) {
            StrayKey world;
            AcquireInSteps acquire{world.alice, world.network.clock(), world.entropy, "r", true};
            if (!acquire.make(steps, one_more)) break;
            was_in_queue = was_in_queue || !world.queued(0).empty();
            was_acquired = was_acquired || world.is_alices(1);
            acquire.destroy();
            world.network.pass(20ms);
            EXPECT_THAT(world.queued(0), IsEmpty()) << "after " << steps << " steps";
            for (const std::size_t node : {1U, 2U})
                EXPECT_FALSE(world.is_alices(node)) << "after " << steps << " steps, node " << node;
        }
    EXPECT_TRUE(was_in_queue);
    EXPECT_TRUE(was_acquired);
}

// Neither is there memory for the release at first.
TEST(AcquireFlow, LeavesNoKeyAfterSeveralExceptions) {
    for (int steps = 0;; ++steps) {
        StrayKey world;
        AcquireInSteps acquire{world.alice, world.network.clock(), world.entropy, "r", true};
        if (!acquire.make(steps, true)) break;
        acquire.fail();
        acquire.fail_to_send();
        acquire.destroy();
        world.network.pass(20ms);
        for (const std::size_t node : {1U, 2U})
            EXPECT_FALSE(world.is_alices(node)) << "after " << steps << " steps, node " << node;
    }
}

#if !defined(__SANITIZE_ADDRESS__)  // which makes frames larger
// The first slot is held on all nodes, and the second one has no quorum at first.
TEST(AcquireFlow, HasItsFramesInTheOperationIfItAcquiresASlot) {
    World world;
    const std::vector<std::string> slots{"{jobs}:slot:0", "{jobs}:slot:1"};
    for (const auto& slot : slots)
        for (std::size_t node = 0; node < (slot == slots[0] ? 5U : 2U); ++node)
            world.command(node, {"SET", slot, "x", "PX", "250"});
    world.silence(4);
    const algorithm::LeaseRequest request{.resources = slots, .ttl = 10s, .drift_factor = 0.01};
    const Retry retry{.attempts = 5, .delay = 100ms};
    const algorithm::AcquireLimits limits{.attempts = 5};
    flow::BlockingOperation operation{world};
    const auto one = detail::Acquires::one;
    flow::Acquire acquire{operation, world.clock, world.entropy, request, retry, limits, one};
    EXPECT_FALSE(flow::run_blocking(operation, acquire.run()));
    EXPECT_EQ(operation.frames().overflows(), 0U);
}

TEST(LockOperations, HaveTheirFramesInTheOperation) {
    Contended world;
    auto& clock = world.network.clock();
    const auto state =
        std::make_shared<detail::LeaseState>(detail::LockTerms{world.alice,
                                                               clock,
                                                               {"r"},
                                                               {.ttl = 10s, .fencing = true, .fair = true},
                                                               detail::Acquires::all,
                                                               world.entropy});
    const algorithm::AcquireLimits limits{.attempts = 5, .queue_timeout = 10s};
    flow::BlockingOperation acquiring{world.alice};
    flow::AcquireLock acquire{acquiring, state, limits, 0s};
    EXPECT_FALSE(flow::run_blocking(acquiring, acquire.run()));
    EXPECT_EQ(acquiring.frames().overflows(), 0U);
    flow::BlockingOperation extending{world.alice};
    flow::ExtendLock extend{extending, state, 10s};
    EXPECT_FALSE(flow::run_blocking(extending, extend.run()));
    EXPECT_EQ(extending.frames().overflows(), 0U);
    flow::BlockingOperation releasing{world.alice};
    flow::ReleaseLock release{releasing, state, state->number(), flow::Replies::awaited};
    EXPECT_FALSE(flow::run_blocking(releasing, release.run()));
    EXPECT_EQ(releasing.frames().overflows(), 0U);
}
#endif

// The release of the earlier acquisition was not confirmed, so the next acquire sends it again.
TEST(LockOperations, SendTheEarlierReleaseIfTheAcquireIsDestroyedBefore) {
    for (const bool sent : {false, true}) {
        World world;
        const auto state = std::make_shared<detail::LeaseState>(detail::LockTerms{
            world, world.clock, {the_resource}, {.ttl = 10s}, detail::Acquires::all, world.entropy});
        const algorithm::AcquireLimits limits{.attempts = 1};
        flow::BlockingOperation first{world};
        flow::AcquireLock acquire{first, state, limits, 0s};
        ASSERT_FALSE(flow::run_blocking(first, acquire.run()));
        world.cut_all();
        flow::BlockingOperation releasing{world};
        flow::ReleaseLock release{releasing, state, state->number(), flow::Replies::awaited};
        EXPECT_EQ(flow::run_blocking(releasing, release.run()), Errc::no_quorum);
        world.heal_all();
        EXPECT_FALSE(world.clean());

        flow::BlockingOperation again{world};
        flow::AcquireLock next{again, state, limits, 0s};
        std::optional<flow::Flow> flow;
        again.start(flow.emplace(next.run()));
        ASSERT_FALSE(again.ended()) << "it waits until the release can be sent";
        if (sent) (void)flow::do_awaited(again);
        flow.reset();
        next.send_unreleased();
        EXPECT_TRUE(world.clean()) << (sent ? "sent" : "not sent");
    }
}

}  // namespace
}  // namespace redlock::test::acquire_flow_test
