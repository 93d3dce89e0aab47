// The scenario `many`: many ops at the same time, each on its own resource. It compares threads that use one
// RedisNodes, with and without shared connections, an event loop, raw clients in threads, raw clients that
// pipeline many ops in one thread, raw clients whose threads share rounds, and other libraries. It measures
// them a second time while ops arrive at a fixed rate. Then it freezes one node, and measures the libraries
// again.
#include "scenarios.hpp"

#include "asio_client.hpp"
#include "field.hpp"
#include "loop_client.hpp"
#include "raw_client.hpp"
#include "raw_sharing_client.hpp"
#include "redis_plus_plus_client.hpp"
#include "redlock_client.hpp"
#include "statistics.hpp"
#include "team.hpp"

#include "support/cluster.hpp"

#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace redlock::bench {
namespace {

using namespace std::chrono_literals;

Team ours(const std::vector<std::string>& uris, std::size_t threads, bool share) {
    const auto nodes = std::make_shared<RedisNodes>(
        uris, NodesOptions{.round = Round::all_at_once, .share_connections = share});
    Team team{"redlock, " + std::to_string(threads) + (threads == 1 ? " thread" : " threads") +
              (share ? "" : ", own connections")};
    for (std::size_t i = 0; i < threads; ++i)
        team.add(std::make_unique<RedlockClient>(team.name(), nodes, "bench:ours-" + std::to_string(i)));
    return team;
}

Team raw(const std::vector<std::string>& uris, std::size_t threads) {
    Team team{"raw, " + std::to_string(threads) + (threads == 1 ? " thread" : " threads")};
    for (std::size_t i = 0; i < threads; ++i)
        team.add(std::make_unique<RawClient>(uris, RawClient::Way::multiplexed,
                                             "bench:raw--" + std::to_string(i)));
    return team;
}

Team sharing_raw(const std::vector<std::string>& uris, std::size_t threads) {
    const auto rounds = std::make_shared<RawSharedRounds>(uris);
    Team team{"raw, " + std::to_string(threads) + " threads that share rounds"};
    for (std::size_t i = 0; i < threads; ++i)
        team.add(std::make_unique<RawSharingClient>(rounds, "bench:raw--" + std::to_string(i)));
    return team;
}

Team loop(const std::vector<std::string>& uris, std::size_t ops) {
    Team team{"redlock, a loop with " + std::to_string(ops)};
    team.add(std::make_unique<LoopClient>(team.name(), uris, ops));
    return team;
}

Team coroutines(const std::vector<std::string>& uris, std::size_t count) {
    Team team{"redlock, Asio with " + std::to_string(count) + (count == 1 ? " coroutine" : " coroutines")};
    team.add(std::make_unique<AsioClient>(team.name(), uris, count));
    return team;
}

Team pipelined(const std::vector<std::string>& uris, std::size_t ops) {
    std::vector<std::string> resources;
    for (std::size_t i = 0; i < ops; ++i) resources.push_back("bench:raw--" + std::to_string(i));
    Team team{"raw, 1 thread that pipelines " + std::to_string(ops), ops};
    team.add(std::make_unique<RawClient>(uris, RawClient::Way::multiplexed, resources));
    return team;
}

/// Returns the CPU time that a process has used, in microseconds. Zero stands for this process.
double cpu_time(pid_t process) {
    clockid_t clock{};
    timespec time{};
    if (const int error = ::clock_getcpuclockid(process, &clock); error != 0)
        throw std::system_error{error, std::generic_category(), "clock_getcpuclockid"};
    if (::clock_gettime(clock, &time) != 0)
        throw std::system_error{errno, std::generic_category(), "clock_gettime"};
    const std::chrono::duration<double, std::micro> used =
        std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
    return used.count();
}

/// Returns the mean CPU time of the servers, in microseconds.
double cpu_time(support::Cluster& servers) {
    double all = 0;
    for (auto& server : servers) all += cpu_time(server.pid());
    return all / static_cast<double>(servers.size());
}

/// A team, and its measurements in each alternation.
struct Contestant {
    Team team;
    std::size_t threads = 0;  ///< how many it has; 0 if it is compared with no raw client
    std::vector<double> throughput{};
    std::vector<double> client_cpu{};  ///< of this process for an op, in microseconds
    std::vector<double> server_cpu{};  ///< the same of one server

