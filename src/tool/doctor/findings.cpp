#include "diagnosis.hpp"

#include "text/span.hpp"
#include "wire/causes.hpp"

#include <redlock/error.hpp>

#include <algorithm>
#include <array>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

// ---- What a server reports of itself

/// How much longer than min-replicas-max-lag a former master may still be used as the master:
///
/// - 2 s: it checks its replicas once a second, and counts in whole seconds;
/// - 2 s: the interval at which Sentinels report a new master to each other;
/// - 1 s: the time after which a client asks the Sentinels again;
/// - 1 s: a reserve.
constexpr auto failover_slack = 6s;

/// What to change if a server is a member of a Redis Cluster.
constexpr auto* remedy_for_cluster =
    "cluster-enabled no, on independent servers, or an address that begins with redis+cluster://";

constexpr auto* forgetting_matters = "a node that forgets a key can grant the same lock to a second holder";

/// Returns true if a member of a Redis Cluster has refused a key that is not in its slots.
bool is_refusal_of_cluster(const NodeError& error) {
    constexpr std::array words{"MOVED", "ASK", "CLUSTERDOWN", "CROSSSLOT"};
    return std::ranges::any_of(words, [&](const char* word) { return error.detail.starts_with(word); });
}

/// Returns true if the server has no password, so that every password is wrong.
bool rejects_any_password(const NodeError& error) {
    return error.detail.find("without any password configured") != std::string::npos ||
           error.detail.find("no password is set") != std::string::npos;
}

/// Returns the hint at the end of a detail (causes.hpp), or an empty text.
std::string_view hint_in(std::string_view text) {
    constexpr auto& all = detail::hints::all;
    const auto* const hint = std::ranges::find_if(all, [&](auto it) { return text.ends_with(it); });
    return hint == all.end() ? std::string_view{} : *hint;
}

std::string remedy_for(const NodeError& error, const NodeFacts& node) {
    if (const auto hint = hint_in(error.detail); !hint.empty())
        return std::string{hint} + (hint == detail::hints::with_tls
                                        ? "; or look whether the proxy in front of it has a server"
                                        : "");
    if (error.detail.starts_with("MISCONF"))
        return "make it save its data again: its log says why it could not, for example because the disk is "
               "full";
    if (error.detail.ends_with("the name of the host is not resolved yet"))
        return "check the name, and the name servers of this host";
    if (error.detail.find("the master that they name") != std::string::npos)
        return "start this server; or, if clients cannot reach this address, set replica-announce-ip on all "
               "servers of the node";
    if (error.cause == Errc::permission_denied) return "look at ACL GETUSER " + node.user;
    if (is_refusal_of_cluster(error))
        return node.cluster ? "start the servers that are down; redis-cli --cluster check shows what is wrong"
                            : remedy_for_cluster;
    if (error.cause == Errc::connection_failed && node.name.starts_with('/'))
        return "start the server, or correct the path; check unixsocket, unixsocketperm, maxclients and the "
               "permissions of the directory";
    if (error.cause == Errc::authentication_failed && rejects_any_password(error))
        return "remove the password from the node's address, or give the server one with requirepass";
    if (error.detail.starts_with("ERR wrong number of arguments for 'auth'"))
        return "remove the user name from the node's address: servers before Redis 6 have only a password";
    const auto* const row = detail::find_error(static_cast<Errc>(error.cause.value()));
    return std::string{row && !row->advice.empty() ? row->advice : "read the log of the server"};
}

std::string megabytes(std::uint64_t bytes) {
    return formatted("%.1f MB", static_cast<double>(bytes) / 1024 / 1024);
}

std::string remedy_for_forgetting(const CheckupPlan& plan) {
    return "appendonly yes with appendfsync always, or --quarantine " + argument_of(plan.lock.ttl) +
           " in every client, or keep a crashed node away for " + text_of(plan.lock.ttl);
}

void judge_version(const NodeFacts& node, const CheckupPlan&, Findings& findings) {
    const auto& info = node.info;
    if (info.redis_version.empty()) return;
    const auto version = parse_version(info.redis_version);
    const auto what = "it is " + info.make + " " + info.version;
    if (version < Version{2, 6, 12})
        findings.push_back({Severity::unsafe, "version", what,
                            "before 2.6.12 there is no SET with NX and PX, so no lock can be acquired",
                            "upgrade the server", false});
    else if (version < Version{6, 0, 0})
        findings.push_back({Severity::warning, "version", what,
                            "versions before 6 are no longer maintained, and they have no ACL",
                            "upgrade the server"});
}

