// Judges whether a node answers, and whether it does what a lock needs.
#include "findings.hpp"
#include "span.hpp"

#include <redlock/detail/causes.hpp>
#include <redlock/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

std::string text_of(const NodeError& error) {
    return error.cause.message() + (error.detail.empty() ? "" : ": " + error.detail);
}

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

std::string remedy_for(const NodeError& error, const NodeFacts& node) {
    if (const auto hint = detail::hint_in(error.detail); !hint.empty()) return std::string{hint};
    if (error.detail.starts_with("MISCONF"))
        return "make it save its data again: its log says why it could not, for example because the disk is "
               "full";
    if (error.cause == Errc::permission_denied) return "look at ACL GETUSER " + node.user;
    if (is_refusal_of_cluster(error)) return remedy_for_cluster;
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

/// Returns the text between the first two single quotes, for example 'eval' or 'config|get'.
std::string quoted_word(const std::string& text) {
    const auto begin = text.find('\'');
    const auto end = begin == text.npos ? begin : text.find('\'', begin + 1);
    return end == text.npos ? std::string{} : text.substr(begin + 1, end - begin - 1);
}

bool is_command(const std::string& word) {
    return !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz|_-") == word.npos;
}

/// Returns true if INFO has reported the same problem. That report is more precise.
bool is_told_by_info(const PermissionCheck& check, const ServerInfo& info) {
    if (check.error.cause == Errc::read_only) return info.role == "slave";
    const bool full = info.max_memory.value_or(0) > 0 && info.used_memory.value_or(0) >= *info.max_memory;
    return check.error.cause == Errc::out_of_memory && full;
}

Finding forbidden(const PermissionCheck& check, const NodeFacts& node) {
    const auto permission = missing_permission(check);
    const auto rule = "ACL SETUSER " + node.user + " " + permission;
    // The random name of the probe says nothing about the names that the locks use.
    if (permission.starts_with("~redlock:doctor:") || permission.starts_with("~{redlock:doctor:"))
        return {Severity::warning, "acl", "it does not allow the resource of the probe, " + check.key,
                "so the operations of a lock could not be tried",
                "--probe with a resource that the ACL allows"};
    if (!check.votes)
        return {Severity::warning, "acl", "it cannot " + check.verb + ": " + text_of(check.error),
                "waiters use the queue of another node; if no node can keep one, they retry with pauses",
                rule};
    return {Severity::unsafe,
            "acl",
            "it cannot " + check.verb + ": " + text_of(check.error),
            "the node cannot fully take part in locks",
            rule,
            false};
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

/// Returns the command that the server does not know, such as EVAL, or an empty text.
std::string unknown_command(const NodeError& error) {
    constexpr std::string_view words = "ERR unknown command ";
    if (!error.detail.starts_with(words)) return {};
    const auto quote = error.detail.substr(words.size(), 1);
    const auto end = error.detail.find(quote, words.size() + 1);
    return end == std::string::npos ? "" : error.detail.substr(words.size() + 1, end - words.size() - 1);
}

Finding failed(const PermissionCheck& check, const NodeFacts& node) {
    if (check.error.cause == Errc::permission_denied) return forbidden(check, node);
    const auto what = "it cannot " + check.verb + ": " + text_of(check.error);
    const auto* const subject = check.error.cause == Errc::out_of_memory ? "memory"
                                : check.error.cause == Errc::read_only   ? "role"
                                                                         : "check";
    const auto command = unknown_command(check.error);
    const auto remedy = command.empty()
                            ? remedy_for(check.error, node)
                            : "remove rename-command " + command + " from the server's redis.conf";
    return {Severity::unsafe, subject, what, effect_of_failures(node), remedy, false};
}

}  // namespace

Finding unreachable_finding(const NodeFacts& node) {
    return {Severity::unreachable,
            "reach",
            text_of(node.unreachable),
            "it has no vote",
            remedy_for(node.unreachable, node),
            false,
            node.unreachable};
}

void judge_speed(const NodeFacts& node, const LockProfile& profile, Findings& findings) {
    if (!node.round_trip || *node.round_trip <= profile.node_timeout / 2) return;
    findings.push_back({Severity::warning, "speed",
                        "a round trip takes " + text_of(*node.round_trip) + " of a node_timeout of " +
                            text_of(profile.node_timeout),
                        "if it takes a little longer, its votes come too late to count",
                        "--node-timeout " +
                            argument_of(std::chrono::ceil<std::chrono::milliseconds>(4 * *node.round_trip)) +
                            " or more, or a node that is nearer"});
}

std::string missing_permission(const PermissionCheck& check) {
    const auto& words = check.error.detail;
    if (const auto command = quoted_word(words); is_command(command)) return "+" + command;
    if (words.find("key") != words.npos) return "~" + check.key;
    return check.permissions;
}

/// Adds one finding for each thing to change. Several operations may lack the same permission.
void judge_permissions(const NodeFacts& node, const LockProfile&, Findings& findings) {
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

void judge_quarantine(const NodeFacts& node, const LockProfile& profile, Findings& findings) {
    if (profile.quarantine == 0ms || !node.marker) return;
    if (!node.marker->placed)
        findings.push_back(
            {Severity::warning, "quarantine", "it has no marker of the quarantine yet",
             "it will have no vote for " + text_of(profile.quarantine) + " after the first acquisition",
             "redlock doctor --mark --quarantine " + argument_of(profile.quarantine) +
                 ", when the node is set up",
             false});
    else if (node.marker->left > 0ms)
        findings.push_back({Severity::warning, "quarantine",
                            "it is in quarantine for another " + text_of(node.marker->left),
                            "it may have lost data, so it has no vote until then",
                            "wait until the quarantine is over", false});
}

}  // namespace redlock::tool
