// The cost of holding many locks, and how late a loss is reported.
#include "report.hpp"
#include "scenarios.hpp"
#include "statistics.hpp"
#include "support/cluster.hpp"

#include <redlock/redlock.hpp>

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace redlock::bench {
namespace {

using namespace std::chrono_literals;

std::chrono::nanoseconds cpu_time(clockid_t of) {
    timespec time{};
    ::clock_gettime(of, &time);
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

/// Returns the CPU time of all threads except this one, that is, of the watchdog.
std::chrono::nanoseconds others_cpu_time() {
    return cpu_time(CLOCK_PROCESS_CPUTIME_ID) - cpu_time(CLOCK_THREAD_CPUTIME_ID);
}

std::vector<Lock> acquired(std::size_t count, Nodes& nodes,
                           const std::function<LockOptions(std::size_t)>& options) {
    std::vector<Lock> locks;
    for (std::size_t i = 0; i < count; ++i) {
        locks.emplace_back(nodes, "resource " + std::to_string(i), options(i));
        if (const auto result = locks.back().acquire(); !result)
            throw std::runtime_error("lock " + std::to_string(i) + ": " + result.message());
    }
    return locks;
}

/// Counts the extensions at hardly any cost.
class Extensions final : public Observer {
public:
    void round_ended(const Command& command, const Tally& /*tally*/,
                     std::chrono::nanoseconds /*took*/) noexcept override {
        if (command.verb == Verb::compare_and_expire) ++count;
    }
    std::atomic<std::size_t> count = 0;
};

void hold_many(std::size_t count, std::chrono::seconds span, Report& report) {
    constexpr auto ttl = 30s;
    support::Cluster servers{5};
    Extensions extensions;
    RedisNodes nodes{servers.uris(), {.observer = &extensions}};
    Watchdog watchdog;
    auto locks =
        acquired(count, nodes, [&](std::size_t) { return LockOptions{.ttl = ttl, .watchdog = &watchdog}; });
    std::this_thread::sleep_for(ttl / 2);  // until the first locks have been extended

    const auto start = boot_clock().now();
    const auto cpu_before = others_cpu_time();
    const auto extended_before = extensions.count.load();
    auto least = Clock::duration::max();
    while (boot_clock().now() < start + span) {
        for (const auto& lock : locks) least = std::min(least, lock.remaining());
        std::this_thread::sleep_for(100ms);
    }
    const std::chrono::duration<double> took = boot_clock().now() - start;
    const std::chrono::duration<double> cpu = others_cpu_time() - cpu_before;
    const auto extended = static_cast<double>(extensions.count - extended_before);
    const std::chrono::duration<double> oldest = ttl - drift(ttl, 0.01) - least;

    const auto busy = 100 * cpu.count() / took.count();
    const auto latest = 100 * oldest.count() / std::chrono::duration<double>{ttl}.count();
    const auto holding = std::to_string(count) + " locks of 30 s on 5 nodes";
    report.add({"watchdog",
                holding,
                {"core_%", "ext/s", "us_cpu/ext", "latest_%_of_ttl"},
                {{"redlock", {busy, extended / took.count(), 1e6 * cpu.count() / extended, latest}}}});
    report.add(Figure{holding + ": % of a core", busy, Figure::Bound::at_most, 15});
    report.add(Figure{holding + ": latest extension, % of the ttl", latest, Figure::Bound::at_most, 50});
}

void lose_many(std::size_t count, Report& report) {
    support::Cluster servers{5};
    RedisNodes nodes{servers.uris(), {.node_timeout = 1s}};
    std::vector<Clock::time_point> told(count, Clock::never());
    std::atomic<std::size_t> losses = 0;
    Watchdog watchdog;
    const auto options = [&](std::size_t i) {
        return LockOptions{.ttl = 3s, .watchdog = &watchdog, .on_lost = [&, i](const Result&) {
                               told[i] = boot_clock().now();
                               ++losses;
                           }};
    };
    auto locks = acquired(count, nodes, options);
    std::this_thread::sleep_for(1s);
    for (const std::size_t node : {0U, 2U, 4U}) servers[node].freeze();
    std::this_thread::sleep_for(100ms);  // earlier replies have been processed by then
    std::vector<Clock::time_point> ends;
    for (const auto& lock : locks) ends.push_back(boot_clock().now() + lock.remaining());
    while (losses < count) std::this_thread::sleep_for(1ms);
    for (const std::size_t node : {0U, 2U, 4U}) servers[node].thaw();

    std::vector<double> late;
    for (std::size_t i = 0; i < count; ++i)
        late.push_back(std::chrono::duration<double, std::milli>(told[i] - ends[i]).count());
    report.add({"watchdog",
                std::to_string(count) + " losses, 3 of 5 nodes frozen: notice after the end of validity",
                {"p50_ms", "p99_ms", "max_ms"},
                {{"redlock", {percentile(late, 0.5), percentile(late, 0.99), std::ranges::max(late)}}}});
    report.add(Figure{"notice of a loss: p99, ms after the validity", percentile(late, 0.99),
                      Figure::Bound::at_most, 0});
}

}  // namespace

void watching(const Effort& effort, Report& report) {
    const bool quick = effort.repetitions == 1;
    hold_many(quick ? 1'000 : 10'000, quick ? 15s : 60s, report);
    lose_many(quick ? 50 : 500, report);
}

}  // namespace redlock::bench
