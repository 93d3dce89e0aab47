#include "workload.hpp"

#include <redlock/clock.hpp>

#include <thread>
#include <vector>

namespace redlock::tool {

using namespace std::chrono_literals;

double Measurement::per_second() const {
    const auto seconds = std::chrono::duration<double>{took}.count();
    return seconds > 0 ? static_cast<double>(acquire.count()) / seconds : 0;
}

Measurement Meter::run(Nodes& nodes, const Workload& workload,
                       const std::function<bool(std::uint64_t acquired)>& goes_on) {
    std::vector<Lock> locks;
    locks.reserve(workload.threads);
    for (std::size_t number = 0; number < workload.threads; ++number)
        locks.emplace_back(nodes, workload.prefix + ":" + std::to_string(number), workload.lock);
    const auto acquired = [this] {
        const std::lock_guard guard{mutex_};
        return measurement_.acquire.count();
    };
    const auto start = boot_clock().now();
    {
        std::vector<std::jthread> threads;
        threads.reserve(locks.size());
        for (auto& lock : locks)
            threads.emplace_back([&](const std::stop_token& stop) {
                // The first time is not counted, because it has to connect.
                if (lock.acquire(stop)) (void)lock.release();
                while (!stop.stop_requested()) use(lock, stop);
            });
        while (goes_on(acquired())) {
        }
        for (auto& thread : threads) thread.request_stop();
    }
    measurement_.took = boot_clock().now() - start;
    return measurement_;
}

void Meter::wrote(std::string_view /*node*/, std::size_t commands, std::chrono::nanoseconds waited) noexcept {
    const std::lock_guard guard{mutex_};
    measurement_.shared_commands += commands;
    measurement_.shared_writes.record(waited);
}

void Meter::use(Lock& lock, const std::stop_token& stop) {
    const auto start = boot_clock().now();
    const auto acquired = lock.acquire(stop);
    const auto middle = boot_clock().now();
    if (!acquired) {
        record("acquire", acquired);
        return boot_clock().sleep_until(middle + 10ms, stop);  // it may have failed at once
    }
    const auto released = lock.release();
    const auto end = boot_clock().now();
    record("acquire", acquired);  // not before, because it can wait for the other threads
    record("release", released);
    const std::lock_guard guard{mutex_};
    measurement_.acquire.record(middle - start);
    measurement_.release.record(end - middle);
}

void Meter::record(const char* verb, const Result& result) {
    if (result.error() == Errc::cancelled) return;
    const std::lock_guard guard{mutex_};
    if (!result) ++measurement_.failures[{verb, result.error()}];
    for (const auto& node : result.nodes())
        if (detail::failed_to_vote(node)) ++measurement_.node_causes[{std::string{node.name}, node.cause}];
}

}  // namespace redlock::tool
