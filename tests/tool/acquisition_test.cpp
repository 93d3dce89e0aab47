// Acquiring without waiting for another holder.
#include "tool/run/acquisition.hpp"

#include <redlock/error.hpp>
#include <redlock/retry.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

/// Nodes that must not be asked.
class NodesBesideALock final : public Nodes {
public:
    NodesBesideALock() : Nodes({"a"}, 50ms) {}
    using Nodes::ask;
    void ask(std::span<const Request>, const RoundLimits&, std::span<Tally>) override {
        throw std::logic_error{"the nodes were asked"};
    }
};

TEST(AcquireWithoutWaiting, CountsTheAttemptsWhoseNodesFailed) {
    NodesBesideALock nodes;
    int calls = 0;
    const Acquirable lock{.try_acquire =
                              [&] {
                                  ++calls;
                                  Tally votes{std::make_shared<const std::vector<std::string>>(1, "a")};
                                  votes.mark_unknown(0, Errc::timed_out);
                                  return Result{Errc::no_quorum, std::move(votes), 1, 0ns};
                              },
                          .acquire_for = [](auto, auto) { return Result{Errc::cancelled}; },
                          .resource = [] { return "job"; }};
    const Signals signals{SIGTERM};
    const auto acquisition = acquire(nodes, lock, {.nonblock = true, .retry_delay = 1ms}, signals);
    signals.restore();
    EXPECT_EQ(acquisition.result.error(), Errc::no_quorum);
    EXPECT_EQ(calls, Retry{}.attempts);
    EXPECT_EQ(acquisition.result.attempts(), Retry{}.attempts);
}

// A majority has voted, so the failed node changes nothing.
TEST(AcquireWithoutWaiting, TakesARefusalByAMajorityForAConflict) {
    NodesBesideALock nodes;
    int calls = 0;
    const Acquirable lock{.try_acquire =
                              [&] {
                                  ++calls;
                                  Tally votes{std::make_shared<const std::vector<std::string>>(3, "a")};
                                  votes.refuse(0);
                                  votes.mark_unknown(1, Errc::timed_out);
                                  votes.refuse(2);
                                  return Result{Errc::held_by_other, std::move(votes), 1, 0ns};
                              },
                          .acquire_for = [](auto, auto) { return Result{Errc::cancelled}; },
                          .resource = [] { return "job"; }};
    const Signals signals{SIGTERM};
    const auto acquisition = acquire(nodes, lock, {.nonblock = true, .retry_delay = 1ms}, signals);
    signals.restore();
    EXPECT_EQ(acquisition.result.error(), Errc::held_by_other);
    EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace redlock::tool
