#include "checkup.hpp"

#include "round/cluster_map.hpp"
#include "wire/quarantine.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <future>
#include <sstream>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

/// Returns the elements of a reply that is a list.
std::vector<std::string> elements_of(const std::string& text) {
    std::vector<std::string> elements;
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) elements.push_back(line);
    return elements;
}

std::optional<microseconds> time_of(const Answer& answer) {
    const auto elements = elements_of(answer.reply.text);
    if (!answer || elements.size() != 2) return std::nullopt;
    const auto whole = duration_of<std::chrono::seconds>(elements[0]);
    const auto rest = duration_of<microseconds>(elements[1]);
    if (!whole || !rest) return std::nullopt;
    return *whole + *rest;
}

/// Collects the facts about one node.
class Checkup {
public:
    Checkup(const Endpoint& endpoint, const CheckupPlan& plan, NodeFacts& facts)
        : plan_(plan), admin_(endpoint, plan.nodes.node_timeout), facts_(facts) {
        facts_.name = endpoint.name();
        if (!endpoint.username.empty()) facts_.user = endpoint.username;
    }

    void run() {
        facts_.unreachable = error_of(admin_.connect());
        if (facts_.unreachable) return;
        measure_round_trip();
        read_info();
        read_config();
        if (!admin_.endpoint().seeds.empty()) read_cluster();
        probe(admin_, plan_, facts_);
        if (plan_.nodes.quarantine > 0ms) read_marker();
    }

    /// Compares the server's clock with the local one. Assumes that half of the round trip has passed since
    /// the server read its clock.
    void read_clock() {
        if (facts_.unreachable) return;
        const auto start = boot_clock().now();
        const auto answer = admin_.ask({"TIME"});
        facts_.clock_error = error_of(answer);
        if (const auto time = time_of(answer))
            facts_.clock_offset = *time - (start + answer.took / 2).time_since_epoch();
    }

private:
    /// Takes the median of several PINGs. If the user may not call PING, the error takes as long as the
    /// answer would.
    void measure_round_trip() {
        std::array<std::chrono::nanoseconds, 5> times{};
        for (auto& time : times) time = admin_.ask({"PING"}).took;
        std::ranges::sort(times);
        facts_.round_trip = times[times.size() / 2];
    }

    void read_info() {
        const auto answer = admin_.ask({"INFO"});
        facts_.info_error = error_of(answer);
        if (answer) facts_.info = ServerInfo::parse(answer.reply.text);
    }

    void read_config() {
        facts_.appendfsync = setting("appendfsync");
        if (admin_.endpoint().sentinels.empty()) return;
        const auto span = [this](const char* name) {
            return duration_of<std::chrono::seconds>(setting(name));
        };
        auto& failover = facts_.failover.emplace();
        failover.min_replicas = detail::whole_number<std::uint64_t>(setting("min-replicas-to-write"));
        failover.max_lag = span("min-replicas-max-lag");
        failover.backlog_ttl = span("repl-backlog-ttl");
        failover.listed = admin_.endpoint().sentinels.size();
        failover.sentinels = sentinels_of_master();
    }

    /// Asks the Sentinels of the address until one tells the number.
    std::optional<std::uint64_t> sentinels_of_master() const {
        for (const auto& sentinel : admin_.endpoint().sentinels) {
            AdminConnection connection{sentinel, plan_.nodes.node_timeout};
            if (!connection.connect()) continue;
            const auto info = connection.ask({"INFO", "sentinel"}).reply.text;
            if (const auto number = sentinels_in(info, admin_.endpoint().master)) return number;
        }
        return std::nullopt;
    }

    void read_cluster() {
        auto& cluster = facts_.cluster.emplace();
        cluster.asked = admin_.server().name();
        cluster.full_coverage = setting("cluster-require-full-coverage");
        const auto answer = admin_.ask({"CLUSTER", "NODES"});
        cluster.list_error = error_of(answer);
        if (!answer) return;
        cluster.unserved = detail::cluster_slots;
        RedisCluster servers{NodeConfig::of(admin_.endpoint(), plan_.nodes.node_timeout)};
        servers.learn(answer.reply.text, admin_.server().host);
        for (const auto& master : detail::parse_cluster_nodes(answer.reply.text)) {
            for (const auto& [first, last] : master.slots)
                cluster.unserved -= std::min<std::size_t>(cluster.unserved, last - first + 1U);
            const auto server = servers.server_of(master.slots.front().first);
            if (server) check_server(server->endpoint, master.moves_slots, cluster);
        }
    }

    void check_server(const Endpoint& server, bool moves_slots, ClusterFacts& cluster) const {
        if (moves_slots) cluster.moving.push_back(server.name());
        const auto error = error_of(AdminConnection{server, plan_.nodes.node_timeout}.connect());
        if (error) cluster.unreachable.push_back(server.name() + " (" + reason_of(error) + ")");
    }

    /// Returns the value of a setting, or an empty text if it is unknown.
    std::string setting(const char* name) {
        const auto answer = admin_.ask({"CONFIG", "GET", name});
        facts_.config_error = error_of(answer);
        const auto elements = elements_of(answer.reply.text);
        return answer && elements.size() == 2 ? elements[1] : "";
    }

    void read_marker() {
        if (facts_.info.run_id.empty()) return;
        const std::string name{detail::marker_key};
        const auto marker = admin_.ask({"GET", name});
        const auto now = time_of(admin_.ask({"TIME"}));
        facts_.permission_checks.push_back(
            {"read the marker of the quarantine", name, "+get", error_of(marker)});
        if (!marker || !now) return;
        facts_.marker.emplace();
        const auto instant = detail::instant_in_marker(marker.reply.text,
                                                       facts_.info.run_id + ":" + facts_.info.replication_id);
        const auto since = duration_of<microseconds>(instant.value_or(""));
        if (!since) return;
        const auto until = *since + plan_.nodes.quarantine;
        facts_.marker->placed = true;
        facts_.marker->left = std::max(std::chrono::ceil<std::chrono::milliseconds>(until - *now), 0ms);
        facts_.marker->until = std::chrono::system_clock::time_point{until};
    }

    const CheckupPlan& plan_;
    AdminConnection admin_;
    NodeFacts& facts_;
};

}  // namespace

std::vector<NodeFacts> check_up(const std::vector<Endpoint>& endpoints, const CheckupPlan& plan) {
    // Throws if no lock could use the endpoints.
    const RedisNodes nodes{endpoints, {.node_timeout = plan.nodes.node_timeout}};
    detail::check_for_cluster(nodes, std::array{plan.resource}, plan.lock);
    std::vector<NodeFacts> facts(endpoints.size());
    std::deque<Checkup> checkups;
    for (std::size_t node = 0; node < endpoints.size(); ++node)
        checkups.emplace_back(endpoints[node], plan, facts[node]);
    std::vector<std::future<void>> runs;
    runs.reserve(checkups.size());
    for (auto& checkup : checkups)
        runs.push_back(std::async(std::launch::async, [&checkup] { checkup.run(); }));
    for (auto& run : runs) run.get();
    for (auto& checkup : checkups) checkup.read_clock();
    return facts;
}

}  // namespace redlock::tool
