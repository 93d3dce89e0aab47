// Processes that lock resources and lead, on five real servers. Meanwhile a nemesis kills, freezes and
// empties servers, breaks connections, and stops and kills processes. Alternatively, there are one or three
// nodes, the first of which fails over back and forth, and none is emptied. Or the only node is a Redis
// Cluster whose slots are moved, and one of whose servers fails now and then. Afterwards the holds of all
// processes are checked.
//
// The exit status is 0 if nothing was found, 1 after a violation, and 2 if the test could not run.
#include "checker.hpp"
#include "failovers.hpp"
#include "nemesis.hpp"
#include "resources.hpp"
#include "slot_moves.hpp"
#include "worker_pool.hpp"

#include "support/cluster.hpp"
#include "support/redis_cluster_servers.hpp"
#include "support/sentinel_group.hpp"
#include "support/tcp_proxy.hpp"
#include "support/temporary_directory.hpp"
#include "support/wait_until.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace redlock::torture {
namespace {

using namespace std::chrono_literals;
using support::Cluster;
using support::RedisClusterServers;
using support::RedisConfig;
using support::SentinelGroup;
using support::TcpProxy;

struct Settings {
    double seconds = 60;
    std::uint64_t seed = std::random_device{}();
    bool quarantine = true;
    bool keep_data = false;
    bool until_violation = false;
    bool cluster = false;
    std::size_t nodes_with_failover = 0;  // 0: five nodes without failover

    LockSettings lock_settings() const {
        LockSettings result;
        if (nodes_with_failover > 0) {
            result.node_timeout = 300ms;               // includes asking the Sentinels
            result.quarantine = result.ttl + 1s + 6s;  // with min-replicas-max-lag 1, see docs/guarantees.md
        }
        if (cluster) result.node_timeout = 150ms;  // includes following redirections
        if (!quarantine) result.quarantine = 0ms;
        return result;
    }
    std::size_t ordinary_nodes() const {
        if (cluster) return 0;
        return nodes_with_failover > 0 ? nodes_with_failover - 1 : 5;
    }
    RedisConfig server() const { return keep_data ? RedisConfig{}.keeps_data() : RedisConfig{}; }
    Restart restart() const {
        if (nodes_with_failover > 0) return Restart::never;
        return keep_data ? Restart::with_data : Restart::empty;
    }
};

/// Fewer failovers than this are a finding, however busy the machine is.
constexpr std::size_t least_failovers = 2;
/// A loss that is reported later than this after the end of the validity is a finding, in nanoseconds.
constexpr std::int64_t max_delay = 250'000'000;

class Torture {
public:
    explicit Torture(const Settings& settings) : settings_(settings) {
        if (group_) failovers_.emplace(*group_, log_, settings_.seed);
        if (redis_cluster_) slot_moves_.emplace(*redis_cluster_, settings_.seed);
    }

