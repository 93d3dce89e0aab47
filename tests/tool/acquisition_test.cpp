// Acquiring without waiting for another holder.
#include "tool/run/acquisition.hpp"

#include "answering_node.hpp"

#include <redlock/error.hpp>
#include <redlock/retry.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace redlock::tool::acquisition_test {
namespace {

using namespace std::chrono_literals;

/// Acquires a lock of which each attempt has this result. Counts the attempts.
Result acquire_in_vain(Errc error, const Tally& votes, int& calls) {
    AnsweringNode nodes{[](const auto&, auto&) { throw std::logic_error{"the node was asked"}; }};
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

// The holder may have released the lock meanwhile, or the nodes may have failed.
TEST(InTheWay, IsTheStateOfTheLockAfterARefusal) {
    const std::vector<std::string> resources{"job"};
    const auto said = [&](const std::string& answer, Errc error) {
        AnsweringNode nodes{[&](const auto&, Tally& tally) {
            if (answer.empty()) return tally.mark_unknown(0, Errc::timed_out);
            tally.grant(0);
            tally[0].detail = answer;
        }};
        return in_the_way(nodes, resources, "job", {}, Result{error});
    };
    EXPECT_EQ(said("string 5000 0 0 0 2\nme", Errc::held_by_other),
              "; now held by \"me\" on 1 of 1 nodes, expires in 5.0 s, no owner of this library");
    EXPECT_EQ(said("none -2 0 0 0 0\n", Errc::held_by_other), "; now free");
    EXPECT_EQ(said("", Errc::held_by_other), "");
    EXPECT_EQ(said("none -2 0 0 0 0\n", Errc::no_quorum), "");
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
