// How long runnable threads had to wait for a processor, because tests run beside others.
#pragma once

#include "support/cluster.hpp"

#include <redlock/clock.hpp>

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "os/scoped_signal_block.hpp"

namespace redlock::test {

/// A thread that only sleeps, and adds up by how much it overslept. A test of a duration subtracts this sum.
/// On an idle machine it is about zero.
class SchedulingDelayMonitor {
public:
    SchedulingDelayMonitor() {
        const ScopedSignalBlock block;  // signals go to the threads of the test
        thread_ = std::jthread{[this](const std::stop_token& stop) { measure(stop); }};
    }

    Clock::duration delay() const noexcept { return Clock::duration{overslept_.load()}; }

private:
    void measure(const std::stop_token& stop) {
        using namespace std::chrono_literals;
        constexpr Clock::duration interval = 1ms, usual = 3ms;
        for (auto before = boot_clock().now(); !stop.stop_requested();) {
            std::this_thread::sleep_for(interval);
            const auto now = boot_clock().now();
            if (now - before > usual) overslept_ += (now - before - interval).count();
            before = now;
        }
    }

    std::atomic<Clock::rep> overslept_{0};
    std::jthread thread_{};
};

/// Returns how long a thread, or the main thread of a process, was runnable without a processor, since its
/// start. Returns 0 if the kernel does not count that.
inline Clock::duration processor_wait(pid_t thread) {
    std::ifstream file{"/proc/" + std::to_string(thread) + "/schedstat"};
    Clock::rep run = 0, waited = 0;
    file >> run >> waited;
    return Clock::duration{waited};
}

/// Returns the sum over all servers that run.
inline Clock::duration processor_wait(support::Cluster& servers) {
    Clock::duration waited{};
    for (auto& server : servers) {
        if (!server.running()) continue;
        (void)server.command({"PING"});  // a wait is counted when it is over
        waited += processor_wait(server.pid());
    }
    return waited;
}

/// Repeats `action` until it returns true, but only if the servers or this process had to wait for a
/// processor for longer than `limit` meanwhile. A server that gets none for a whole node_timeout seems dead.
template <class Action>
void repeat_where_delayed(support::Cluster& servers, Clock::duration limit, Action action) {
    for (int repetition = 0; repetition < 10; ++repetition) {
        const SchedulingDelayMonitor monitor;
        const auto before = processor_wait(servers);
        if (action() || processor_wait(servers) - before + monitor.delay() < limit) return;
    }
}

/// Returns how long `action` took, less the scheduling delay.
template <class Action>
Clock::duration own_time(Action action) {
    const SchedulingDelayMonitor monitor;
    const auto start = boot_clock().now();
    action();
    return boot_clock().now() - start - monitor.delay();
}

}  // namespace redlock::test
