#include "workload.hpp"

#include <redlock/clock.hpp>
#include <redlock/lock.hpp>

#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

/// The measurement that all threads share.
class SharedMeasurement {
public:
    /// Acquires and releases the lock until `stop` is requested. The first time is not counted, because it
    /// has to connect.
    void run(Lock& lock, const std::stop_token& stop) {
        if (lock.acquire(stop)) (void)lock.release();
        while (!stop.stop_requested()) once(lock, stop);
    }

    std::uint64_t acquired() const {
        const std::lock_guard guard{mutex_};
        return measurement_.acquire.count();
    }

    /// Requires that no thread measures any more.
    Measurement& result() noexcept { return measurement_; }

private:
    void once(Lock& lock, const std::stop_token& stop) {
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

    void record(const char* verb, const Result& result) {
        if (result.error() == Errc::cancelled) return;
        const std::lock_guard guard{mutex_};
        if (!result) ++measurement_.failures[{verb, result.error()}];
        for (const auto& node : result.nodes())
            if (detail::failed_to_vote(node))
                ++measurement_.node_causes[{std::string{node.name}, node.cause}];
    }

    mutable std::mutex mutex_{};
    Measurement measurement_{};
};

}  // namespace

double Measurement::per_second() const {
    const auto seconds = std::chrono::duration<double>{took}.count();
    return seconds > 0 ? static_cast<double>(acquire.count()) / seconds : 0;
}

Measurement run(Nodes& nodes, const Workload& workload,
                const std::function<bool(std::uint64_t acquired)>& goes_on) {
    std::vector<Lock> locks;
    locks.reserve(workload.threads);
    for (std::size_t number = 0; number < workload.threads; ++number)
        locks.emplace_back(nodes, workload.prefix + ":" + std::to_string(number), workload.lock);
    SharedMeasurement shared;
    const auto start = boot_clock().now();
    {
        std::vector<std::jthread> threads;
        threads.reserve(locks.size());
        for (auto& lock : locks)
            threads.emplace_back([&](const std::stop_token& stop) { shared.run(lock, stop); });
        while (goes_on(shared.acquired())) {
        }
        for (auto& thread : threads) thread.request_stop();
    }
    shared.result().took = boot_clock().now() - start;
    return shared.result();
}

}  // namespace redlock::tool