/// Judges the role of the server in a replication.
void judge_role(const NodeFacts& node, const CheckupPlan&, Findings& findings) {
    const auto& info = node.info;
    if (node.cluster) return;
    if (!info.role.empty() && info.role != "master")  // also KeyDB's active-replica
        findings.push_back(
            {Severity::unsafe, "role", "its role is " + info.role,
             "replication is asynchronous: a replica may lack locks that its master has granted",
             "make it a master (REPLICAOF NO ONE), and use a separate server for each node", false});
    else if (!node.failover && info.replicas.value_or(0) > 0)
        findings.push_back(
            {Severity::hint, "role", "it has replicas (" + std::to_string(*info.replicas) + ")",
             "a replica that replaces it may lack locks that it has granted",
             "no automatic failover of this node; the other nodes keep the locks while it is down"});
}

/// Judges whether it belongs to a cluster.
void judge_mode(const NodeFacts& node, const CheckupPlan&, Findings& findings) {
    if (node.info.mode == "cluster" && !node.cluster)
        findings.push_back({Severity::warning, "mode", "it is a member of a Redis Cluster",
                            "it serves only its own slots, and its replicas are promoted automatically",
                            remedy_for_cluster});
}

/// Judges a node that is a Redis Cluster.
void judge_cluster(const NodeFacts& node, const CheckupPlan&, Findings& findings) {
    if (!node.cluster) return;
    const auto& cluster = *node.cluster;
    const auto warn = [&](const std::string& what, const std::string& why, const std::string& remedy) {
        findings.push_back({Severity::warning, "cluster", what, why, remedy});
    };
    const auto hint = [&](const std::string& what, const std::string& why, const std::string& remedy) {
        findings.push_back({Severity::hint, "cluster", what, why, remedy});
    };
    warn("it is a Redis Cluster, whose replicas are promoted automatically",
         "two clients can hold the lock after a failover; a replica may lack locks that its master has "
         "granted",
         "independent servers, or a master with Sentinels and --quarantine, if exclusion must survive a "
         "failover");
    hint("only its server " + cluster.asked + " was checked in detail",
         "memory, persistence and permissions of the others are unknown",
         "check the other servers in the same way, one by one");
    if (cluster.list_error)
        warn("CLUSTER NODES is not answered: " + reason_of(cluster.list_error),
             "its servers are found by redirections, and it is unknown whether all slots have a master",
             cluster.list_error.cause == Errc::permission_denied
                 ? "ACL SETUSER " + node.user + " +cluster|nodes"
                 : remedy_for(cluster.list_error, node));
    if (cluster.unserved > 0)
        warn(std::to_string(cluster.unserved) + " of its slots have no master",
             "no resource of these slots can be locked", "redis-cli --cluster fix");
    for (const auto& server : cluster.unreachable)
        warn("its server " + server + " cannot be reached", "no resource of its slots can be locked",
             "start the server, or make it announce an address that clients can reach "
             "(cluster-announce-ip, cluster-announce-port)");
    for (const auto& server : cluster.moving)
        hint("its server " + server + " is moving slots",
             "a lock of several resources of such a slot, or a shared lock, may have to wait until it has "
             "moved",
             "if no move is under way: redis-cli --cluster fix");
    if (cluster.full_coverage != "no")
        hint("cluster-require-full-coverage is " +
                 (cluster.full_coverage.empty() ? "unknown" : cluster.full_coverage),
             "if it is yes, and the slots of one server fail, no resource can be locked at all",
             "cluster-require-full-coverage no");
}

