#include "support/sentinel_group.hpp"

#include "support/comma_list.hpp"
#include "support/wait_until.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace redlock::support {

using namespace std::chrono_literals;

namespace {

template <class Condition>
void await(Condition condition, std::chrono::seconds timeout, const std::string& what) {
    if (!wait_until(condition, timeout)) throw std::runtime_error("SentinelGroup: " + what);
}

/// Sends a command that must succeed.
void order(const RedisServer& server, const std::vector<std::string>& words) {
    const auto answer = server.command(words);
    if (!answer.starts_with("OK")) throw std::runtime_error("SentinelGroup: " + words[0] + ": " + answer);
}

}  // namespace

SentinelGroup::SentinelGroup() {
    await([this] { return servers[1].info("replication", "master_link_status") == "up"; }, 30s,
          "the replica does not replicate");
    while (sentinels.size() < 3) sentinels.emplace_back(RedisConfig{}.sentinel_of(servers[0].port()));
    const auto complete = [](const RedisServer& it) {
        const auto known = it.info("sentinel", "master0");
        return known.find("slaves=1,sentinels=3") != known.npos;
    };
    await([&] { return std::ranges::all_of(sentinels, complete); }, 60s, "the Sentinels do not meet");
}

std::string SentinelGroup::uri() const {
    return "redis+sentinel://" + comma_list(sentinels, [](const auto& it) { return it.name(); }) +
           "/mymaster";
}

bool SentinelGroup::named(const RedisServer& server) const {
    return std::ranges::count_if(sentinels, [&](const auto& it) {
               const auto answer = it.command({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"});
               return answer.find(std::to_string(server.port())) != answer.npos;
           }) >= 2;
}

void SentinelGroup::await_promotion_of(const RedisServer& server) const {
    await([&] { return named(server); }, 90s, "no promotion");
}

void SentinelGroup::fail_over_to(const RedisServer& next) const {
    const auto ordered = [&] {
        if (named(next)) return true;
        begin_failover();
        return wait_until([&] { return named(next); }, 15s);
    };
    await(ordered, 90s, "no failover");
}

void SentinelGroup::begin_failover() const {
    (void)sentinels[0].command({"SENTINEL", "FAILOVER", "mymaster"});
}

void SentinelGroup::take_over(const RedisServer& master) const {
    const auto is_master = [&] {
        if (master.info("replication", "role") == "master") return true;
        if (!named(master)) begin_failover();  // on a busy machine, the Sentinels may have failed over again
        return false;
    };
    await(is_master, 90s, "it is no master");
    allow_writes_alone(master, true);
}

void SentinelGroup::allow_writes_alone(const RedisServer& server, bool allow) {
    order(server, {"CONFIG", "SET", "min-replicas-to-write", allow ? "0" : "1"});
}

void SentinelGroup::follow(const RedisServer& former, const RedisServer& master) {
    order(former, {"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
    await([&] { return master.info("replication", "connected_slaves") == "1"; }, 60s, "it does not follow");
    allow_writes_alone(master, false);
}

}  // namespace redlock::support
