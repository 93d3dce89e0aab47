// A Redis Cluster and a RedisNodes for it.
#pragma once

#include "live/live_world.hpp"
#include "support/redis_cluster_servers.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

#include "round/cluster_map.hpp"

namespace redlock::test {

using support::RedisClusterServers;

class ClusterWorld : public RedisClusterServers {
public:
    explicit ClusterWorld(Replicas replicas = Replicas::none, NodesOptions options = {.node_timeout = 2s})
        : RedisClusterServers(replicas), nodes({uri()}, options) {}

    /// Returns the name of a resource of this master.
    std::string resource_of(std::size_t master, const std::string& prefix = "orders:") {
        for (int i = 0;; ++i) {
            auto name = prefix + std::to_string(i);
            if (&first_master_of(detail::hash_slot_of(name)) == &(*this)[master]) return name;
        }
    }

    /// Waits until all masters know that this one has the slot.
    [[nodiscard]] bool all_know(std::uint16_t slot, const RedisServer& master) {
        return wait_until([&] {
            for (std::size_t i = 0; i < masters; ++i) {
                const auto list = (*this)[i].command({"CLUSTER", "NODES"});
                for (const auto& it : detail::parse_cluster_nodes(list))
                    for (const auto& [first, last] : it.hash_slots)
                        if (first <= slot && slot <= last && it.address.port != master.port()) return false;
            }
            return true;
        });
    }

    Lock lock(std::string resource, LockOptions options = {}) {
        return Lock{nodes, std::move(resource), options};
    }

    /// Learns the list of the servers, and connects to each of them.
    [[nodiscard]] bool warm_up() {
        for (std::size_t i = 0; i < masters; ++i) {
            auto warm = lock(resource_of(i, "warm-up:"));
            if (!warm.acquire() || !warm.release()) return false;
        }
        return true;
    }

    RedisNodes nodes;
};

struct OnACluster : testing::Test {
    ClusterWorld world;
};

}  // namespace redlock::test
