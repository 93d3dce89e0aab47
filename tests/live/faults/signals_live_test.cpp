// Rules D2 and A9: node_timeout is measured by our own clock, however often a signal interrupts.
#include "fault_world.hpp"

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <thread>

namespace redlock::test::signals_live_test {
namespace {

/// Sends this thread a signal every few milliseconds, as long as the object lives.
class RepeatedSignals : detail::NotCopied {
public:
    explicit RepeatedSignals(milliseconds every) {
        struct sigaction ours {};
        ours.sa_handler = [](int) { ++received(); };  // without SA_RESTART: signals interrupt system calls
        ::sigaction(SIGUSR1, &ours, &before_);
        received() = 0;
        thread_ = std::jthread{[target = ::pthread_self(), every](const std::stop_token& stop) {
            for (; !stop.stop_requested(); std::this_thread::sleep_for(every))
                ::pthread_kill(target, SIGUSR1);
        }};
    }
    ~RepeatedSignals() {
        thread_ = {};
        ::sigaction(SIGUSR1, &before_, nullptr);
    }

    static int count() { return received(); }

private:
    static std::atomic<int>& received() {
        static std::atomic<int> instance;
        return instance;
    }

    struct sigaction before_ {};
    std::jthread thread_{};
};

class Signals : public InEachRound {};
INSTANTIATE_TEST_SUITE_P(EachRound, Signals, each_round(), by_round);

// D2. A signal interrupts poll() and does not restart the time limit: 400 ms remain 400 ms.
TEST_P(Signals, DoNotStretchTheNodeTimeout) {
    FaultWorld world{3, {.node_timeout = 400ms, .round = GetParam()}};
    auto lock = world.lock(no_retry());
    world.warm_up();
    for (const std::size_t node : {1U, 2U}) world.link(node).black_hole();
    const RepeatedSignals signals{10ms};
    // Sequentially, this takes two node_timeouts and that of the release. If a signal restarted the wait, it
    // would take ten seconds.
    const auto taken = time_taken([&] { EXPECT_THAT(lock.acquire(), FailsWith(Errc::no_quorum)); });
    EXPECT_THAT(taken, LastsAtLeast(400ms));
    EXPECT_THAT(taken, LastsAtMost(3s));
    EXPECT_GE(RepeatedSignals::count(), 10);
}

// D2. Signals do not make a replying node fail: connecting, writing and reading continue.
TEST_P(Signals, DoNotBreakAnything) {
    FaultWorld world{3, {.node_timeout = 10s, .round = GetParam()}};
    auto lock = world.lock(no_retry(60s));
    const RepeatedSignals signals{1ms};
    for (auto& link : world.links()) link.delay(3ms);
    for (int i = 0; i < 20; ++i) {
        EXPECT_THAT(lock.acquire(), Succeeds());
        EXPECT_THAT(lock.release(), Succeeds());
    }
    EXPECT_GE(RepeatedSignals::count(), 20);
}

}  // namespace
}  // namespace redlock::test::signals_live_test
