// Judges a server by the facts that it reports.
#include "findings.hpp"
#include "span.hpp"

#include <redlock/error.hpp>

#include <array>
#include <cstdio>
#include <string>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

/// How much longer than min-replicas-max-lag a former master may still be used as the master:
///
/// - 2 s: it checks its replicas once a second, and counts in whole seconds;
/// - 2 s: the interval at which Sentinels report a new master to each other;
/// - 1 s: the time after which a client asks the Sentinels again;
/// - 1 s: a reserve.
constexpr auto failover_slack = 6s;

constexpr auto* forgetting_matters = "a node that forgets a key can grant the same lock to a second holder";

std::string megabytes(std::uint64_t bytes) {
    std::array<char, 32> text{};
    const auto length =
        std::snprintf(text.data(), text.size(), "%.1f MB", static_cast<double>(bytes) / 1024 / 1024);
    return {text.data(), static_cast<std::size_t>(length)};
}

bool writes_through(const NodeFacts& node) {
    return node.info.appendonly.value_or(false) && node.appendfsync == "always";
}

std::string persistence_of(const NodeFacts& node) {
    if (!node.info.appendonly.value_or(false)) return "appendonly no";
    return "appendonly yes, appendfsync " + node.appendfsync;
}

std::string remedy_for_forgetting(const LockProfile& profile) {
    return "appendonly yes with appendfsync always, or --quarantine " + argument_of(profile.ttl) +
           " in every client, or keep a crashed node away for " + text_of(profile.ttl);
}

}  // namespace

void judge_version(const NodeFacts& node, const LockProfile&, Findings& findings) {
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

void judge_role(const NodeFacts& node, const LockProfile&, Findings& findings) {
    const auto& info = node.info;
    if (info.role == "slave")
        findings.push_back(
            {Severity::unsafe, "role", "it is a replica",
             "replication is asynchronous: a replica may lack locks that its master has granted",
             "make it a master (REPLICAOF NO ONE), and use a separate server for each node", false});
    else if (!node.failover && info.replicas.value_or(0) > 0)
        findings.push_back(
            {Severity::hint, "role", "it has replicas (" + std::to_string(*info.replicas) + ")",
             "a replica that replaces it may lack locks that it has granted",
             "no automatic failover of this node; the other nodes keep the locks while it is down"});
}

void judge_mode(const NodeFacts& node, const LockProfile&, Findings& findings) {
    const auto& info = node.info;
    if (info.mode == "sentinel")
        findings.push_back(
            {Severity::unsafe, "mode", "it is a sentinel", "a sentinel stores no keys",
             "give the address of a server that takes part in no failover, or redis+sentinel://" + node.name +
                 "/MASTER",
             false});
    if (info.mode == "cluster")
        findings.push_back({Severity::warning, "mode", "it is a member of a Redis Cluster",
                            "it serves only its own slots, and its replicas are promoted automatically",
                            remedy_for_cluster});
}

void judge_failover(const NodeFacts& node, const LockProfile& profile, Findings& findings) {
    if (!node.failover) return;
    const auto& facts = *node.failover;
    const auto warn = [&](const std::string& what, const std::string& why, const std::string& remedy) {
        findings.push_back({Severity::warning, "failover", what, why, remedy});
    };
    const auto* const two_holders = "two clients can hold the lock, one on each side of a failover";
    const auto least = profile.ttl + facts.max_lag.value_or(10s) + failover_slack;
    const auto enough = std::string{"--quarantine "} + argument_of(least) + " or more, in every client";
    if (profile.quarantine == 0ms)
        warn("Sentinels name it, and there is no quarantine", two_holders, enough);
    else if (profile.quarantine < least)
        warn("the quarantine of " + text_of(profile.quarantine) +
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

void judge_eviction(const NodeFacts& node, const LockProfile&, Findings& findings) {
    const auto& info = node.info;
    const bool bounded = info.max_memory.value_or(0) > 0;
    if (!bounded || info.eviction.empty() || info.eviction == "noeviction") return;
    findings.push_back(
        {Severity::unsafe, "eviction",
         "it evicts keys: maxmemory " + megabytes(*info.max_memory) + ", maxmemory-policy " + info.eviction,
         std::string{"the keys of locks are evicted like any other key; "} + forgetting_matters,
         "maxmemory-policy noeviction"});
}

void judge_room(const NodeFacts& node, const LockProfile&, Findings& findings) {
    const auto& info = node.info;
    if (info.max_memory.value_or(0) == 0 || !info.used_memory) return;
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

void judge_persistence(const NodeFacts& node, const LockProfile& profile, Findings& findings) {
    const bool unknown = !node.info.appendonly || (*node.info.appendonly && node.appendfsync.empty());
    if (profile.quarantine > 0ms || unknown || writes_through(node)) return;
    findings.push_back({Severity::warning, "persistence",
                        "a crash can take its last writes: " + persistence_of(node), forgetting_matters,
                        remedy_for_forgetting(profile)});
    if (node.info.uptime && *node.info.uptime < profile.ttl)
        findings.push_back({Severity::warning, "uptime",
                            "it was started " + text_of_age(*node.info.uptime) +
                                " ago, less than the ttl of " + text_of(profile.ttl),
                            "it may have lost locks that it granted before",
                            "let it take part only after it has been up for the ttl"});
}

void judge_silence(const NodeFacts& node, const LockProfile& profile, Findings& findings) {
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
    else if (profile.quarantine == 0ms && node.info.appendonly.value_or(false))
        tell("persistence", "CONFIG GET", node.config_error, "whether a crash can take its last writes stays",
             "+config|get");
    tell("clock", "TIME", node.clock_error, "the error of its clock is", "+time");
}

}  // namespace redlock::tool
