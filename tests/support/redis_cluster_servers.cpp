#include "support/redis_cluster_servers.hpp"

#include "support/wait_until.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <vector>

namespace redlock::support {
namespace {

void tell(const RedisServer& server, const std::vector<std::string>& words) {
    if (const auto answer = server.command(words); answer != "OK")
        throw std::runtime_error(words.front() + ": " + answer);
}

template <class Condition>
void await(const char* what, Condition condition) {
    if (!wait_until(condition, std::chrono::seconds{30})) throw std::runtime_error(what);
}

std::string id_of(const RedisServer& server) {
    return server.command({"CLUSTER", "MYID"});
}

/// Returns true if the server has this line in CLUSTER INFO.
bool reports(const RedisServer& server, const std::string& line) {
    return server.command({"CLUSTER", "INFO"}).find(line + "\r\n") != std::string::npos;
}

std::string text_of(std::uint16_t slot) {
    return std::to_string(slot);
}

}  // namespace

RedisClusterServers::RedisClusterServers(Replicas replicas, const RedisConfig& config) {
    const auto count = replicas == Replicas::none ? masters : 2 * masters;
    while (servers_.size() < count) {
        auto of_server = config;
        of_server.line("cluster-enabled yes")
            .line("cluster-node-timeout 15000")
            .line("cluster-replica-no-failover yes")
            .line("cluster-port " + std::to_string(bus_ports_.emplace_back().number()));
        servers_.emplace_back(of_server);
    }
    for (std::size_t i = 0; i < count; ++i) {
        tell(servers_[i], {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
        if (i < masters)
            tell(servers_[i], {"CLUSTER", "ADDSLOTSRANGE", std::to_string(i * 5462),
                               std::to_string(std::min<std::size_t>(i * 5462 + 5461, 16'383))});
        if (i > 0)
            tell(servers_[0], {"CLUSTER", "MEET", "127.0.0.1", std::to_string(servers_[i].port()),
                               std::to_string(bus_ports_[i].number())});
    }
    const auto all = [&](const std::string& line) {
        await(line.c_str(), [&] {
            return std::ranges::all_of(servers_, [&](const auto& it) { return reports(it, line); });
        });
    };
    all("cluster_known_nodes:" + std::to_string(count));
    all("cluster_slots_assigned:16384");
    for (auto i = masters; i < count; ++i)
        tell(servers_[i], {"CLUSTER", "REPLICATE", id_of(servers_[i - masters])});
    all("cluster_state:ok");
    for (auto i = masters; i < count; ++i)
        await("a replica", [&] { return servers_[i].info("replication", "master_link_status") == "up"; });
}

std::string RedisClusterServers::uri(const std::string& user) const {
    std::string result = "redis+cluster://" + user;
    for (std::size_t i = 0; i < masters; ++i) result += (i == 0 ? "" : ",") + servers_[i].name();
    return result;
}

void RedisClusterServers::begin_move(std::uint16_t slot, const RedisServer& from, const RedisServer& to) {
    tell(to, {"CLUSTER", "SETSLOT", text_of(slot), "IMPORTING", id_of(from)});
    tell(from, {"CLUSTER", "SETSLOT", text_of(slot), "MIGRATING", id_of(to)});
}

void RedisClusterServers::move_key(const std::string& key, const RedisServer& from, const RedisServer& to) {
    const auto answer = from.command({"MIGRATE", "127.0.0.1", std::to_string(to.port()), key, "0", "5000"});
    if (answer != "OK" && answer != "NOKEY") throw std::runtime_error("MIGRATE: " + answer);
}

void RedisClusterServers::end_move(std::uint16_t slot, const RedisServer& from, const RedisServer& to) {
    const auto keys = from.connect().ask_for_reply({"CLUSTER", "GETKEYSINSLOT", text_of(slot), "1000"});
    for (const auto& key : keys.elements) move_key(key.text, from, to);
    tell(to, {"CLUSTER", "SETSLOT", text_of(slot), "NODE", id_of(to)});
    tell(from, {"CLUSTER", "SETSLOT", text_of(slot), "NODE", id_of(to)});
}

void RedisClusterServers::promote_replica_of(std::size_t master) {
    auto& replica = servers_.at(master + masters);
    tell(replica, {"CLUSTER", "FAILOVER", "TAKEOVER"});
    await("a promotion", [&] { return replica.info("replication", "role") == "master"; });
}

bool RedisClusterServers::clean() {
    return std::ranges::all_of(
        servers_, [](auto& server) { return !server.running() || server.command({"DBSIZE"}) == "0"; });
}

}  // namespace redlock::support
