// (e): processes that want one resource all the time; with plain retry, and waiting in a queue.
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

constexpr auto span = 4000ms;

struct Setting {
    std::size_t processes;
    std::chrono::milliseconds hold;
    std::chrono::milliseconds delay;

    std::string text() const {
        return std::to_string(processes) + " processes, hold " + std::to_string(hold.count()) +
               " ms, retry delay " + std::to_string(delay.count()) + " ms";
    }
};

/// One acquisition: since when it was waited for, when it was had, in ms; never, if it was not.
struct Wait {
    double wanted;
    double had;
};

/// What one process did.
struct Share {
    std::vector<Wait> waits{};
    double commands = -1;  // unknown
    double acquisitions() const {
        return static_cast<double>(std::ranges::count_if(waits, [](const Wait& it) { return it.had > 0; }));
    }
};

/// What they all did in one run.
struct Outcome {
    double per_second = 0;
    double least = 0;  // acquisitions of the unluckiest process
    double most = 0;
    double fairness = 0;
    double longest_wait = 0;
    double passed = 0;    // acquisitions of others during one wait, at most
    double commands = 0;  // per acquisition, by what the servers count
};

/// What clients have sent. What a script of theirs calls is counted by the servers as well, and not here.
double commands_sent(Cluster& cluster) {
    constexpr std::array sent{"set", "eval", "evalsha", "watch", "multi", "exec", "subscribe"};
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
    std::istringstream numbers{text.str()};
    Share share;
    double wanted = 0;
    for (double had = 0; numbers >> wanted >> had;) share.waits.push_back({wanted / 1e6, had / 1e6});
    numbers.clear();
    if (std::string word; numbers >> word >> share.commands && word == "commands") return share;
    throw std::runtime_error(text.str());
}

std::vector<Share> contend(Cluster& cluster, const std::string& client, const Setting& setting) {
    const support::TemporaryDirectory directory;
    const auto start = std::chrono::steady_clock::now() + 500ms;
    std::deque<support::ChildProcess> team;
    for (std::size_t i = 0; i < setting.processes; ++i)
        team.emplace_back(support::Program{
            .words = {REDLOCK_BENCH_CONTENDER, client, std::to_string(setting.delay.count()),
                      std::to_string(setting.hold.count()), std::to_string(start.time_since_epoch() / 1ns),
                      std::to_string(span / 1ms)},
            .environment = {"REDLOCK_NODES=" + cluster.uri_list()},
            .output = directory / std::to_string(i)});
    std::vector<Share> shares;
    for (std::size_t i = 0; i < setting.processes; ++i) {
        (void)team[i].wait();
        shares.push_back(share_in(directory / std::to_string(i)));
    }
    return shares;
}

/// How many acquisitions came between, in order of time.
double passed(const Wait& wait, const std::vector<double>& had) {
    const auto begin = std::ranges::upper_bound(had, wait.wanted);
    const auto end = std::ranges::lower_bound(had, wait.had);
    return static_cast<double>(std::max<std::ptrdiff_t>(end - begin, 0));
}

Outcome outcome_of(Cluster& cluster, const std::string& client, const Setting& setting) {
    for (const auto& server : cluster) {
        server.command({"FLUSHALL"});
        server.command({"CONFIG", "RESETSTAT"});
    }
    Outcome outcome;
    const auto shares = contend(cluster, client, setting);
    std::vector<double> had;
    for (const auto& share : shares)
        for (const auto& wait : share.waits)
            if (wait.had > 0) had.push_back(wait.had);
    std::ranges::sort(had);
    outcome.least = shares.front().acquisitions();
    for (const auto& share : shares) {
        outcome.least = std::min(outcome.least, share.acquisitions());
        outcome.most = std::max(outcome.most, share.acquisitions());
        for (const auto& wait : share.waits) {
            const auto until = wait.had > 0 ? wait.had : had.back();  // in vain, too
            outcome.longest_wait = std::max(outcome.longest_wait, until - wait.wanted);
            outcome.passed = std::max(outcome.passed, passed({wait.wanted, until}, had));
        }
    }
    const auto all = static_cast<double>(had.size());
    outcome.per_second = all / std::chrono::duration<double>(span).count();
    outcome.fairness = outcome.most > 0 ? outcome.least / outcome.most : none;
    double commands = 0;
    for (const auto& share : shares) commands += share.commands;
    outcome.commands = (commands > 0 ? commands : commands_sent(cluster)) / all;
    return outcome;
}

std::vector<std::string> clients(bool peers) {
    std::vector<std::string> clients{"redlock sequential", "redlock all-at-once", "redlock fair",
                                     "redlock fair, a Lock each", "raw multiplexed"};
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
             middle(&Outcome::fairness), middle(&Outcome::longest_wait), middle(&Outcome::passed),
             middle(&Outcome::commands)}};
}

}  // namespace

void contention(const Effort& effort, Report& report) {
    Cluster cluster;
    for (const auto& setting :
         {Setting{8, 1ms, 200ms}, Setting{8, 1ms, 10ms}, Setting{32, 1ms, 10ms}, Setting{8, 10ms, 200ms}}) {
        Table table{.scenario = "contention",
                    .setting = setting.text(),
                    .columns = {"acq_per_s", "least", "most", "least/most", "wait_ms", "passed", "commands",
                                "x_raw", "x_plain"}};
        const auto all = clients(effort.peers);
        std::vector<std::vector<Outcome>> outcomes(all.size());
        for (std::size_t repetition = 0; repetition < effort.repetitions; ++repetition)
            for (std::size_t i = 0; i < all.size(); ++i)
                outcomes[i].push_back(outcome_of(cluster, all[i], setting));
        for (std::size_t i = 0; i < all.size(); ++i) table.rows.push_back(row_of(all[i], outcomes[i]));
        const auto rate = [&](std::string_view client) {
            return std::ranges::find(table.rows, client, &Row::client)->cells.front();
        };
        const auto raw = rate("raw multiplexed");
        const auto plain = rate("redlock all-at-once");
        for (auto& row : table.rows)
            row.cells.insert(row.cells.end(), {row.cells.front() / raw, row.cells.front() / plain});
        report.add(std::move(table));
    }
}

}  // namespace redlock::bench