/// Judges whether two clients could hold the same lock after a failover of the server.
void judge_failover(const NodeFacts& node, const CheckupPlan& plan, Findings& findings) {
    if (!node.failover) return;
    const auto& facts = *node.failover;
    const auto warn = [&](const std::string& what, const std::string& why, const std::string& remedy) {
        findings.push_back({Severity::warning, "failover", what, why, remedy});
    };
    const auto* const two_holders = "two clients can hold the lock, one on each side of a failover";
    if (facts.sentinels > facts.listed)
        warn("its address lists " + std::to_string(facts.listed) + " of " + std::to_string(*facts.sentinels) +
                 " Sentinels",
             "a Sentinel that lacks the others can name another master, and nobody finds the master while "
             "the listed ones are down",
             "list all Sentinels in the address of the node, in every client");
    const auto least = plan.lock.ttl + facts.max_lag.value_or(10s) + failover_slack;
    const auto enough = std::string{"--quarantine "} + argument_of(least) + " or more, in every client";
    if (plan.nodes.quarantine == 0ms)
        warn("Sentinels name it, and there is no quarantine", two_holders, enough);
    else if (plan.nodes.quarantine < least)
        warn("the quarantine of " + text_of(plan.nodes.quarantine) +
                 " is shorter than the sum of the ttl, min-replicas-max-lag and " + text_of(failover_slack),
             two_holders, enough);
    if (facts.min_replicas == 0U || facts.max_lag == 0s)
        warn("it takes writes without a replica",
             "a former master that is cut off continues to grant locks for ever",
             "min-replicas-to-write 1 and min-replicas-max-lag 10, with two replicas or more");
    // A former master and the server that replaces it can both have enough replicas unless this many are
    // needed.
    const auto needed = (node.info.replicas.value_or(0) + 1) / 2;
    if (facts.min_replicas > 0U && facts.min_replicas < needed)
        warn("min-replicas-to-write is " + std::to_string(*facts.min_replicas) + ", and it has " +
                 std::to_string(*node.info.replicas) + " replicas",
             "a former master that keeps enough of them on its side of a partition continues to grant locks",
             "min-replicas-to-write " + std::to_string(needed));
    const auto version = parse_version(node.info.redis_version);
    if (!node.info.redis_version.empty() && version < Version{6, 2, 7})
        warn("it is " + node.info.make + " " + node.info.version,
             "before 6.2.7 scripts write even without the replicas that min-replicas-to-write requires",
             "upgrade the server");
    if (facts.backlog_ttl.value_or(0s) > 0s)
        warn("repl-backlog-ttl is " + text_of(*facts.backlog_ttl),
             "after this time without a replica its quarantine begins again", "repl-backlog-ttl 0");
    if (!node.config_error && !(facts.min_replicas && facts.max_lag))
        warn("it has no min-replicas-to-write, or no min-replicas-max-lag",
             "it is unknown for how long a former master continues to grant locks",
             "find out from its documentation when it stops accepting writes without a replica");
}

/// Judges whether the server can delete a key before it expires, and whether it has no memory for another
/// key.
void judge_memory(const NodeFacts& node, const CheckupPlan&, Findings& findings) {
    const auto& info = node.info;
    if (info.max_memory.value_or(0) == 0) return;
    if (!info.eviction.empty() && info.eviction != "noeviction")
        findings.push_back(
            {Severity::unsafe, "eviction",
             "it evicts keys: maxmemory " + megabytes(*info.max_memory) + ", maxmemory-policy " +
                 info.eviction,
             std::string{"the keys of locks are evicted like any other key; "} + forgetting_matters,
             "maxmemory-policy noeviction"});
    if (!info.used_memory) return;
    const auto share = static_cast<double>(*info.used_memory) / static_cast<double>(*info.max_memory);
    const auto what =
        megabytes(*info.used_memory) + " of maxmemory " + megabytes(*info.max_memory) + " are used";
    const auto* const remedy = "set a larger maxmemory, or delete keys on this server";
    if (share >= 1)
        findings.push_back({Severity::unsafe, "memory", what,
                            "it answers every SET with OOM, so it grants no lock", remedy, false});
    else if (share > 0.9)
        findings.push_back({Severity::warning, "memory", what,
                            "when it is full it answers every SET with OOM and grants no lock", remedy});
}

/// Judges whether the server can lose keys in a crash, or may just have lost some.
void judge_persistence(const NodeFacts& node, const CheckupPlan& plan, Findings& findings) {
    const bool appends = node.info.appendonly.value_or(false);
    const bool is_unknown = !node.info.appendonly || (appends && node.appendfsync.empty());
    if (plan.nodes.quarantine > 0ms || is_unknown || (appends && node.appendfsync == "always")) return;
    findings.push_back(
        {Severity::warning, "persistence",
         "a crash can take its last writes: appendonly " +
             (appends ? "yes, appendfsync " + node.appendfsync : "no"),
         forgetting_matters,
         node.cluster ? "appendonly yes with appendfsync always" : remedy_for_forgetting(plan)});
    if (node.info.uptime && *node.info.uptime < plan.lock.ttl)
        findings.push_back({Severity::warning, "uptime",
                            "it was started " + text_of_age(*node.info.uptime) +
                                " ago, less than the ttl of " + text_of(plan.lock.ttl),
                            "it may have lost locks that it granted before",
                            "let it take part only after it has been up for the ttl"});
}

