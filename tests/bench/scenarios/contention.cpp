// (d): processes that want one resource all the time, with plain retry or in a queue.
#include "scenarios.hpp"

#include "redis_plus_plus_client.hpp"
#include "statistics.hpp"

#include "support/child_process.hpp"
#include "support/cluster.hpp"
#include "support/process_files.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <functional>
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
constexpr auto* plain = "redlock all-at-once";
constexpr auto* alone = "redlock all-at-once, one process";
constexpr auto* fair = "redlock fair";
constexpr auto* fair_lock_each = "redlock fair, a Lock each";
constexpr auto* raw = "raw multiplexed";
constexpr auto* node_redlock = "node-redlock";

struct Setting {
    std::size_t processes;
    std::chrono::milliseconds hold;
    std::chrono::milliseconds delay;

    std::string text() const {
        return std::to_string(processes) + " processes, hold " + std::to_string(hold.count()) +
               " ms, retry delay " + std::to_string(delay.count()) + " ms";
    }
};

/// One acquisition: the beginning and the end of its wait, in ms, and whether it succeeded.
struct Wait {
    double wanted;
    double over;
    bool had;
};

/// The results of one process.
struct Share {
    std::vector<Wait> waits{};
    double commands = -1;  // unknown
    double acquisitions() const { return static_cast<double>(std::ranges::count(waits, true, &Wait::had)); }
};

/// The results of all processes in one run.
struct Outcome {
    std::vector<Share> shares{};
    double per_second = 0;
    double least = 0;  // acquisitions of the process with the fewest
    double most = 0;
    double fairness = 0;
    double longest_wait = 0;
    double passed = 0;    // the most acquisitions of others during one wait
    double commands = 0;  // for each acquisition
};

/// Returns the number of commands that clients have sent. The servers also count the commands that scripts
/// call. Therefore only scripts are counted for a client that sends nothing else.
double commands_sent(Cluster& cluster, const std::string& client) {
    std::vector<std::string> sent{"eval", "evalsha"};
    if (client != node_redlock) sent.insert(sent.end(), {"set", "watch", "multi", "exec"});
    double commands = 0;
    for (const auto& server : cluster) {
        const auto stats = server.command({"INFO", "commandstats"});
        for (const auto& command : sent) {
            const auto key = "cmdstat_" + command + ":calls=";
            if (const auto at = stats.find(key); at != std::string::npos)
                commands += std::stod(stats.substr(at + key.size()));
        }
    }
    return commands;
}

Share share_in(const std::filesystem::path& file) {
    std::istringstream numbers{support::content(file)};
    Share share;
    double wanted = 0;
    double over = 0;
    for (bool had = false; numbers >> wanted >> over >> had;)
        share.waits.push_back({wanted / 1e6, over / 1e6, had});
    numbers.clear();
    if (std::string word; numbers >> word >> share.commands && word == "commands") return share;
    throw std::runtime_error(numbers.str());
}

std::vector<Share> contend(Cluster& cluster, const std::string& client, const Setting& setting) {
    const support::TemporaryDirectory directory;
    const auto start = std::chrono::steady_clock::now() + (client == node_redlock ? 5000ms : 500ms);
    std::deque<support::ChildProcess> team;
    auto words = client == node_redlock ? std::vector<std::string>{"node", REDLOCK_BENCH_NODE_CONTENDER}
                                        : std::vector<std::string>{REDLOCK_BENCH_CONTENDER, client};
    for (const auto number :
         {setting.delay / 1ms, setting.hold / 1ms, start.time_since_epoch() / 1ns, span / 1ms})
        words.push_back(std::to_string(number));
    for (std::size_t i = 0; i < setting.processes; ++i)
        team.emplace_back(support::Program{.words = words,
                                           .environment = {"REDLOCK_NODES=" + cluster.uri_list()},
                                           .output = directory / std::to_string(i)});
    std::vector<Share> shares;
    for (std::size_t i = 0; i < setting.processes; ++i) {
        (void)team[i].wait();
        shares.push_back(share_in(directory / std::to_string(i)));
    }
    return shares;
}

/// Returns false for waits at the beginning, when the first clients do not know of the others, and at the
/// end, when all give up.
bool while_all_want_it(const Wait& wait, const std::vector<double>& had) {
    constexpr double a_moment = 100;
    return !had.empty() && wait.wanted >= had.front() + a_moment && wait.over <= had.back() - a_moment;
}

/// Returns the number of acquisitions of others during the wait. `had` is sorted by time.
double passed(const Wait& wait, const std::vector<double>& had) {
    const auto begin = std::ranges::upper_bound(had, wait.wanted);
    const auto end = std::ranges::lower_bound(had, wait.over);
    return static_cast<double>(std::max<std::ptrdiff_t>(end - begin, 0));
}

Outcome outcome_of(Cluster& cluster, const std::string& client, const Setting& setting) {
    if (client == alone) return outcome_of(cluster, plain, {1, setting.hold, setting.delay});
    for (const auto& server : cluster) {
        server.command({"FLUSHALL"});
        server.command({"CONFIG", "RESETSTAT"});
    }
    Outcome outcome{.shares = contend(cluster, client, setting)};
    std::vector<double> had;
    double commands = 0;
    for (const auto& share : outcome.shares) {
        commands += share.commands;
        for (const auto& wait : share.waits)
            if (wait.had) had.push_back(wait.over);
    }
    std::ranges::sort(had);
    outcome.least = outcome.shares.front().acquisitions();
    for (const auto& share : outcome.shares) {
        outcome.least = std::min(outcome.least, share.acquisitions());
        outcome.most = std::max(outcome.most, share.acquisitions());
        for (const auto& wait : share.waits) {  // failed ones as well
            outcome.longest_wait = std::max(outcome.longest_wait, wait.over - wait.wanted);
            if (while_all_want_it(wait, had)) outcome.passed = std::max(outcome.passed, passed(wait, had));
        }
    }
    const auto all = static_cast<double>(had.size());
    outcome.per_second = all / std::chrono::duration<double>(span).count();
    outcome.fairness = outcome.most > 0 ? outcome.least / outcome.most : none;
    outcome.commands = (commands > 0 ? commands : commands_sent(cluster, client)) / all;
    return outcome;
}