    void run(std::chrono::milliseconds span, support::Cluster& servers) {
        const auto client = cpu_time(0);
        const auto server = cpu_time(servers);
        throughput.push_back(team.throughput(span));
        const auto ops = throughput.back() * std::chrono::duration<double>(span).count();
        client_cpu.push_back((cpu_time(0) - client) / ops);
        server_cpu.push_back((cpu_time(servers) - server) / ops);
    }
};

/// Returns the ratio of the throughputs within one alternation, over all alternations.
Spread ratio(const Contestant& one, const Contestant& baseline) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < one.throughput.size(); ++i)
        ratios.push_back(one.throughput[i] / baseline.throughput[i]);
    return spread(ratios);
}

/// Returns the row of one contestant. The baselines are the raw client with as many threads, and the raw
/// client that pipelines 64 ops.
Row row_of(const Contestant& contestant, const Contestant* raw, const Contestant& pipelined) {
    const auto to_raw = raw != nullptr ? ratio(contestant, *raw) : Spread{none, none, none};
    return {contestant.team.name(),
            {median(contestant.throughput), percentile(contestant.team.microseconds(), 0.5),
             percentile(contestant.team.microseconds(), 0.99),
             contestant.team.is_local() ? median(contestant.client_cpu) : none, median(contestant.server_cpu),
             to_raw.middle, to_raw.least, to_raw.most, ratio(contestant, pipelined).middle}};
}

/// Returns the row of one contestant with a frozen node.
Row frozen_row_of(const Contestant& contestant, double rate_without_fault) {
    const auto rate = median(contestant.throughput);
    return {contestant.team.name(),
            {rate, percentile(contestant.team.microseconds(), 0.5),
             percentile(contestant.team.microseconds(), 0.99), rate / rate_without_fault}};
}

/// Returns how long a contestant runs in one alternation, in the table of throughputs.
std::chrono::milliseconds long_span(const Effort& effort) {
    return effort.repetitions > 1 ? 5s : 300ms;
}
/// The same for the other tables.
std::chrono::milliseconds short_span(const Effort& effort) {
    return effort.repetitions > 1 ? 1s : 300ms;
}

/// Measures how long an op takes from its arrival, if ops arrive at half of the throughput of a contestant.
/// `paces[i]` is the contestant that sets the rate for contestants[i].
Table arrivals(std::vector<Contestant>& contestants, const std::vector<std::size_t>& paces,
               const Effort& effort) {
    Table table{.scenario = "many",
                .setting = "ops arrive at a fixed rate",
                .columns = {"arrivals_per_s", "p50_us", "p99_us"}};
    for (std::size_t i = 0; i < contestants.size(); ++i) {
        auto& contestant = contestants[i];
        if (!contestant.team.heeds_arrivals()) continue;
        const auto rate = median(contestants[paces[i]].throughput) / 2;
        std::vector<double> times;
        for (std::size_t turn = 0; turn < 2 * effort.repetitions; ++turn) {
            const auto more = contestant.team.times_at(rate, short_span(effort));
            times.insert(times.end(), more.begin(), more.end());
        }
        table.rows.push_back(
            {contestant.team.name(), {rate, percentile(times, 0.5), percentile(times, 0.99)}});
    }
    return table;
}

constexpr std::array<std::size_t, 4> thread_counts{1, 4, 16, 64};

