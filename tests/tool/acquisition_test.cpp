// Acquiring without waiting for another holder.
#include "tool/run/acquisition.hpp"

#include <redlock/error.hpp>
#include <redlock/retry.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redlock::tool::acquisition_test {
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

/// Acquires a lock of which each attempt has this result. Counts the attempts.
Result acquire_in_vain(Errc error, const Tally& votes, int& calls) {
    NodesBesideALock nodes;
    const Acquirable lock{.try_acquire =
                              [&] {
                                  ++calls;
                                  return Result{error, Tally{votes}, 1, 0ns};
                              },
                          .acquire_for = [](auto, auto) { return Result{Errc::cancelled}; },
                          .resource = [] { return "job"; }};
    const Signals signals{SIGTERM};
    auto acquisition = acquire(nodes, lock, {.nonblock = true, .retry_delay = 1ms}, signals);
    signals.restore();
    return std::move(acquisition.result);
}

TEST(AcquireWithoutWaiting, CountsTheAttemptsWhoseNodesFailed) {
    Tally votes{std::make_shared<const std::vector<std::string>>(1, "a")};
    votes.mark_unknown(0, Errc::timed_out);
    int calls = 0;
    const auto result = acquire_in_vain(Errc::no_quorum, votes, calls);
    EXPECT_EQ(result.error(), Errc::no_quorum);
    EXPECT_EQ(calls, Retry{}.attempts);
    EXPECT_EQ(result.attempts(), Retry{}.attempts);
}

// A majority has voted, so the failed node changes nothing.
TEST(AcquireWithoutWaiting, TakesARefusalByAMajorityForAConflict) {
    Tally votes{std::make_shared<const std::vector<std::string>>(3, "a")};
    votes.refuse(0);
    votes.mark_unknown(1, Errc::timed_out);
    votes.refuse(2);
    int calls = 0;
    EXPECT_EQ(acquire_in_vain(Errc::held_by_other, votes, calls).error(), Errc::held_by_other);
    EXPECT_EQ(calls, 1);
}

// REDLOCK_RESOURCE is then the name of several locks.
TEST(ResourceOfCaller, IsNoSemaphore) {
    // NOLINTBEGIN(concurrency-mt-unsafe): one thread
    ::unsetenv("REDLOCK_RESOURCE");
    EXPECT_EQ(resource_of_caller({}), "");
    ::setenv("REDLOCK_RESOURCE", "job", 1);
    EXPECT_EQ(resource_of_caller({}), "job");
    EXPECT_EQ(resource_of_caller({.quiet = true}), "");
    ::setenv("REDLOCK_SLOT", "0", 1);
    EXPECT_EQ(resource_of_caller({}), "");
    ::unsetenv("REDLOCK_RESOURCE");
    ::unsetenv("REDLOCK_SLOT");
    // NOLINTEND(concurrency-mt-unsafe)
}

}  // namespace
}  // namespace redlock::tool::acquisition_test
