// (i): A Redis Cluster of three masters as the only node, beside one plain server. The operations are on
// 1,000 resources, which the slots distribute over the masters.
#include "scenarios.hpp"

#include "client.hpp"
#include "loop_client.hpp"
#include "statistics.hpp"
#include "team.hpp"

#include "support/redis_cluster_servers.hpp"
#include "support/redis_server.hpp"

#include <redlock/redlock.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redlock::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t resources = 1000;

/// Locks its resources in turn.
class InTurnClient final : public LocalClient {
public:
    InTurnClient(std::shared_ptr<Nodes> nodes, std::size_t first, std::size_t step)
        : LocalClient("redlock"), nodes_(std::move(nodes)) {
        for (auto i = first; i < resources; i += step)
            locks_.push_back(std::make_unique<Lock>(*nodes_, "bench:cluster-" + std::to_string(i)));
    }

    bool acquire() override {
        at_ = (at_ + 1) % locks_.size();
        return static_cast<bool>(locks_[at_]->acquire());
    }
    void release() override { (void)locks_[at_]->release(); }

private:
    std::shared_ptr<Nodes> nodes_;
    std::vector<std::unique_ptr<Lock>> locks_{};
    std::size_t at_ = 0;
};

Team threads(const std::string& name, const std::string& uri, std::size_t count) {
    const auto nodes = std::make_shared<RedisNodes>(std::vector{uri});
    Team team{name};
    for (std::size_t i = 0; i < count; ++i) team.add(std::make_unique<InTurnClient>(nodes, i, count));
    return team;
}

Team loop(const std::string& name, const std::string& uri) {
    Team team{name};
    team.add(std::make_unique<LoopClient>(name, std::vector{uri}, resources));
    return team;
}

/// A team, and its measurements in each turn.
struct Contestant {
    Team team;
    std::vector<double> throughput{};
    std::vector<double> client_cpu{};  ///< of this process for an op, in microseconds

    void run(std::chrono::milliseconds span) {
        const auto begin = std::clock();
        throughput.push_back(team.throughput(span));
        const auto used = 1e6 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
        client_cpu.push_back(used / throughput.back() / std::chrono::duration<double>(span).count());
    }
};

/// Runs both in turn, and returns a table with the throughput of the Cluster to that of the server.
Table compare(const std::string& setting, Team server, Team cluster, const Effort& effort) {
    const std::chrono::milliseconds span = effort.repetitions > 1 ? 1s : 200ms;
    std::array both{Contestant{std::move(server)}, Contestant{std::move(cluster)}};
    for (auto& it : both) it.team.warm_up(span);
    std::vector<double> ratios;
    for (std::size_t turn = 0; turn < 2 * effort.repetitions; ++turn) {
        both[turn % 2].run(span);
        both[(turn + 1) % 2].run(span);
        ratios.push_back(both[1].throughput.back() / both[0].throughput.back());
    }
    const auto row = [](const Contestant& it, const Spread& ratio) {
        const auto& times = it.team.microseconds();
        return Row{it.team.name(),
                   {median(it.throughput), percentile(times, 0.5), percentile(times, 0.99),
                    median(it.client_cpu), ratio.middle, ratio.least, ratio.most}};
    };
    return {
        .scenario = "cluster",
        .setting = setting,
        .columns = {"ops_per_s", "p50_us", "p99_us", "client_us", "x_server", "x_server_min", "x_server_max"},
        .rows = {row(both[0], {1, 1, 1}), row(both[1], spread(ratios))}};
}

}  // namespace

void cluster(const Effort& effort, Report& report) {
    const support::RedisServer server;
    const support::RedisClusterServers servers;
    const std::string one = "one server";
    const std::string three = "a Cluster of three masters";
    for (const std::size_t count : {1U, 16U, 64U})
        report.add(compare(std::to_string(count) + (count == 1 ? " thread" : " threads"),
                           threads(one, server.uri(), count), threads(three, servers.uri(), count), effort));
    report.add(compare("a loop with 1000", loop(one, server.uri()), loop(three, servers.uri()), effort));
}

}  // namespace redlock::bench