    /// Returns the number of violations.
    std::size_t run() {
        std::cout << "seed " << settings_.seed << ", " << settings_.seconds << " s, quarantine "
                  << (settings_.quarantine ? "on" : "off") << std::endl;
        inject_faults();
        if (failovers_) failovers_->stop();
        if (slot_moves_) slot_moves_->stop();
        nemesis_.heal_all();
        const auto starved = count_starved();
        const auto failed = workers_.size() - workers_.stop();
        std::this_thread::sleep_for(2 * settings_.lock_settings().ttl);  // keys that were not released expire
        return report(starved, failed);
    }

private:
    void inject_faults() {
        const auto end = now() + static_cast<Instant>(settings_.seconds * 1e9);
        auto next_check = now() + 1'000'000'000;
        while (now() < end || (failovers_are_few() && now() < end + 60'000'000'000)) {
            nemesis_.inject_fault();
            std::this_thread::sleep_for(std::chrono::milliseconds{50 + random_() % 400});
            if (!settings_.until_violation || now() < next_check) continue;
            next_check = now() + 1'000'000'000;
            if (!overlaps(log_.holds()).empty()) break;
        }
    }

    bool failovers_are_few() const { return failovers_ && failovers_->completed() < least_failovers; }

    /// Returns the number of modes in which no worker gets a lock although all nodes and connections are
    /// healthy (S3). On a busy machine this may take long, because several resources at once are rarely all
    /// free.
    std::size_t count_starved() {
        log_.hurry();
        const auto before = holds_by_mode();
        const auto starved = [&] {
            std::size_t result = 0;
            for (const auto& [mode, holds] : holds_by_mode()) result += holds == before.at(mode) ? 1U : 0U;
            return result;
        };
        (void)support::wait_until([&] { return starved() == 0; }, 2min);
        return starved();
    }

    std::map<Mode, std::int64_t> holds_by_mode() {
        std::map<Mode, std::int64_t> result;
        for (std::size_t worker = 0; worker < HoldLog::workers; ++worker)
            result[log_.of(worker).mode()] += log_.of(worker).count();
        return result;
    }

    std::size_t report(std::size_t starved, std::size_t failed) {
        const auto holds = log_.holds();
        const auto overlapping = overlaps(holds);
        const auto regressions =
            settings_.cluster ? std::vector<TokenRegression>{} : token_regressions(holds);
        const auto suspensions = workers_.suspensions();
        const auto losses = reported_losses(holds, suspensions, false);
        const auto leaders_losses = reported_losses(holds, suspensions, true);
        const auto late_losses = late(losses, max_delay);
        const auto leaders_late_losses = late(leaders_losses, max_delay);
        std::vector<std::string> stray;
        for (const auto& node : nodes_) find_stray_keys(node, stray);
        if (group_)
            for (const auto& server : group_->servers) find_stray_keys(server, stray);
        if (redis_cluster_)
            for (const auto& server : *redis_cluster_)
                if (server.command({"DBSIZE"}) != "0")
                    stray.push_back(server.command({"KEYS", "*"}) + " on " + server.name());
        row("attempts", std::to_string(log_.attempts()));
        for (const auto& [mode, count] : holds_by_mode())
            row("holds, " + std::string{name_of(mode)}, std::to_string(count));
        for (const auto& [fault, times] : nemesis_.fault_counts()) row(fault, std::to_string(times));
        if (failovers_)
            for (const auto& [kind, times] : failovers_->counts()) row(kind, std::to_string(times));
        if (slot_moves_)
            for (const auto& [kind, times] : slot_moves_->counts()) row(kind, std::to_string(times));
        row("losses notified", std::to_string(losses.size()));
        if (!losses.empty()) row("notification after the validity, ms: p50, p99, max", delays_in_ms(losses));
        row("leaders told to stop", std::to_string(leaders_losses.size()));
        if (!leaders_losses.empty())
            row("told after the end of the term, ms: p50, p99, max", delays_in_ms(leaders_losses));

        std::size_t violations = 0;
        violations += check("overlaps of valid holds", overlapping.size());
        violations += check("fencing tokens out of order", regressions.size());
        violations += check("stray keys", stray.size());
        violations += check("notifications more than 250 ms late", late_losses.size());
        violations += check("leaders told 250 ms after their terms", leaders_late_losses.size());
        // If a process gets no processor for so long, it is notified late. But if most are late, the library
        // is at fault.
        const auto after_terms = late(leaders_losses, 0).size();
        violations += check("leaders mostly told after their terms",
                            2 * after_terms > leaders_losses.size() ? after_terms : 0);
        violations += check("modes without a hold once all was healthy", starved);
        violations += check("workers that failed", failed);
        if (failovers_) {
            violations += check("failovers after which the node gave no lock", failovers_->without_holds());
            if (!settings_.until_violation)
                violations += check("failovers missing", failovers_are_few() ? 1 : 0);
        }
        show(overlapping);
        show(regressions);
        show(late_losses);
        show(leaders_late_losses);
        for (const auto& key : stray) std::cout << "  " << key << '\n';
        std::cout << workers_.output() << (violations == 0 ? "nothing found" : "VIOLATIONS") << std::endl;
        return violations;
    }

    static std::vector<Hold> late(std::vector<Hold> losses, std::int64_t bound) {
        std::erase_if(losses, [bound](const Hold& hold) { return delay_of_report(hold) <= bound; });
        return losses;
    }

    static std::string delays_in_ms(const std::vector<Hold>& sorted) {
        std::ostringstream out;
        out << std::fixed << std::setprecision(2);
        for (const double share : {0.5, 0.99, 1.0}) {
            const auto at = static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1));
            out << (share > 0.5 ? ", " : "") << static_cast<double>(delay_of_report(sorted[at])) / 1e6;
        }
        return out.str();
    }

