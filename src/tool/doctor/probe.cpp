#include "diagnosis.hpp"
#include "text/lock_status.hpp"
#include "wire/key_names.hpp"

#include <redlock/error.hpp>
#include <redlock/resources.hpp>

#include <utility>

namespace redlock::tool {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds probe_ttl = 10s;

using Words = std::vector<std::string_view>;

class Probe {
public:
    Probe(AdminConnection& admin, const CheckupPlan& plan, NodeFacts& facts)
        : admin_(admin), plan_(plan), facts_(facts), resources_(detail::checked_resources({plan.resource})) {}

    void run() {
        lock_and_unlock();
        if (plan_.nodes.quarantine > 0ms && plan_.mark) place_marker();
        if (plan_.lock.fencing)
            try_counter("count the holders for fencing",
                        detail::key_of(detail::KeyKind::counter, plan_.resource).text());
        if (plan_.nodes.quarantine > 0ms) try_counter("keep a quarantine", std::string{detail::marker_key});
        if (plan_.lock.fair) try_queue();
    }

private:
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
        const bool allowed = may_use_each_command();
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
    bool may_use_each_command() {
        const auto key = plan_.resource + ":doctor-" + owner_;
        const std::vector<std::pair<const char*, Words>> commands{{"release", {"GET", key}},
                                                                  {"release", {"DEL", key}},
                                                                  {"extend", {"PTTL", key}},
                                                                  {"extend", {"PEXPIRE", key, "1"}}};
        bool all = true;
        for (const auto& [verb, words] : commands)
            all = try_command(admin_, words, {verb, plan_.resource, ""}, true) && all;
        return all;
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
        for (const auto& words : commands)
            (void)try_command(admin_, words, {verb, key, "+set +get +pttl +pexpire +exists +info +time"});
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
        for (const auto& words : commands) (void)try_command(admin_, words, {verb, key, "", {}, false});
        const PermissionCheck of_channel{verb, channel, "&redlock:wake:*", {}, false};
        (void)try_command(admin_, {"PUBLISH", channel, ""}, of_channel);
        AdminConnection listener{admin_.endpoint(), plan_.nodes.node_timeout};
        if (listener.connect()) (void)try_command(listener, {"SUBSCRIBE", channel}, of_channel);
    }

    /// Returns false, and records the failure, if the ACL forbids the command or, unless `with_any_key`, the
    /// key. Other errors do not matter here.
    bool try_command(AdminConnection& admin, const Words& words, PermissionCheck check,
                     bool with_any_key = false) {
        check.error = error_of(admin.ask(words));
        const bool forbidden = check.error.cause == Errc::permission_denied &&
                               (!with_any_key || missing_permission(check).starts_with('+'));
        if (forbidden) facts_.permission_checks.push_back(std::move(check));
        return !forbidden;
    }

    AdminConnection& admin_;
    const CheckupPlan& plan_;
    NodeFacts& facts_;
    const std::vector<std::string> resources_;
    const std::string owner_ = random_owner();
};

}  // namespace

void probe(AdminConnection& admin, const CheckupPlan& plan, NodeFacts& facts) {
    Probe{admin, plan, facts}.run();
}

}  // namespace redlock::tool
