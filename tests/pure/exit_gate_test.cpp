// ExitGate: while a process exits, no thread uses a library that is being torn down.
#include "live/forked_child.hpp"

#include "os/exit_gate.hpp"

#include <redlock/clock.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace redlock::exit_gate_test {
namespace {

using namespace std::chrono_literals;

TEST(ExitGate, AdmitsThreadsUntilItIsClosed) {
    ExitGate gate;
    {
        const ExitGate::Permit one{gate}, another{gate};
        EXPECT_TRUE(one);
        EXPECT_TRUE(another);
    }
    gate.close();
    EXPECT_FALSE(ExitGate::Permit{gate});
    gate.close();
    EXPECT_FALSE(ExitGate::Permit{gate});
}

TEST(ExitGate, CloseWaitsForTheThreadsInside) {
    ExitGate gate;
    std::atomic<bool> entered{false}, left{false};
    std::thread inside{[&] {
        const ExitGate::Permit permit{gate};
        entered = true;
        while (ExitGate::Permit{gate}) std::this_thread::yield();
        left = true;
    }};
    while (!entered) std::this_thread::yield();
    gate.close();
    EXPECT_TRUE(left);
    inside.join();
}

// A signal handler may have called exit() while its own thread was inside.
TEST(ExitGate, CloseWaitsForASecondAtMost) {
    ExitGate gate;
    const ExitGate::Permit inside{gate};
    const auto start = boot_clock().now();
    gate.close();
    EXPECT_LT(boot_clock().now() - start, 90s) << "far above a second, because the machine may be busy";
}

// D10. The threads of the parent do not exist in a child of fork(), and the exit of the parent is not that of
// the child.
TEST(ExitGate, IsOpenAndEmptyInAChildOfFork) {
    ExitGate gate;
    const auto outcome = [&] {
        test::ForkedChild child{[&](auto report) {
            const bool open{ExitGate::Permit{gate}};
            const auto start = boot_clock().now();
            gate.close();
            report(!open                             ? "closed"
                   : boot_clock().now() - start < 1s ? "open and empty"
                                                     : "awaits a thread of the parent");
        }};
        return child.receive();
    };
    {
        const ExitGate::Permit inside{gate};
        EXPECT_EQ(outcome(), "open and empty");
    }
    gate.close();
    EXPECT_EQ(outcome(), "open and empty");
}

}  // namespace
}  // namespace redlock::exit_gate_test