/// Says which questions the server does not answer.
void judge_silence(const NodeFacts& node, const CheckupPlan& plan, Findings& findings) {
    const auto tell = [&](const char* subject, const std::string& command, const NodeError& error,
                          const char* what, const std::string& permission) {
        if (!error) return;
        findings.push_back(
            {Severity::warning, subject,
             command + " is not answered: " + error.cause.message() +
                 (error.detail.empty() ? "" : " (" + error.detail + ")"),
             std::string{what} + " unknown",
             error.cause == Errc::permission_denied
                 ? "ACL SETUSER " + node.user + " " + permission + ", at least for this checkup"
                 : "check if the server has renamed the command, or answers late",
             true, error});
    };
    tell("info", "INFO", node.info_error, "version, role, memory and persistence are", "+info");
    if (node.failover)
        tell("failover", "CONFIG GET", node.config_error, "the time for which a former master continues is",
             "+config|get");
    else if (plan.nodes.quarantine == 0ms && node.info.appendonly.value_or(false))
        tell("persistence", "CONFIG GET", node.config_error, "whether a crash can take its last writes stays",
             "+config|get");
    tell("clock", "TIME", node.clock_error, "the error of its clock is", "+time");
}

// ---- Whether a node answers, and whether it does what a lock needs

/// Returns the text between the first two quotes, for example 'eval' or 'config|get'.
std::string quoted_word(const std::string& text) {
    const auto begin = text.find_first_of("'`");
    const auto end = begin == text.npos ? begin : text.find(text[begin], begin + 1);
    return end == text.npos ? std::string{} : text.substr(begin + 1, end - begin - 1);
}

bool is_command(const std::string& word) {
    return !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz|_-") == word.npos;
}

/// Returns true if INFO has reported the same problem. That report is more precise.
bool is_told_by_info(const PermissionCheck& check, const ServerInfo& info) {
    if (check.error.cause == Errc::read_only) return info.role == "replica";
    const bool full = info.max_memory.value_or(0) > 0 && info.used_memory.value_or(0) >= *info.max_memory;
    return check.error.cause == Errc::out_of_memory && full;
}

Finding forbidden(const PermissionCheck& check, const NodeFacts& node, const std::string& what) {
    const auto permission = missing_permission(check);
    const auto rule = "ACL SETUSER " + node.user + " " + permission;
    // The random name of the probe says nothing about the names that the locks use.
    if (permission.starts_with("~redlock:doctor:") || permission.starts_with("~{redlock:doctor:"))
        return {Severity::warning, "acl", "it does not allow the resource of the probe, " + check.key,
                "so the operations of a lock could not be tried",
                "--probe with a resource that the ACL allows"};
    if (!check.votes)
        return {Severity::warning, "acl", what,
                "waiters use the queue of another node; if no node can keep one, they retry with pauses",
                rule};
    return {Severity::unsafe, "acl", what, "the node cannot fully take part in locks", rule, false};
}

/// Returns what it means that operations fail for another reason than a missing permission.
std::string effect_of_failures(const NodeFacts& node) {
    const auto fails = [&](const char* verb) {
        return std::ranges::any_of(node.permission_checks,
                                   [&](const auto& it) { return it.verb == verb && it.error; });
    };
    if (fails("acquire")) return "it grants no lock";
    if (!fails("release") && !fails("extend")) return "the node cannot fully take part in locks";
    if (!fails("release")) return "it grants locks, and cannot extend them";
    const auto* const what = fails("extend") ? "can neither extend nor release them" : "cannot release them";
    return std::string{"it grants locks, and "} + what + ", so each of them stays until its ttl ends";
}

