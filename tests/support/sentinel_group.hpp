// A node with failover: a master and its replica, and three real Sentinels that know both.
//
//     SentinelGroup group;
//     redlock::RedisNodes nodes{group.uri()};
//     group.fail_over_to(group.servers[1]);
//     SentinelGroup::follow(group.servers[0], group.servers[1]);
#pragma once

#include "support/redis_config.hpp"
#include "support/redis_server.hpp"

#include <array>
#include <deque>
#include <string>

namespace redlock::support {

/// The servers accept no writes without a replica (min-replicas-max-lag 1). All functions throw
/// std::runtime_error if the state that they wait for is not reached in time.
class SentinelGroup {
public:
    /// Starts the servers. Returns when the second one replicates the first, and the Sentinels know both and
    /// one another.
    SentinelGroup();

    std::string uri() const;

    /// Returns true if two of three Sentinels name the server as the master.
    bool named(const RedisServer& server) const;
    /// Waits until they do so without further action.
    void await_promotion_of(const RedisServer& server) const;

    /// Tells the Sentinels to promote the replica. A Sentinel may abandon a failover that it has begun. Then
    /// fail_over_to() begins it again.
    void begin_failover() const;
    void fail_over_to(const RedisServer& next) const;

    /// Makes the promoted server accept writes, as if it had another replica.
    void take_over(const RedisServer& master) const;
    /// Sets whether a server without a replica accepts writes. A master that has not noticed the loss of its
    /// replica does.
    static void allow_writes_alone(const RedisServer& server, bool allow);

    /// Makes the former master a replica. The Sentinels do that, too, but only after 8 s or more.
    static void follow(const RedisServer& former, const RedisServer& master);

    std::array<RedisServer, 2> servers{RedisServer{bounded()}, RedisServer{replica()}};
    std::deque<RedisServer> sentinels{};

private:
    static RedisConfig bounded() {
        return RedisConfig{}.line("min-replicas-to-write 1").line("min-replicas-max-lag 1");
    }
    RedisConfig replica() const { return bounded().replica_of(servers[0].port()); }
};

}  // namespace redlock::support