std::vector<std::string> clients(bool peers) {
    std::vector<std::string> clients{"redlock sequential", plain, alone, fair, fair_lock_each, raw};
    if (peers && has_redis_plus_plus()) clients.emplace_back("redis-plus-plus");
    if (peers && std::getenv("NODE_PATH") != nullptr) clients.emplace_back(node_redlock);  // set by run.sh
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

constexpr std::array columns{"acq_per_s", "least", "most", "least/most", "wait_ms", "passed", "commands"};

double cell(const Table& table, std::string_view client, std::string_view column) {
    const auto& row = *std::ranges::find(table.rows, client, &Row::client);
    const auto at = std::ranges::find(table.columns, column) - table.columns.begin();
    return row.cells[static_cast<std::size_t>(at)];
}

/// Adds the figures of one setting and of a client that waits in the queue.
void add_figures(Report& report, const Setting& setting, const Table& table, const std::string& client) {
    using Bound = Figure::Bound;
    const auto add = [&](const char* what, double measured, Bound bound, double target) {
        report.add(Figure{client + ", " + setting.text() + ": " + what, measured, bound, target});
    };
    const bool many = setting.processes > 8;
    // With plain retry the client that releases mostly acquires again, as if it were alone. No queue can
    // exceed that rate.
    const auto rate = setting.hold > 1ms ? 0.98 : 0.9;
    add("acquisitions / plain all at once", cell(table, client, "x_plain"), Bound::at_least, rate);
    if (setting.hold > 1ms) return;
    add("least / most", cell(table, client, "least/most"), Bound::at_least, many ? 0.85 : 0.95);
    add("commands an acquisition", cell(table, client, "commands"), Bound::at_most, many ? 13 : 12);
    if (many) return;
    add("longest wait / plain", cell(table, client, "wait_ms") / cell(table, plain, "wait_ms"),
        Bound::at_most, 0.2);
    add("acquisitions of others during a wait", cell(table, client, "passed"), Bound::at_most,
        static_cast<double>(setting.processes - 1));
}

/// Returns the waits of each process for pictures/waits.py, sorted by descending number of acquisitions.
Table waits_of(const Setting& setting, const Outcome& plainly, const Outcome& fairly) {
    Table table{.scenario = "waits",
                .setting = setting.text() + ", " + std::to_string(span / 1s) + " s",
                .columns = {}};
    for (std::size_t i = 0; i < setting.processes; ++i)
        table.rows.push_back({.client = std::to_string(i + 1), .cells = {}});
    for (const auto& [name, outcome] : {std::pair{"plain", &plainly}, {"fair", &fairly}}) {
        for (const auto* const column : {"_had", "_p50_ms", "_p99_ms", "_max_ms"})
            table.columns.push_back(std::string{name} + column);
        auto shares = outcome->shares;
        std::ranges::sort(shares, std::greater{}, &Share::acquisitions);
        for (std::size_t i = 0; i < shares.size(); ++i) {
            std::vector<double> waits;
            for (const auto& wait : shares[i].waits) waits.push_back(wait.over - wait.wanted);
            auto& cells = table.rows[i].cells;
            cells.push_back(shares[i].acquisitions());
            for (const double quantile : {0.5, 0.99, 1.0}) cells.push_back(percentile(waits, quantile));
        }
    }
    return table;
}

void contention(Cluster& cluster, const Setting& setting, const Effort& effort, Report& report) {
    Table table{
        .scenario = "contention", .setting = setting.text(), .columns = {columns.begin(), columns.end()}};
    const auto all = clients(effort.peers);
    std::vector<std::vector<Outcome>> outcomes(all.size());
    for (std::size_t repetition = 0; repetition < effort.repetitions; ++repetition)
        for (std::size_t i = 0; i < all.size(); ++i)
            outcomes[i].push_back(outcome_of(cluster, all[i], setting));
    for (std::size_t i = 0; i < all.size(); ++i) table.rows.push_back(row_of(all[i], outcomes[i]));
    for (const auto& [column, base] : {std::pair{"x_raw", raw}, {"x_plain", plain}}) {
        const auto rate = cell(table, base, "acq_per_s");
        for (auto& row : table.rows) row.cells.push_back(row.cells.front() / rate);
        table.columns.emplace_back(column);
    }
    for (const auto* const client : {fair, fair_lock_each}) add_figures(report, setting, table, client);
    report.add(std::move(table));
    const auto last = [&](std::string_view client) -> const Outcome& {
        return outcomes[static_cast<std::size_t>(std::ranges::find(all, client) - all.begin())].back();
    };
    if (setting.processes > 8) report.add(waits_of(setting, last(plain), last(fair)));
}

}  // namespace

void contention(const Effort& effort, Report& report) {
    Cluster cluster;
    for (const auto& setting :
         {Setting{8, 1ms, 10ms}, Setting{8, 1ms, 200ms}, Setting{32, 1ms, 10ms}, Setting{8, 10ms, 200ms}})
        contention(cluster, setting, effort, report);
}

}  // namespace redlock::bench
