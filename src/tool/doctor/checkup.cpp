#include "checkup.hpp"

#include "admin_connection.hpp"
#include "diagnosis.hpp"
#include "lock/option_checks.hpp"
#include "round/cluster_map.hpp"
#include "text/lock_status.hpp"
#include "wire/key_names.hpp"

#include <redlock/error.hpp>
#include <redlock/resources.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <future>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

constexpr std::chrono::milliseconds probe_ttl = 10s;

/// Returns the time in a reply to TIME, which is a list of seconds and microseconds.
std::optional<microseconds> time_of(const Answer& answer) {
    std::string_view rest = answer.reply.text;
    const auto whole = duration_of<std::chrono::seconds>(detail::cut_word(rest, '\n'));
    const auto part = duration_of<microseconds>(rest);
    if (!answer || !whole || !part) return std::nullopt;
    return *whole + *part;
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
        probe();
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
        auto& failover = facts_.failover.emplace();
        failover.min_replicas = detail::whole_number<std::uint64_t>(setting("min-replicas-to-write"));
        failover.max_lag = duration_of<std::chrono::seconds>(setting("min-replicas-max-lag"));
        failover.backlog_ttl = duration_of<std::chrono::seconds>(setting("repl-backlog-ttl"));
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
        cluster.unserved = detail::hash_slot_count;
        RedisCluster servers{NodeConfig::of(admin_.endpoint(), plan_.nodes.node_timeout)};
        servers.learn(answer.reply.text, admin_.server().host);
        for (const auto& master : detail::parse_cluster_nodes(answer.reply.text)) {
            for (const auto& [first, last] : master.hash_slots)
                cluster.unserved -= std::min<std::size_t>(cluster.unserved, last - first + 1U);
            const auto server = servers.server_of(master.hash_slots.front().first);
            if (server) check_server(server->endpoint, master.moves_hash_slots, cluster);
        }
    }

    void check_server(const Endpoint& server, bool moves_hash_slots, ClusterFacts& cluster) const {
        if (moves_hash_slots) cluster.moving.push_back(server.name());
        const auto error = error_of(AdminConnection{server, plan_.nodes.node_timeout}.connect());
        if (error) cluster.unreachable.push_back(server.name() + " (" + reason_of(error) + ")");
    }

    /// Returns the value of a setting, or an empty text if it is unknown.
    std::string setting(const char* name) {
        const auto answer = admin_.ask({"CONFIG", "GET", name});
        facts_.config_error = error_of(answer);
        std::string_view value = answer.reply.text;  // behind the name
        (void)detail::cut_word(value, '\n');
        return answer ? std::string{value} : "";
    }

    // ---- The probe

    /// Tries whether the node permits what locks need. Acquires, extends and releases a lock on this one
    /// node, with the rounds of the library. If the plan asks for it, writes the marker of the quarantine.
    /// Also tries the commands that fencing, a quarantine and a queue need.
    void probe() {
        lock_and_unlock();
        if (plan_.nodes.quarantine > 0ms && plan_.mark) place_marker();
        if (plan_.lock.fencing)
            try_counter("count the holders for fencing",
                        detail::key_of(detail::KeyKind::counter, plan_.resource).text());
        if (plan_.nodes.quarantine > 0ms) try_counter("keep a quarantine", std::string{detail::marker_key});
        if (plan_.lock.fair) try_queue();
    }

    NodeReport ask(RedisNodes& nodes, Verb verb, std::chrono::milliseconds ttl = {}) const {
        return nodes.ask({.command = {verb, resources_, owner_, ttl}})[0];
    }

    /// Tries to release first, when there is nothing to release. If that is not permitted, acquires for one
    /// millisecond only, because the key could not be deleted afterwards.
    void lock_and_unlock() {
        RedisNodes nodes{{admin_.endpoint()}, {.node_timeout = plan_.nodes.node_timeout}};
        const auto record = [&](const char* verb, const char* permissions, const NodeReport& report) {
            facts_.permission_checks.push_back({verb, plan_.resource, permissions, error_of(report)});
            return report.vote;
        };
        const auto* const to_release = "+eval +evalsha +get +del";
        try_commands_of_scripts();
        const bool allowed = facts_.permission_checks.empty();
        const auto released = record("release", to_release, ask(nodes, Verb::compare_and_delete));
        const auto ttl = allowed && released != Vote::unknown ? probe_ttl : 1ms;
        const auto acquired = record("acquire", "+set", ask(nodes, Verb::set_if_absent, ttl));
        (void)record("extend", "+eval +evalsha +get +pttl +pexpire",
                     ask(nodes, Verb::compare_and_expire, ttl + ttl));
        facts_.probe_was_held = acquired == Vote::refused;
        if (released != Vote::unknown && acquired != Vote::refused)
            (void)record("release", to_release, ask(nodes, Verb::compare_and_delete));
    }

    /// Tries the commands of the scripts one by one, because not every server says which command of a script
    /// is forbidden. Uses a key that does not exist. If an ACL forbids only the key, the command counts as
    /// permitted.
    void try_commands_of_scripts() {
        const auto key = plan_.resource + ":doctor-" + owner_;
        try_commands(admin_, {{"GET", key}, {"DEL", key}}, {"release", plan_.resource, ""}, true);
        try_commands(admin_, {{"PTTL", key}, {"PEXPIRE", key, "1"}}, {"extend", plan_.resource, ""}, true);
    }

    /// Writes the marker in the same way as the first acquisition on a new node.
    void place_marker() {
        RedisNodes nodes{{admin_.endpoint()},
                         {.node_timeout = plan_.nodes.node_timeout, .quarantine = plan_.nodes.quarantine}};
        const auto report = ask(nodes, Verb::set_if_absent, probe_ttl);
        if (report.cause != Errc::quarantined)
            facts_.permission_checks.push_back(
                {"place the marker of the quarantine", std::string{detail::marker_key},
                 "+eval +set +get +pttl +pexpire +exists +time +info", error_of(report)});
        if (report.vote != Vote::refused) (void)ask(nodes, Verb::compare_and_delete);
    }

    /// Tries the further commands one by one. None of them changes `key`. SET with both NX and XX, and
    /// PEXPIRE with a word, are errors that the server reports only to a user who has the permission.
    void try_counter(const std::string& verb, const std::string& key) {
        const std::vector<Words> commands{{"SET", key, "", "NX", "XX"},  // never writes
                                          {"PEXPIRE", key, "never"},
                                          {"GET", key},
                                          {"PTTL", key},
                                          {"EXISTS", plan_.resource},
                                          {"INFO", "server"},
                                          {"INFO", "replication"},
                                          {"TIME"}};
        try_commands(admin_, commands, {verb, key, "+set +get +pttl +pexpire +exists +info +time"});
    }

    /// Tries the commands of a queue on the queue of the resource itself, in which other clients may be
    /// waiting. None of them changes the queue or its expiry. A connection that has subscribed can send
    /// nothing else, so SUBSCRIBE is tried on a connection of its own.
    void try_queue() {
        const auto key = detail::key_of(detail::KeyKind::queue, plan_.resource).text();
        const auto channel = "redlock:wake:doctor-" + owner_;
        const std::vector<Words> commands{{"ZRANGE", key, "0", "0"}, {"ZADD", key, "XX", "0", channel},
                                          {"ZREM", key, channel},    {"ZRANK", key, channel},
                                          {"ZPOPMIN", key, "0"},     {"EXISTS", key},
                                          {"PEXPIRE", key, "never"}, {"TIME"}};
        constexpr const char* verb = "keep a queue";
        try_commands(admin_, commands, {verb, key, "", {}, false});
        const PermissionCheck of_channel{verb, channel, "&redlock:wake:*", {}, false};
        try_commands(admin_, {{"PUBLISH", channel, ""}}, of_channel);
        AdminConnection listener{admin_.endpoint(), plan_.nodes.node_timeout};
        if (listener.connect()) try_commands(listener, {{"SUBSCRIBE", channel}}, of_channel);
    }

    /// Records a failure for each command if the ACL forbids the command or, unless `with_any_key`, the key.
    /// Other errors do not matter here.
    void try_commands(AdminConnection& admin, const std::vector<Words>& commands, PermissionCheck check,
                      bool with_any_key = false) {
        for (const auto& words : commands) {
            check.error = error_of(admin.ask(words));
            if (check.error.cause == Errc::permission_denied &&
                (!with_any_key || missing_permission(check).starts_with('+')))
                facts_.permission_checks.push_back(check);
        }
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
        // A marker with another identity belongs to other data (marker_key).
        const auto identity = facts_.info.run_id + ":" + facts_.info.replication_id + ":";
        if (!marker.reply.text.starts_with(identity)) return;
        const auto since = duration_of<microseconds>(marker.reply.text.substr(identity.size()));
        if (!since) return;
        const auto until = *since + plan_.nodes.quarantine;
        facts_.marker->placed = true;
        facts_.marker->left = std::max(std::chrono::ceil<std::chrono::milliseconds>(until - *now), 0ms);
        facts_.marker->until = std::chrono::system_clock::time_point{until};
    }

    const CheckupPlan& plan_;
    AdminConnection admin_;
    NodeFacts& facts_;
    // Of the probe
    const std::string owner_ = random_owner();
    const std::vector<std::string> resources_ = detail::checked_resources({plan_.resource});
};

}  // namespace

std::vector<NodeFacts> check_up(const std::vector<Endpoint>& endpoints, const CheckupPlan& plan) {
    // Throws if no lock could use the endpoints.
    const RedisNodes nodes{endpoints, {.node_timeout = plan.nodes.node_timeout}};
    detail::check_for_cluster(nodes, std::array{plan.resource}, plan.lock);
    std::vector<NodeFacts> facts(endpoints.size());
    std::deque<Checkup> checkups;
    std::vector<std::future<void>> runs;  // destroyed first, because the destructor of each waits for its end
    for (std::size_t node = 0; node < endpoints.size(); ++node) {
        auto& checkup = checkups.emplace_back(endpoints[node], plan, facts[node]);
        runs.push_back(std::async(std::launch::async, [&checkup] { checkup.run(); }));
    }
    for (auto& run : runs) run.get();
    for (auto& checkup : checkups) checkup.read_clock();
    return facts;
}

}  // namespace redlock::tool
