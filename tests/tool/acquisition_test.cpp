// Acquiring without waiting for another holder.
#include "tool/run/acquisition.hpp"

#include "support/answering_node.hpp"

#include <redlock/error.hpp>
#include <redlock/retry.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace redlock::tool::acquisition_test {
namespace {

using namespace std::chrono_literals;
using support::AnsweringNode;

/// Acquires a lock of nodes that answer each attempt in this way. Counts the attempts.
Result acquire_in_vain(std::vector<std::string> names, const std::function<void(Tally& tally)>& vote,
                       int& calls) {
    AnsweringNode nodes{[&](const Command& command, Tally& tally) {
                            if (command.verb != Verb::set_if_absent) return;
                            ++calls;
                            vote(tally);
                        },
                        std::move(names)};
    Lock lock{nodes, "job", {.ttl = 10s}};
    const Signals signals{SIGTERM};
    auto acquisition = acquire(nodes, lock, {.lock = {.retry = {.delay = 1ms}}, .nonblock = true}, signals);
    signals.restore();
    return std::move(acquisition.result);
}

TEST(AcquireWithoutWaiting, CountsTheAttemptsWhoseNodesFailed) {
    const auto fail = [](Tally& tally) { tally.mark_unknown(0, Errc::timed_out); };
    int calls = 0;
    const auto result = acquire_in_vain({"a"}, fail, calls);
    EXPECT_EQ(result.error(), Errc::no_quorum);
    EXPECT_EQ(calls, Retry{}.attempts);
    EXPECT_EQ(result.attempts(), Retry{}.attempts);
}

// A majority has voted, so the failed node changes nothing.
TEST(AcquireWithoutWaiting, TakesARefusalByAMajorityForAConflict) {
    const auto refuse = [](Tally& tally) {
        tally.refuse(0);
        tally.mark_unknown(1, Errc::timed_out);
        tally.refuse(2);
    };
    int calls = 0;
    EXPECT_EQ(acquire_in_vain({"a", "b", "c"}, refuse, calls).error(), Errc::held_by_other);
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
        return in_the_way(nodes, resources, {.resource = "job"}, Result{error});
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
