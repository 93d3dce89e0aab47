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

/// Its servers take no writes without a replica (min-replicas-max-lag 1). All functions throw
/// std::runtime_error where what they wait for does not come.
class SentinelGroup {
public:
    /// The second server is the first one's replica, and all Sentinels know that and one another.
    SentinelGroup();

    std::string uri() const;

    /// Whether two of three name it.
    bool named(const RedisServer& server) const;
    /// Until they do, by themselves.
    void await_promotion_of(const RedisServer& server) const;

    /// Has the replica promoted; a Sentinel may give up a failover that it has begun. fail_over_to() has it
    /// begin again.
    void begin_failover() const;
    void fail_over_to(const RedisServer& next) const;

    /// The promoted one takes writes, as if it had another replica.
    static void take_over(const RedisServer& master);
    /// Whether a server takes writes that has no replica: as if it had not noticed that yet.
    static void allow_writes_alone(const RedisServer& server, bool allow);

    /// The former master becomes a replica. Sentinels tell it that, too, but only after 8 s or more.
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
