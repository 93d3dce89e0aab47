// Any texts as what the servers of a Redis Cluster say about its slots. Each line that begins with '#' ends a
// CLUSTER NODES text, and is itself an error reply such as "MOVED 3999 127.0.0.1:6381".
//
// The number of servers is limited. A redirection that is understood can be written again. After a MOVED the
// slot has the server that it names, unless there are too many.
#include "require.hpp"

#include "redis/redis_cluster.hpp"
#include "round/cluster_map.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace redlock::fuzz {
namespace {

using namespace std::chrono_literals;

void check_list(RedisCluster& cluster, const std::string& nodes) {
    for (const auto& master : detail::parse_cluster_nodes(nodes)) {
        require(master.address.port != 0, "a master has a port");
        for (const auto& [first, last] : master.hash_slots)
            require(first <= last && last < detail::hash_slot_count, "a range of slots is possible");
    }
    cluster.learn(nodes, "asked");
}

void check_redirection(RedisCluster& cluster, std::string_view error) {
    const auto to = detail::parse_redirection(error);
    if (!to) return;
    const auto again = std::string{to->asking ? "ASK " : "MOVED "} + std::to_string(to->hash_slot) + " " +
                       std::string{to->to.host} + ":" + std::to_string(to->to.port);
    const auto same = detail::parse_redirection(again);
    require(same && same->hash_slot == to->hash_slot && same->to == to->to,
            "a redirection can be written again");
    cluster.redirected(*to, "asked");
    if (to->asking) return require(cluster.is_moving(to->hash_slot), "it is moving");
    const auto server = cluster.server_of(to->hash_slot);
    if (cluster.servers().size() < RedisCluster::most_servers)
        require(server && server->endpoint.port == to->to.port, "the slot has moved");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input{reinterpret_cast<const char*>(data), size};
    RedisCluster cluster{NodeConfig::of(Endpoint::parse("redis+cluster://seed"), 50ms)};
    std::string nodes;
    for (auto rest = input; !rest.empty();) {
        const auto line = detail::cut_word(rest, '\n');
        if (!line.starts_with('#')) {
            (nodes += line) += '\n';
            continue;
        }
        check_list(cluster, nodes);
        nodes.clear();
        check_redirection(cluster, line.substr(1));
    }
    check_list(cluster, nodes);
    for (std::size_t slot = 0; slot < detail::hash_slot_count; slot += 97)
        (void)cluster.server_of(static_cast<std::uint16_t>(slot));
    require(cluster.servers().size() <= RedisCluster::most_servers, "the number of servers is limited");
    return 0;
}

}  // namespace redlock::fuzz
