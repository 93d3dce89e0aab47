// (d): many threads, each with its own resource. The threads of this library share one RedisNodes. Those of
// the raw client have separate connections, so they cannot disturb one another.
#include "scenarios.hpp"

#include "raw_client.hpp"
#include "redlock_client.hpp"
#include "statistics.hpp"
#include "team.hpp"

#include "support/cluster.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redlock::bench {
namespace {

using namespace std::chrono_literals;

Team ours(const std::vector<std::string>& uris, Round round, std::size_t threads) {
    const auto nodes = std::make_shared<RedisNodes>(uris, NodesOptions{.round = round});
    Team team{round == Round::sequential ? "redlock sequential" : "redlock all-at-once"};
    for (std::size_t i = 0; i < threads; ++i)
        team.add(std::make_unique<RedlockClient>(team.name(), nodes, "bench:ours-" + std::to_string(i)));
    return team;
}

Team raw(const std::vector<std::string>& uris, RawClient::Way way, std::size_t threads) {
    Team team{way == RawClient::Way::sequential ? "raw sequential" : "raw multiplexed"};
    for (std::size_t i = 0; i < threads; ++i)
        team.add(std::make_unique<RawClient>(uris, way, "bench:raw--" + std::to_string(i)));
    return team;
}

/// Both teams in turn: the throughput of each, and the ratio of ours to raw.
struct Duel {
    double ours;
    double raw;
    Spread ratio;
};

Duel fight(Team& ours, Team& raw, const Effort& effort) {
    constexpr auto span = 150ms;
    (void)ours.throughput(span);
    (void)raw.throughput(span);
    std::vector<double> of_ours;
    std::vector<double> of_raw;
    std::vector<double> repetitions;
    for (std::size_t repetition = 0; repetition < effort.repetitions; ++repetition) {
        std::vector<double> turns;
        for (std::size_t turn = 0; turn < 1 + effort.turns / 3; ++turn) {
            const bool we_first = turn % 2 == 0;
            const auto first = (we_first ? ours : raw).throughput(span);
            const auto second = (we_first ? raw : ours).throughput(span);
            of_ours.push_back(we_first ? first : second);
            of_raw.push_back(we_first ? second : first);
            turns.push_back(of_ours.back() / of_raw.back());
        }
        repetitions.push_back(median(std::move(turns)));
    }
    return {median(std::move(of_ours)), median(std::move(of_raw)), spread(repetitions)};
}

Row row_of(const Team& team, double throughput, const Spread& ratio) {
    return {team.name(),
            {throughput, percentile(team.microseconds(), 0.5), percentile(team.microseconds(), 0.99),
             ratio.middle, ratio.least, ratio.most}};
}

}  // namespace

void threads(const Effort& effort, Report& report) {
    support::Cluster cluster;
    for (const std::size_t count : {1U, 2U, 4U, 8U, 16U}) {
        Table table{.scenario = "threads",
                    .setting = std::to_string(count) + (count == 1 ? " thread" : " threads"),
                    .columns = {"ops_per_s", "p50_us", "p99_us", "x_raw", "x_raw_min", "x_raw_max"}};
        for (const auto round : {Round::sequential, Round::all_at_once}) {
            auto us = ours(cluster.uris(), round, count);
            auto them = raw(
                cluster.uris(),
                round == Round::sequential ? RawClient::Way::sequential : RawClient::Way::multiplexed, count);
            const auto duel = fight(us, them, effort);
            table.rows.push_back(row_of(us, duel.ours, duel.ratio));
            table.rows.push_back(row_of(them, duel.raw, {none, none, none}));
            if (count == 16 && round == Round::all_at_once)
                report.add(Figure{"16 threads on one RedisNodes: ops/s / 16 raw multiplexed clients",
                                  duel.ratio.middle, Figure::Bound::at_least, 0.9});
        }
        report.add(std::move(table));
    }
}

}  // namespace redlock::bench
