#include "probe.hpp"

#include "vote_findings.hpp"

#include <redlock/detail/command_encoding.hpp>
#include <redlock/error.hpp>
#include <redlock/resources.hpp>

#include <span>
#include <system_error>
#include <utility>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds probe_ttl = 10s;

/// Both a grant and a refusal show that the command is permitted.
NodeError error_of(const NodeReport& report) {
    if (report.vote != Vote::unknown) return {};
    return {report.cause, report.detail};
}

}  // namespace

Probe::Probe(AdminConnection& admin, const CheckupPlan& plan)
    : admin_(admin), plan_(plan), resources_(detail::checked_resources({plan.resource})) {
    if (const auto error = owner_.draw(os_entropy())) throw std::system_error(error, "no entropy");
}

NodeReport Probe::ask(RedisNodes& nodes, const Command& command) const {
    return nodes.ask({.command = command})[0];
}

void Probe::run(NodeFacts& facts) {
    lock_and_unlock(facts);
    if (plan_.profile.quarantine > 0ms && plan_.mark) place_marker(facts);
    if (plan_.fencing)
        try_counter(facts, "count the holders for fencing",
                    detail::key_of(detail::KeyKind::counter, plan_.resource).text());
    if (plan_.profile.quarantine > 0ms)
        try_counter(facts, "keep a quarantine", std::string{detail::marker_key});
    if (plan_.fair) try_queue(facts);
}

/// Tries to release first, when there is nothing to release. If that is not permitted, acquires for one
/// millisecond only, because the key could not be deleted afterwards.
void Probe::lock_and_unlock(NodeFacts& facts) {
    RedisNodes nodes{{admin_.endpoint()}, {.node_timeout = plan_.profile.node_timeout}};
    const auto owner = owner_.view();
    const auto record = [&](const char* verb, const char* permissions, const NodeReport& report) {
        facts.permission_checks.push_back({verb, plan_.resource, permissions, error_of(report)});
        return report.vote;
    };
    const auto* const to_release = "+eval +evalsha +get +del";
    const bool allowed = may_use_each_command(facts);
    const auto released =
        record("release", to_release, ask(nodes, Command{Verb::compare_and_delete, resources_, owner}));
    const auto ttl = allowed && released != Vote::unknown ? probe_ttl : 1ms;
    const auto acquired =
        record("acquire", "+set", ask(nodes, Command{Verb::set_if_absent, resources_, owner, ttl}));
    (void)record("extend", "+eval +evalsha +get +pttl +pexpire",
                 ask(nodes, Command{Verb::compare_and_expire, resources_, owner, ttl + ttl}));
    facts.probe_was_held = acquired == Vote::refused;
    if (released != Vote::unknown && acquired != Vote::refused)
        (void)record("release", to_release, ask(nodes, Command{Verb::compare_and_delete, resources_, owner}));
}

/// Tries the commands of the scripts one by one, because not every server says which command of a script is
/// forbidden. Uses a key that does not exist. If an ACL forbids only the key, the command counts as
/// permitted.
bool Probe::may_use_each_command(NodeFacts& facts) {
    const auto key = plan_.resource + ":doctor-" + std::string{owner_.view()};
    const std::vector<std::pair<const char*, Words>> commands{{"release", {"GET", key}},
                                                              {"release", {"DEL", key}},
                                                              {"extend", {"PTTL", key}},
                                                              {"extend", {"PEXPIRE", key, "1"}}};
    bool all = true;
    for (const auto& [verb, words] : commands)
        all = is_allowed(facts, {verb, plan_.resource, ""}, words) && all;
    return all;
}

/// Returns false, and records the failure, if the ACL forbids the command itself.
bool Probe::is_allowed(NodeFacts& facts, PermissionCheck check, std::span<const std::string_view> words) {
    const auto answer = admin_.ask(words);
    check.error = {answer.cause, answer.detail};
    if (answer.cause != Errc::permission_denied || !missing_permission(check).starts_with('+')) return true;
    facts.permission_checks.push_back(std::move(check));
    return false;
}

/// Writes the marker in the same way as the first acquisition on a new node.
void Probe::place_marker(NodeFacts& facts) {
    RedisNodes nodes{{admin_.endpoint()},
                     {.node_timeout = plan_.profile.node_timeout, .quarantine = plan_.profile.quarantine}};
    const auto report = ask(nodes, Command{Verb::set_if_absent, resources_, owner_.view(), probe_ttl});
    if (report.cause != Errc::quarantined)
        facts.permission_checks.push_back(
            {"place the marker of the quarantine", std::string{detail::marker_key},
             "+eval +set +get +pttl +pexpire +exists +time +info", error_of(report)});
    if (report.vote != Vote::refused)
        (void)ask(nodes, Command{Verb::compare_and_delete, resources_, owner_.view()});
}

/// Tries the further commands one by one. None of them changes `key`. SET with both NX and XX, and PEXPIRE
/// with a word, are errors that the server reports only to a user who has the permission.
void Probe::try_counter(NodeFacts& facts, const std::string& verb, const std::string& key) {
    const std::vector<Words> commands{{"SET", key, "", "NX", "XX"},  // never writes
                                      {"PEXPIRE", key, "never"},
                                      {"GET", key},
                                      {"PTTL", key},
                                      {"EXISTS", plan_.resource},
                                      {"INFO", "server"},
                                      {"INFO", "replication"},
                                      {"TIME"}};
    for (const auto& words : commands)
        try_command(facts, admin_, words, {verb, key, "+set +get +pttl +pexpire +exists +info +time"});
}

/// Tries the commands of a queue on the queue of the resource itself, in which other clients may be waiting.
/// None of them changes the queue or its expiry. A connection that has subscribed can send nothing else, so
/// SUBSCRIBE is tried on a connection of its own.
void Probe::try_queue(NodeFacts& facts) {
    const auto key = detail::key_of(detail::KeyKind::queue, plan_.resource).text();
    const auto channel = "redlock:wake:doctor-" + std::string{owner_.view()};
    const std::vector<Words> commands{{"ZADD", key, "XX", "0", channel},
                                      {"ZREM", key, channel},
                                      {"ZRANK", key, channel},
                                      {"ZPOPMIN", key, "0"},
                                      {"EXISTS", key},
                                      {"PEXPIRE", key, "never"},
                                      {"TIME"}};
    constexpr const char* verb = "keep a queue";
    for (const auto& words : commands) try_command(facts, admin_, words, {verb, key, "", {}, false});
    const PermissionCheck of_channel{verb, channel, "&redlock:wake:*", {}, false};
    try_command(facts, admin_, {"PUBLISH", channel, ""}, of_channel);
    AdminConnection listener{admin_.endpoint(), plan_.profile.node_timeout};
    if (listener.connect()) try_command(facts, listener, {"SUBSCRIBE", channel}, of_channel);
}

/// Records it if the ACL forbids the command. Other errors do not matter here.
void Probe::try_command(NodeFacts& facts, AdminConnection& admin, const Words& words, PermissionCheck check) {
    const auto answer = admin.ask(words);
    if (answer.cause != Errc::permission_denied) return;
    check.error = {answer.cause, answer.detail};
    facts.permission_checks.push_back(std::move(check));
}

}  // namespace redlock::tool