    static void row(const std::string& name, const std::string& value) {
        std::cout << std::left << std::setw(58) << name << value << '\n';
    }

    static std::size_t check(const std::string& name, std::size_t count) {
        row((count == 0 ? "ok         " : "VIOLATION  ") + name, std::to_string(count));
        return count;
    }

    template <class Finding>
    static void show(const std::vector<Finding>& findings) {
        constexpr std::size_t most = 10;
        for (std::size_t i = 0; i < std::min(most, findings.size()); ++i)
            std::cout << "  " << text(findings[i]) << '\n';
    }

    static std::deque<TcpProxy> links_to(Cluster& nodes) {
        std::deque<TcpProxy> links;
        for (const auto& node : nodes)
            for (int side = 0; side < 2; ++side) links.emplace_back(node.port());
        return links;
    }

    /// Returns the nodes behind each of the two sets of proxies. Both have the node that fails over.
    std::vector<std::vector<std::string>> node_lists() const {
        std::vector<std::vector<std::string>> result(2);
        if (group_)
            for (auto& nodes : result) nodes.push_back(group_->uri());
        if (redis_cluster_)
            for (auto& nodes : result) nodes.push_back(redis_cluster_->uri());
        for (std::size_t link = 0; link < links_.size(); ++link)
            result[link % 2].push_back(links_[link].name());
        return result;
    }

    Settings settings_;
    support::TemporaryDirectory directory_{};
    Cluster nodes_{settings_.ordinary_nodes(), settings_.server()};
    std::optional<SentinelGroup> group_ =
        settings_.nodes_with_failover > 0 ? std::optional<SentinelGroup>{std::in_place} : std::nullopt;
    std::optional<RedisClusterServers> redis_cluster_ =
        settings_.cluster
            ? std::optional<RedisClusterServers>{std::in_place, RedisClusterServers::Replicas::none,
                                                 RedisConfig{}.keeps_data().line(
                                                     "cluster-require-full-coverage no")}
            : std::nullopt;
    std::deque<TcpProxy> links_ = links_to(nodes_);
    WorkerPool workers_{settings_.lock_settings(), directory_ / "", node_lists()};
    HoldLog& log_ = workers_.log();
    std::mt19937_64 random_{settings_.seed};
    Nemesis nemesis_{nodes_, links_, workers_, settings_.restart(), settings_.seed};
    std::optional<Failovers> failovers_{};
    std::optional<SlotMoves> slot_moves_{};
};

}  // namespace
}  // namespace redlock::torture

int main(int argc, char** argv) {
    redlock::torture::Settings settings;
    double minutes = 0;
    bool no_quarantine = false;
    CLI::App app{"Redlock on real servers under faults"};
    app.add_option("--minutes", minutes, "How long (default 1)")->check(CLI::PositiveNumber);
    app.add_option("--seconds", settings.seconds, "The same in seconds")->check(CLI::PositiveNumber);
    app.add_option("--seed", settings.seed, "Of the faults; the processes themselves are not repeatable");
    app.add_flag("--no-quarantine", no_quarantine, "The control: violations are to be found");
    app.add_flag("--keep-data", settings.keep_data,
                 "Servers that write every key to their disks: no quarantine");
    app.add_option("--failover", settings.nodes_with_failover,
                   "Of so many nodes the first fails over; without: five nodes, and none does")
        ->check(CLI::IsMember({1, 3}))
        ->excludes("--keep-data");
    app.add_flag("--cluster", settings.cluster, "The only node is a Redis Cluster, whose slots are moved")
        ->excludes("--failover")
        ->excludes("--keep-data");
    app.add_flag("--until-violation", settings.until_violation, "Stop at the first overlap");
    CLI11_PARSE(app, argc, argv);
    if (minutes > 0) settings.seconds = 60 * minutes;
    settings.quarantine = !no_quarantine && !settings.keep_data && !settings.cluster;
    try {
        return redlock::torture::Torture{settings}.run() == 0 ? 0 : 1;
    } catch (const std::exception& error) {
        std::cerr << "torture: " << error.what() << '\n';
        return 2;
    }
}