Finding failed(const PermissionCheck& check, const NodeFacts& node) {
    const auto what = "it cannot " + check.verb + ": " + reason_of(check.error);
    if (check.error.cause == Errc::permission_denied) return forbidden(check, node, what);
    const auto* const subject = check.error.cause == Errc::out_of_memory ? "memory"
                                : check.error.cause == Errc::read_only   ? "role"
                                                                         : "check";
    const bool is_unknown = check.error.detail.starts_with("ERR unknown command ");
    const auto command = is_unknown ? quoted_word(check.error.detail) : std::string{};
    const auto remedy = command.empty()
                            ? remedy_for(check.error, node)
                            : "remove rename-command " + command + " from the server's redis.conf";
    return {Severity::unsafe, subject, what, effect_of_failures(node), remedy, false};
}

void judge_speed(const NodeFacts& node, const CheckupPlan& plan, Findings& findings) {
    if (!node.round_trip || *node.round_trip <= plan.nodes.node_timeout / 2) return;
    findings.push_back({Severity::warning, "speed",
                        "a round trip takes " + text_of(*node.round_trip) + " of a node_timeout of " +
                            text_of(plan.nodes.node_timeout),
                        "if it takes a little longer, its votes come too late to count",
                        "--node-timeout " +
                            argument_of(std::chrono::ceil<std::chrono::milliseconds>(4 * *node.round_trip)) +
                            " or more, or a node that is nearer"});
}

/// Judges the operations that failed, with the ACL rule to add if a permission is missing. Adds one finding
/// for each thing to change. Several operations may lack the same permission.
void judge_permissions(const NodeFacts& node, const CheckupPlan&, Findings& findings) {
    const auto others = static_cast<std::ptrdiff_t>(findings.size());
    for (const auto& check : node.permission_checks) {
        if (!check.error || is_told_by_info(check, node.info)) continue;
        auto finding = failed(check, node);
        finding.cause = check.error;
        const bool several = check.permissions.find(' ') != check.permissions.npos;
        const bool vague = several && missing_permission(check) == check.permissions;
        const auto same = [&](const Finding& it) {
            return it.subject == finding.subject && (it.remedy == finding.remedy || vague);
        };
        if (std::none_of(findings.begin() + others, findings.end(), same))
            findings.push_back(std::move(finding));
    }
    if (node.probe_was_held)
        findings.push_back({Severity::hint, "acl", "the resource of the probe is held by another client",
                            "extending and releasing could not be tried completely",
                            "another --probe that the ACL allows"});
}

/// Judges whether the node is in quarantine.
void judge_quarantine(const NodeFacts& node, const CheckupPlan& plan, Findings& findings) {
    if (plan.nodes.quarantine == 0ms || !node.marker) return;
    if (!node.marker->placed)
        findings.push_back(
            {Severity::warning, "quarantine", "it has no marker of the quarantine yet",
             "it will have no vote for " + text_of(plan.nodes.quarantine) + " after the first acquisition",
             "redlock doctor --mark --quarantine " + argument_of(plan.nodes.quarantine) +
                 ", when the node is set up",
             false});
    else if (node.marker->left > 0ms)
        findings.push_back({Severity::warning, "quarantine",
                            "it is in quarantine for another " + text_of(node.marker->left),
                            "it may have lost data, so it has no vote until then",
                            "wait until the quarantine is over", false});
}

}  // namespace

std::string missing_permission(const PermissionCheck& check) {
    const auto& words = check.error.detail;
    if (const auto command = quoted_word(words); is_command(command)) return "+" + command;
    if (words.find("key") != words.npos) return "~" + check.key;
    return check.permissions;
}

Findings findings_of(const NodeFacts& node, const CheckupPlan& plan) {
    if (const auto& error = node.unreachable)
        return {{Severity::unreachable, "reach", reason_of(error), "it has no vote", remedy_for(error, node),
                 false, error}};
    if (node.info.mode == "sentinel")  // it knows none of the commands that were tried
        return {{Severity::unsafe, "mode", "it is a sentinel", "a sentinel stores no keys",
                 "give the address of a server that takes part in no failover, or redis+sentinel://" +
                     node.name + "/MASTER",
                 false}};
    Findings findings;
    for (auto* const judge :
         {judge_mode, judge_version, judge_role, judge_cluster, judge_failover, judge_permissions,
          judge_memory, judge_persistence, judge_quarantine, judge_speed, judge_silence})
        judge(node, plan, findings);
    return findings;
}

}  // namespace redlock::tool
