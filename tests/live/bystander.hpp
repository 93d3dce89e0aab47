// How long the machine kept us waiting: tests run beside others, on machines with more to do than cores.
#pragma once

#include <redlock/clock.hpp>

#include <signal.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace redlock::test {

/// A thread that does nothing but sleep, and notes by how much it overslept. A test whose rule is the time
/// takes that off what it measured: on an idle machine it is nothing.
class Bystander {
public:
    Bystander() {
        sigset_t all;
        sigset_t ours;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &ours);  // signals are for the threads of the test
        thread_ = std::jthread{[this](const std::stop_token& stop) { watch(stop); }};
        ::pthread_sigmask(SIG_SETMASK, &ours, nullptr);
    }

    Clock::duration kept_waiting() const noexcept { return Clock::duration{overslept_.load()}; }

private:
    void watch(const std::stop_token& stop) {
        using namespace std::chrono_literals;
        constexpr Clock::duration nap = 1ms, usual = 3ms;
        for (auto before = boot_clock().now(); !stop.stop_requested();) {
            std::this_thread::sleep_for(nap);
            const auto now = boot_clock().now();
            if (now - before > usual) overslept_ += (now - before - nap).count();
            before = now;
        }
    }

    std::atomic<Clock::rep> overslept_{0};
    std::jthread thread_{};
};

/// How long `action` took, less what the machine took of it.
template <class Action>
Clock::duration own_time(Action action) {
    const Bystander bystander;
    const auto start = boot_clock().now();
    action();
    return boot_clock().now() - start - bystander.kept_waiting();
}

}  // namespace redlock::test
