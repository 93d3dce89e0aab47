// How long calls wait, and what they keep open: with a hold between acquire and release, with a short
// deadline while other threads wait for frozen nodes, and after a node has recovered.
#include "scenarios.hpp"

#include "statistics.hpp"

#include "support/cluster.hpp"
#include "support/in_threads.hpp"
#include "support/process_state.hpp"

#include <redlock/redlock.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace redlock::bench {
namespace {

using namespace std::chrono_literals;
using Microseconds = std::chrono::duration<double, std::micro>;

template <class Action>
double time_of(Action action) {
    const auto start = std::chrono::steady_clock::now();
    action();
    return Microseconds{std::chrono::steady_clock::now() - start}.count();
}

Row row_of(std::string name, const std::vector<double>& times) {
    return {std::move(name), {percentile(times, 0.5), percentile(times, 0.99), std::ranges::max(times)}};
}

std::vector<std::string> columns() {
    return {"p50_us", "p99_us", "max_us"};
}

const char* name_of(Round round) {
    return round == Round::sequential ? "sequential" : "all at once";
}

/// The time of acquire + release, without the hold between them.
void hold(const Effort& effort, Report& report) {
    support::Cluster servers;
    Table table{.scenario = "waits", .setting = "acquire + release, one thread", .columns = columns()};
    for (const auto round : {Round::sequential, Round::all_at_once})
        for (const auto held : {0ms, 5ms}) {
            RedisNodes nodes{servers.uris(), {.round = round}};
            Lock lock{nodes, "bench:hold"};
            std::vector<double> times;
            for (std::size_t i = 0; i < 100 * effort.repetitions; ++i) {
                auto time = time_of([&] { (void)lock.acquire(); });
                std::this_thread::sleep_for(held);
                time += time_of([&] { (void)lock.release(); });
                if (i > 0) times.push_back(time);  // the first one connects
            }
            table.rows.push_back(row_of(
                std::string{name_of(round)} + ", held for " + std::to_string(held.count()) + " ms", times));
        }
    report.add(std::move(table));
}

/// A call with a deadline of 5 ms, while other threads wait for three frozen nodes of five.
void short_deadline(const Effort& effort, Report& report) {
    Table table{.scenario = "waits",
                .setting = "a call with a deadline of 5 ms beside threads that wait for frozen nodes",
                .columns = columns()};
    for (const bool share : {true, false})
        for (const std::size_t others : {0U, 1U, 16U}) {
            support::Cluster servers;
            RedisNodes nodes{servers.uris(), {.round = Round::all_at_once, .share_connections = share}};
            for (const std::size_t node : {0U, 2U, 4U}) servers[node].freeze();
            std::vector<std::jthread> threads;
            for (std::size_t i = 0; i < others; ++i)
                threads.emplace_back([&nodes, i](const std::stop_token& stop) {
                    Lock lock{nodes, "bench:waits-" + std::to_string(i)};
                    while (!stop.stop_requested()) (void)lock.try_acquire();
                });
            Lock lock{nodes, "bench:deadline"};
            std::vector<double> times;
            for (std::size_t i = 0; i < 40 * effort.repetitions; ++i)
                times.push_back(time_of([&] { (void)lock.acquire_for(5ms); }));
            threads.clear();
            for (const std::size_t node : {0U, 2U, 4U}) servers[node].thaw();
            table.rows.push_back(row_of(std::to_string(others) + " other threads, " +
                                            (share ? "shared connections" : "own connections"),
                                        times));
        }
    report.add(std::move(table));
}

/// The time from the recovery of a node until its vote counts again, while a thread makes attempts.
void trust(const Effort& effort, Report& report) {
    Table table{.scenario = "waits", .setting = "a frozen node continues", .columns = columns()};
    for (const bool share : {true, false}) {
        support::Cluster servers;
        RedisNodes nodes{servers.uris(), {.round = Round::all_at_once, .share_connections = share}};
        Lock lock{nodes, "bench:trust"};
        std::vector<double> times;
        const auto votes = [&lock] {
            const auto result = lock.acquire();
            (void)lock.release();
            return result.nodes()[2].vote == Vote::granted;
        };
        for (std::size_t i = 0; i < 4 * effort.repetitions; ++i) {
            servers[2].freeze();
            const auto thaw_at = std::chrono::steady_clock::now() + 1s;
            while (votes() || std::chrono::steady_clock::now() < thaw_at) {
            }
            servers[2].thaw();
            times.push_back(time_of([&] {
                while (!votes()) {
                }
            }));
        }
        table.rows.push_back(
            row_of(share ? "until its vote counts" : "until its vote counts, own connections", times));
    }
    report.add(std::move(table));
}

/// The descriptors of a RedisNodes that many threads use.
void descriptors(Report& report) {
    Table table{.scenario = "waits", .setting = "open descriptors", .columns = {"descriptors"}};
    for (const bool share : {true, false})
        for (const std::size_t count : {1U, 4U, 16U, 64U}) {
            support::Cluster servers;
            const auto before = support::descriptors().size();
            RedisNodes nodes{servers.uris(), {.round = Round::all_at_once, .share_connections = share}};
            support::in_threads(count, [&nodes](std::size_t i) {
                Lock lock{nodes, "bench:open-" + std::to_string(i)};
                for (int turn = 0; turn < 200; ++turn)
                    if (lock.acquire()) (void)lock.release();
            });
            table.rows.push_back({std::to_string(count) + (share ? " threads" : " threads, own connections"),
                                  {static_cast<double>(support::descriptors().size() - before)}});
        }
    report.add(std::move(table));
}

}  // namespace

void waits(const Effort& effort, Report& report) {
    hold(effort, report);
    short_deadline(effort, report);
    trust(effort, report);
    descriptors(report);
}

}  // namespace redlock::bench