/// This library, and the other libraries that are installed.
std::vector<Contestant> libraries(const std::vector<std::string>& uris, bool peers) {
    std::vector<Contestant> result;
    for (const auto count : thread_counts) result.push_back({ours(uris, count, true), count});
    for (const std::size_t ops : {1U, 64U, 1000U}) result.push_back({loop(uris, ops)});
    for (const std::size_t count : {1U, 64U, 1000U}) result.push_back({coroutines(uris, count)});
    if (!peers) return result;
    for (const auto count : thread_counts) {
        if (!has_redis_plus_plus()) break;
        Team team{"redis-plus-plus, " + std::to_string(count) + (count == 1 ? " thread" : " threads")};
        for (std::size_t i = 0; i < count; ++i)
            team.add(redis_plus_plus_client(uris, "bench:rpp--" + std::to_string(i)));
        result.push_back({std::move(team)});
    }
    if (auto peer = node_redlock(uris)) {
        Team team{peer->name()};
        team.add(std::move(peer));
        result.push_back({std::move(team)});
    }
    return result;
}

void measure(std::vector<Contestant>& contestants, const Effort& effort, std::chrono::milliseconds span,
             support::Cluster& servers) {
    const auto alternations = 2 * effort.repetitions;
    for (auto& contestant : contestants) contestant.team.warm_up(span / 10);
    for (std::size_t turn = 0; turn < alternations; ++turn)
        for (std::size_t i = 0; i < contestants.size(); ++i)
            contestants[(turn + i) % contestants.size()].run(span, servers);
}

}  // namespace

void many(const Effort& effort, Report& report) {
    support::Cluster servers;
    const auto uris = servers.uris();
    auto contestants = libraries(uris, effort.peers);
    const auto libraries_only = contestants.size();
    for (const auto count : thread_counts) contestants.push_back({ours(uris, count, false), count});
    const auto first_raw = contestants.size();
    for (const auto count : thread_counts) contestants.push_back({raw(uris, count), count});
    for (const std::size_t count : {4U, 16U, 64U}) contestants.push_back({sharing_raw(uris, count), count});
    for (const std::size_t ops : {16U, 64U}) contestants.push_back({pipelined(uris, ops)});
    measure(contestants, effort, long_span(effort), servers);

    Table table{.scenario = "many",
                .setting = "all at once, TCP",
                .columns = {"ops_per_s", "p50_us", "p99_us", "client_us", "server_us", "x_raw", "x_raw_min",
                            "x_raw_max", "x_raw_pipelined"}};
    for (const auto& contestant : contestants) {
        const auto same = std::ranges::find(thread_counts, contestant.threads) - thread_counts.begin();
        const auto* const baseline =
            contestant.threads != 0 ? &contestants[first_raw + static_cast<std::size_t>(same)] : nullptr;
        table.rows.push_back(row_of(contestant, baseline, contestants.back()));
        if (contestant.team.name() == "redlock, 16 threads, own connections")
            report.add(Figure{"16 threads with own connections on one RedisNodes: ops/s / 16 raw threads",
                              ratio(contestant, *baseline).middle, Figure::Bound::at_least, 0.9});
    }
    report.add(std::move(table));
    // Ops on shared connections arrive as often as those of the same number of threads with own connections.
    std::vector<std::size_t> paces(contestants.size());
    for (std::size_t i = 0; i < paces.size(); ++i)
        paces[i] = i < thread_counts.size() ? libraries_only + i : i;
    report.add(arrivals(contestants, paces, effort));

    // The libraries are connected already when the node freezes.
    contestants.erase(contestants.begin() + static_cast<std::ptrdiff_t>(libraries_only), contestants.end());
    std::vector<double> sound;
    for (auto& contestant : contestants) sound.push_back(median(std::exchange(contestant.throughput, {})));
    servers[2].freeze();
    measure(contestants, effort, short_span(effort), servers);
    Table frozen{.scenario = "many",
                 .setting = "one node frozen",
                 .columns = {"ops_per_s", "p50_us", "p99_us", "x_no_fault"}};
    for (std::size_t i = 0; i < contestants.size(); ++i)
        frozen.rows.push_back(frozen_row_of(contestants[i], sound[i]));
    report.add(std::move(frozen));
    servers[2].thaw();
}

}  // namespace redlock::bench
