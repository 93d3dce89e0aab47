// (c): one of five nodes is frozen, or killed. The raw client cannot handle that, so it is measured without
// the fault.
#include "scenarios.hpp"

#include "field.hpp"
#include "raw_client.hpp"
#include "redlock_client.hpp"
#include "statistics.hpp"

#include "support/cluster.hpp"

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace redlock::bench {
namespace {

using namespace std::chrono_literals;
using support::Cluster;
using support::RedisServer;

constexpr std::size_t victim = 2;  // in the middle: neither asked first nor last
constexpr auto some_time = 300ms;
constexpr auto long_enough_to_be_probed = 1000ms;

struct Fault {
    const char* name;
    void (*strike)(RedisServer&);
    void (*mend)(RedisServer&);
};

constexpr std::array both{
    Fault{"one node frozen", [](RedisServer& server) { server.freeze(); },
          [](RedisServer& server) { server.thaw(); }},
    Fault{"one node killed", [](RedisServer& server) { server.kill(); },
          [](RedisServer& server) { server.restart(); }},
};

/// The measurements of one client in one state of the nodes.
struct Record {
    std::vector<double> microseconds{};
    std::chrono::duration<double> time{};

    double add(const Batch& batch, std::chrono::duration<double> span) {
        microseconds.insert(microseconds.end(), batch.microseconds.begin(), batch.microseconds.end());
        time += span;
        return median(batch.microseconds);
    }
    double ops_per_s() const { return static_cast<double>(microseconds.size()) / time.count(); }
    Row row(std::string name, double first, const Spread& ratio) const {
        const auto at = [&](double quantile) {
            return microseconds.empty() ? none : percentile(microseconds, quantile);
        };
        return {std::move(name),
                {at(0.5), at(0.99), ops_per_s(), first, ratio.middle, ratio.least, ratio.most}};
    }
};

std::vector<std::string> columns() {
    return {"p50_us", "p99_us", "ops_per_s", "first_us", "x_no_fault", "x_min", "x_max"};
}

/// Measures without the fault and with it, ends the fault, and repeats that.
void endure(const Fault& fault, Round round, const Effort& effort, Table& table, Report& report) {
    Cluster cluster;
    RedlockClient client{cluster.uris(), round, "bench:ours"};
    (void)client.run({.span = some_time});
    Record raw;
    Record healthy;
    Record faulty;
    std::vector<double> firsts;
    std::vector<double> repetitions;
    for (std::size_t repetition = 0; repetition < effort.repetitions; ++repetition) {
        std::vector<double> turns;
        for (std::size_t turn = 0; turn < 1 + effort.turns / 10; ++turn) {
            const auto way =
                round == Round::sequential ? RawClient::Way::sequential : RawClient::Way::multiplexed;
            raw.add(RawClient{cluster.uris(), way, "bench:raw-"}.run({.span = some_time}), some_time);
            const auto before = healthy.add(client.run({.span = some_time}), some_time);
            fault.strike(cluster[victim]);
            firsts.push_back(median(client.run({.ops = 1}).microseconds));
            const Work work{.span = long_enough_to_be_probed};
            turns.push_back(faulty.add(client.run(work), work.span) / before);
            fault.mend(cluster[victim]);
            (void)client.run({.span = 2 * long_enough_to_be_probed});  // until the node is trusted again
        }
        repetitions.push_back(median(std::move(turns)));
    }
    const auto ratio = spread(repetitions);
    const auto& name = client.name();
    table.rows.push_back(
        raw.row(round == Round::sequential ? "raw sequential, no fault" : "raw multiplexed, no fault", none,
                {none, none, none}));
    table.rows.push_back(healthy.row(name + ", no fault", none, {none, none, none}));
    table.rows.push_back(faulty.row(name, median(firsts), ratio));
    report.add(Figure{name + ", " + fault.name + ": p50 after the first op / no fault", ratio.middle,
                      Figure::Bound::at_most, 1.2});
}

/// Another library may not recover from the fault, so it is measured once without it and once with it.
void endure_as_peer(const Fault& fault, Table& table) {
    Cluster cluster;
    Field field{cluster.uris()};
    const auto ours = field.clients().size();
    field.add_peers();
    std::vector<Record> healthy(field.clients().size());
    const Work work{.span = long_enough_to_be_probed};
    for (auto i = ours; i < field.clients().size(); ++i) {
        (void)field.clients()[i]->run({.span = some_time});
        healthy[i].add(field.clients()[i]->run(work), work.span);
    }
    fault.strike(cluster[victim]);
    for (auto i = ours; i < field.clients().size(); ++i) {
        auto& client = *field.clients()[i];
        if (client.name() == "redis-py x1") continue;  // on one node, which is healthy
        const auto first = median(client.run({.ops = 1}).microseconds);
        Record faulty;
        const auto after = faulty.add(client.run(work), work.span);
        const auto before = percentile(healthy[i].microseconds, 0.5);
        const auto ratio = after > 0 ? after / before : none;
        table.rows.push_back(healthy[i].row(client.name() + ", no fault", none, {none, none, none}));
        table.rows.push_back(faulty.row(client.name(), first > 0 ? first : none, {ratio, ratio, ratio}));
    }
}

}  // namespace

void faults(const Effort& effort, Report& report) {
    for (const auto& fault : both) {
        Table table{.scenario = "faults", .setting = fault.name, .columns = columns()};
        for (const auto round : {Round::sequential, Round::all_at_once})
            endure(fault, round, effort, table, report);
        if (effort.peers) endure_as_peer(fault, table);
        report.add(std::move(table));
    }
}

}  // namespace redlock::bench
