#include "workload.hpp"

#include <redlock/clock.hpp>
#include <redlock/lock.hpp>

#include <atomic>
#include <stop_token>
#include <thread>
#include <vector>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

/// The work of one thread.
class Worker {
public:
    Worker(Nodes& nodes, const Workload& workload, std::size_t number, std::atomic<std::uint64_t>& acquired)
        : lock_{nodes, workload.prefix + ":" + std::to_string(number), workload.lock}, acquired_{acquired} {}

    /// Acquires and releases until `stop` is requested. The first time is not counted, because it has to
    /// connect.
    void run(const std::stop_token& stop) {
        if (lock_.acquire(stop)) (void)lock_.release();
        while (!stop.stop_requested()) once(stop);
    }

    const Measurement& measurement() const noexcept { return measurement_; }

private:
    void once(const std::stop_token& stop) {
        const auto start = boot_clock().now();
        const auto acquired = lock_.acquire(stop);
        const auto middle = boot_clock().now();
        record("acquire", acquired);
        if (!acquired) return boot_clock().sleep_until(middle + 10ms, stop);  // it may have failed at once
        const auto released = lock_.release();
        const auto end = boot_clock().now();
        record("release", released);
        measurement_.acquire.record(middle - start);
        measurement_.release.record(end - middle);
        acquired_.fetch_add(1, std::memory_order_relaxed);
    }

    void record(const char* verb, const Result& result) {
        if (result.error() == Errc::cancelled) return;
        if (!result) ++measurement_.failures[{verb, result.error()}];
        for (const auto& node : result.nodes())
            if (detail::failed_to_vote(node))
                ++measurement_.node_causes[{std::string{node.name}, node.cause}];
    }

    Lock lock_;
    std::atomic<std::uint64_t>& acquired_;
    Measurement measurement_{};
};

}  // namespace

void Measurement::add(const Measurement& other) {
    acquire.add(other.acquire);
    release.add(other.release);
    for (const auto& [error, count] : other.failures) failures[error] += count;
    for (const auto& [cause, count] : other.node_causes) node_causes[cause] += count;
}

double Measurement::per_second() const {
    const auto seconds = std::chrono::duration<double>{took}.count();
    return seconds > 0 ? static_cast<double>(acquire.count()) / seconds : 0;
}

Measurement run(Nodes& nodes, const Workload& workload,
                const std::function<bool(std::uint64_t acquired)>& goes_on) {
    std::atomic<std::uint64_t> acquired{0};
    std::vector<Worker> workers;
    workers.reserve(workload.threads);
    for (std::size_t number = 0; number < workload.threads; ++number)
        workers.emplace_back(nodes, workload, number, acquired);
    const auto start = boot_clock().now();
    {
        std::vector<std::jthread> threads;
        threads.reserve(workers.size());
        for (auto& worker : workers)
            threads.emplace_back([&worker](const std::stop_token& stop) { worker.run(stop); });
        while (goes_on(acquired.load(std::memory_order_relaxed))) {
        }
        for (auto& thread : threads) thread.request_stop();
    }
    Measurement measurement;
    measurement.took = boot_clock().now() - start;
    for (const auto& worker : workers) measurement.add(worker.measurement());
    return measurement;
}

}  // namespace redlock::tool
