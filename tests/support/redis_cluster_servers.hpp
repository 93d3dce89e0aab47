// A real Redis Cluster: three masters, and a replica of each if a test needs them.
//
//     RedisClusterServers servers;
//     redlock::RedisNodes nodes{servers.uri()};
//     servers.move_slot(slot, servers[1]);
//
// All functions throw std::runtime_error if the servers do not do it in time.
#pragma once

#include "support/redis_config.hpp"
#include "support/redis_server.hpp"
#include "support/reserved_port.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace redlock::support {

class RedisClusterServers {
public:
    static constexpr std::size_t masters = 3;
    enum class Replicas : bool { none, one_each };

    /// Returns when all servers serve their slots. Server i has the i-th third of the slots, and server i + 3
    /// is its replica.
    explicit RedisClusterServers(Replicas replicas = Replicas::none, const RedisConfig& config = {});

    RedisServer& operator[](std::size_t server) { return servers_.at(server); }
    std::size_t size() const noexcept { return servers_.size(); }
    auto begin() noexcept { return servers_.begin(); }
    auto end() noexcept { return servers_.end(); }

    /// Returns the address of the node, with the masters as seeds.
    std::string uri(const std::string& user = "") const;

    /// Returns the master that served the slot at the beginning.
    RedisServer& first_master_of(std::uint16_t slot) { return servers_[slot / 5462U]; }

    /// Begins to move a slot: keys that are not in `from` are looked for in `to`.
    static void begin_move(std::uint16_t slot, const RedisServer& from, const RedisServer& to);
    /// Moves one key of the slot, which may not exist.
    static void move_key(const std::string& key, const RedisServer& from, const RedisServer& to);
    /// Moves the other keys of the slot, and ends the move. Only these two servers know it at first.
    static void end_move(std::uint16_t slot, const RedisServer& from, const RedisServer& to);
    static void move_slot(std::uint16_t slot, const RedisServer& from, const RedisServer& to) {
        begin_move(slot, from, to);
        end_move(slot, from, to);
    }

    /// Makes the replica of a master, which may be dead, the new master.
    void promote_replica_of(std::size_t master);

    /// Returns true if no master has a key.
    bool clean();

private:
    std::deque<ReservedPort> bus_ports_{};
    std::deque<RedisServer> servers_{};
};

}  // namespace redlock::support
