// (e): 8 processes that want one resource all the time and hold it for 1 ms.
#include "scenarios.hpp"

#include "redis_plus_plus_client.hpp"
#include "statistics.hpp"

#include "support/child_process.hpp"
#include "support/cluster.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::bench {
namespace {

using namespace std::chrono_literals;
using support::Cluster;

constexpr std::size_t processes = 8;
constexpr auto span = 4000ms;

/// What one process did.
struct Share {
    double acquisitions = 0;
    double longest_wait = 0;  // ms
};

/// What they all did in one run.
struct Outcome {
    double per_second = 0;
    double least = 0;  // acquisitions of the unluckiest process
    double most = 0;
    double fairness = 0;
    double longest_wait = 0;
    double commands = 0;  // per acquisition, by what the servers count
};

/// What clients have sent. What a script of theirs calls is counted by the servers as well, and not here.
double commands_sent(Cluster& cluster) {
    constexpr std::array sent{"set", "eval", "evalsha", "watch", "multi", "exec"};
    double commands = 0;
    for (const auto& server : cluster) {
        const auto stats = server.command({"INFO", "commandstats"});
        for (const std::string command : sent) {
            const auto key = "cmdstat_" + command + ":calls=";
            if (const auto at = stats.find(key); at != std::string::npos)
                commands += std::stod(stats.substr(at + key.size()));
        }
    }
    return commands;
}

Share share_in(const std::filesystem::path& file) {
    std::ifstream in{file};
    std::ostringstream text;
    text << in.rdbuf();
    std::istringstream words{text.str()};
    Share share;
    std::string word;
    if (words >> share.acquisitions >> word >> word >> word >> share.longest_wait) return share;
    throw std::runtime_error(text.str());
}

std::vector<Share> contend(Cluster& cluster, const std::string& client, std::chrono::milliseconds delay) {
    const support::TemporaryDirectory directory;
    const auto start = std::chrono::steady_clock::now() + 500ms;
    std::deque<support::ChildProcess> team;
    for (std::size_t i = 0; i < processes; ++i)
        team.emplace_back(support::Program{
            .words = {REDLOCK_BENCH_CONTENDER, client, std::to_string(delay.count()),
                      std::to_string(start.time_since_epoch() / 1ns), std::to_string(span / 1ms)},
            .environment = {"REDLOCK_NODES=" + cluster.uri_list()},
            .output = directory / std::to_string(i)});
    std::vector<Share> shares;
    for (std::size_t i = 0; i < processes; ++i) {
        (void)team[i].wait();
        shares.push_back(share_in(directory / std::to_string(i)));
    }
    return shares;
}

Outcome outcome_of(Cluster& cluster, const std::string& client, std::chrono::milliseconds delay) {
    for (const auto& server : cluster) {
        server.command({"FLUSHALL"});
        server.command({"CONFIG", "RESETSTAT"});
    }
    Outcome outcome;
    double all = 0;
    for (const auto& share : contend(cluster, client, delay)) {
        outcome.least = all > 0 ? std::min(outcome.least, share.acquisitions) : share.acquisitions;
        outcome.most = std::max(outcome.most, share.acquisitions);
        outcome.longest_wait = std::max(outcome.longest_wait, share.longest_wait);
        all += share.acquisitions;
    }
    outcome.per_second = all / std::chrono::duration<double>(span).count();
    outcome.fairness = outcome.most > 0 ? outcome.least / outcome.most : none;
    outcome.commands = commands_sent(cluster) / all;
    return outcome;
}

std::vector<std::string> clients(bool peers) {
    std::vector<std::string> clients{"redlock sequential", "redlock all-at-once", "raw multiplexed"};
    if (peers && has_redis_plus_plus()) clients.emplace_back("redis-plus-plus");
    return clients;
}

Row row_of(const std::string& client, const std::vector<Outcome>& outcomes) {
    const auto middle = [&](double Outcome::*member) {
        std::vector<double> values;
        for (const auto& outcome : outcomes) values.push_back(outcome.*member);
        return median(std::move(values));
    };
    return {client,
            {middle(&Outcome::per_second), middle(&Outcome::least), middle(&Outcome::most),
             middle(&Outcome::fairness), middle(&Outcome::longest_wait), middle(&Outcome::commands)}};
}

}  // namespace

void contention(const Effort& effort, Report& report) {
    Cluster cluster;
    for (const auto delay : {200ms, 10ms}) {
        Table table{.scenario = "contention",
                    .setting = "8 processes, retry delay " + std::to_string(delay.count()) + " ms",
                    .columns = {"acq_per_s", "least", "most", "least/most", "wait_ms", "commands", "x_raw"}};
        const auto all = clients(effort.peers);
        std::vector<std::vector<Outcome>> outcomes(all.size());
        for (std::size_t repetition = 0; repetition < effort.repetitions; ++repetition)
            for (std::size_t i = 0; i < all.size(); ++i)
                outcomes[i].push_back(outcome_of(cluster, all[i], delay));
        for (std::size_t i = 0; i < all.size(); ++i) table.rows.push_back(row_of(all[i], outcomes[i]));
        const auto raw = std::ranges::find(table.rows, "raw multiplexed", &Row::client)->cells.front();
        for (auto& row : table.rows) row.cells.push_back(row.cells.front() / raw);
        report.add(std::move(table));
    }
}

}  // namespace redlock::bench
