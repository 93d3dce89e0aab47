// (h): many ops at the same time, each on its own resource. It compares threads that use one RedisNodes, with
// and without shared connections, raw clients in threads, and raw clients that pipeline many ops in one
// thread.
#include "scenarios.hpp"

#include "raw_client.hpp"
#include "redlock_client.hpp"
#include "statistics.hpp"
#include "team.hpp"

#include "support/cluster.hpp"

#include <time.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <system_error>
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

Team pipelined(const std::vector<std::string>& uris, std::size_t ops) {
    std::vector<std::string> resources;
    for (std::size_t i = 0; i < ops; ++i) resources.push_back("bench:raw--" + std::to_string(i));
    Team team{"raw, 1 thread that pipelines " + std::to_string(ops), ops};
    team.add(std::make_unique<RawClient>(uris, RawClient::Way::multiplexed, resources));
    return team;
}

/// Returns the CPU time that the servers have used, in microseconds.
double cpu_time(support::Cluster& servers) {
    std::chrono::duration<double, std::micro> all{};
    for (auto& server : servers) {
        clockid_t clock{};
        timespec time{};
        if (const int error = ::clock_getcpuclockid(server.pid(), &clock); error != 0)
            throw std::system_error{error, std::generic_category(), "clock_getcpuclockid"};
        if (::clock_gettime(clock, &time) != 0)
            throw std::system_error{errno, std::generic_category(), "clock_gettime"};
        all += std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
    }
    return all.count();
}

/// A team, and its measurements in each alternation.
struct Contestant {
    Team team;
    std::vector<double> throughput{};
    std::vector<double> server_cpu{};  ///< of one server for an op, in microseconds

    void run(std::chrono::milliseconds span, support::Cluster& servers) {
        const auto before = cpu_time(servers);
        throughput.push_back(team.throughput(span));
        const auto ops = throughput.back() * std::chrono::duration<double>(span).count();
        server_cpu.push_back((cpu_time(servers) - before) / static_cast<double>(servers.size()) / ops);
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
             percentile(contestant.team.microseconds(), 0.99), median(contestant.server_cpu), to_raw.middle,
             to_raw.least, to_raw.most, ratio(contestant, pipelined).middle}};
}

}  // namespace

void many(const Effort& effort, Report& report) {
    const auto span = effort.repetitions > 1 ? 5000ms : 300ms;
    const auto alternations = 2 * effort.repetitions;
    constexpr std::array<std::size_t, 4> threads{1, 4, 16, 64};
    support::Cluster servers;
    const auto uris = servers.uris();
    // Ours, ours without sharing, as many raw ones, then the pipelined ones.
    std::vector<Contestant> contestants;
    for (const bool share : {true, false})
        for (const auto count : threads) contestants.push_back({ours(uris, count, share)});
    for (const auto count : threads) contestants.push_back({raw(uris, count)});
    for (const std::size_t ops : {16U, 64U}) contestants.push_back({pipelined(uris, ops)});

    for (auto& contestant : contestants) contestant.team.warm_up(span / 10);
    for (std::size_t turn = 0; turn < alternations; ++turn)
        for (std::size_t i = 0; i < contestants.size(); ++i)
            contestants[(turn + i) % contestants.size()].run(span, servers);

    Table table{.scenario = "many",
                .setting = "all at once, TCP",
                .columns = {"ops_per_s", "p50_us", "p99_us", "server_us", "x_raw", "x_raw_min", "x_raw_max",
                            "x_raw_pipelined"}};
    for (std::size_t i = 0; i < contestants.size(); ++i)
        table.rows.push_back(
            row_of(contestants[i],
                   i < 2 * threads.size() ? &contestants[2 * threads.size() + i % threads.size()] : nullptr,
                   contestants.back()));
    report.add(std::move(table));
}

}  // namespace redlock::bench
