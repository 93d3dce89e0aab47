// ExitGate: while a process exits, no thread uses a library that is being torn down.
#include "os/exit_gate.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace redlock {
namespace {

TEST(ExitGate, AdmitsThreadsUntilItIsClosed) {
    ExitGate gate;
    {
        const ExitGate::Pass one{gate}, another{gate};
        EXPECT_TRUE(one);
        EXPECT_TRUE(another);
    }
    gate.close();
    EXPECT_FALSE(ExitGate::Pass{gate});
    gate.close();
    EXPECT_FALSE(ExitGate::Pass{gate});
}

TEST(ExitGate, CloseWaitsForTheThreadsInside) {
    ExitGate gate;
    std::atomic<bool> entered{false}, left{false};
    std::thread inside{[&] {
        const ExitGate::Pass pass{gate};
        entered = true;
        while (ExitGate::Pass{gate}) std::this_thread::yield();
        left = true;
    }};
    while (!entered) std::this_thread::yield();
    gate.close();
    EXPECT_TRUE(left);
    inside.join();
}

}  // namespace
}  // namespace redlock
