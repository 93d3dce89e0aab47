// (a) and (b): how long one op takes, for one client at a time.
#include "scenarios.hpp"

#include "contest.hpp"
#include "field.hpp"
#include "placement.hpp"

#include "support/cluster.hpp"
#include "support/tcp_proxy.hpp"

#include <chrono>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace redlock::bench {
namespace {

using Bound = Figure::Bound;

constexpr auto* ours_one = "redlock sequential";
constexpr auto* ours_all = "redlock all-at-once";
constexpr auto* ours_scoped = "redlock scoped";
constexpr auto* ours_fair = "redlock fair";
constexpr auto* ours_shared = "redlock shared";
constexpr auto* raw_one = "raw sequential";
constexpr auto* raw_all = "raw multiplexed";

Row row_of(const Contest& contest, const std::string& name) {
    const auto failed = static_cast<double>(contest.failed(name));
    if (contest.p50(name) == 0) return {name, {none, none, none, none, none, none, none, none, failed}};
    const auto one = contest.ratio(name, raw_one);
    const auto all = contest.ratio(name, raw_all);
    return {name,
            {contest.p50(name), contest.p99(name), one.middle, one.least, one.most, all.middle, all.least,
             all.most, failed}};
}

/// Returns p50, p99 and the ratios of each client.
Table table_of(const Contest& contest, std::span<Client* const> clients) {
    Table table{.scenario = {}, .setting = {}, .columns = {"p50_us", "p99_us"}};
    for (const auto* const raw : {raw_one, raw_all})
        for (const auto* const suffix : {"", "_min", "_max"})
            table.columns.push_back((raw == raw_one ? "x_raw_seq" : "x_raw_mux") + std::string{suffix});
    table.columns.emplace_back("failed");
    for (const auto* const client : clients) table.rows.push_back(row_of(contest, client->name()));
    return table;
}

void add_ratio(Report& report, const Contest& contest, const char* client, const char* base, double target,
               const std::string& where) {
    report.add(Figure{std::string{client} + " p50 / " + base + ", " + where,
                      contest.ratio(client, base).middle, Bound::at_most, target});
}

void loopback(const Effort& effort, Report& report, bool unix_sockets, bool pinned) {
    std::optional<OnOneCpu> placement;
    if (pinned) placement.emplace();
    support::Cluster cluster{5,
                             unix_sockets ? support::RedisConfig{}.on_unix_socket() : support::RedisConfig{}};
    Field field{cluster.uris()};
    if (effort.peers) field.add_peers();
    const Contest contest{field.clients(), {.repetitions = effort.repetitions, .turns = effort.turns}};

    auto table = table_of(contest, field.clients());
    table.scenario = "loopback";
    table.setting = std::string{unix_sockets ? "unix sockets" : "TCP"} + (pinned ? ", on one CPU" : "");
    const auto where = table.setting;
    report.add(std::move(table));
    // Without pinning there is no figure: depending on the scheduler, raw sequential alone takes 190 or 400
    // µs.
    if (!pinned) return;
    add_ratio(report, contest, ours_one, raw_one, 1.05, where);
    add_ratio(report, contest, ours_all, raw_all, 1.08, where);
    add_ratio(report, contest, ours_fair, ours_all, 1.02, where);
    add_ratio(report, contest, ours_shared, ours_all, 2.5, where);
}

void add_peer_figure(Report& report, const Contest& contest, const char* ours, double target) {
    if (!contest.has("redis-plus-plus")) return;
    report.add(Figure{std::string{"redis-plus-plus p50 / "} + ours + ", 1 ms RTT",
                      contest.p50("redis-plus-plus") / contest.p50(ours), Bound::at_least, target});
}

}  // namespace

void loopback(const Effort& effort, Report& report) {
    for (const bool unix_sockets : {false, true})
        for (const bool pinned : {true, false}) loopback(effort, report, unix_sockets, pinned);
}

void round_trip_time(const Effort& effort, Report& report) {
    using namespace std::chrono_literals;
    support::Cluster cluster;
    std::deque<support::TcpProxy> links;
    std::vector<std::string> uris;
    for (const auto& server : cluster) {
        links.emplace_back(server.port()).delay(500us);
        uris.push_back("redis://" + links.back().name());
    }
    Field field{uris};
    if (effort.peers) field.add_peers();
    const Contest contest{field.clients(),
                          {.repetitions = effort.repetitions, .turns = effort.turns, .batch = {.ops = 20}}};

    auto table = table_of(contest, field.clients());
    table.scenario = "1 ms RTT";
    report.add(std::move(table));
    add_ratio(report, contest, ours_one, raw_one, 1.05, "1 ms RTT");
    add_ratio(report, contest, ours_all, raw_all, 1.03, "1 ms RTT");
    add_ratio(report, contest, ours_scoped, raw_all, 0.6, "1 ms RTT");
    add_ratio(report, contest, ours_fair, ours_all, 1.02, "1 ms RTT");
    add_ratio(report, contest, ours_shared, ours_all, 1.08, "1 ms RTT");
    add_peer_figure(report, contest, ours_all, 4.3);
    add_peer_figure(report, contest, ours_one, 1.5);
}

}  // namespace redlock::bench
