// A fixture for fencing and quarantine: the identity of the dataset of a server, and the keys of the library
// there.
#pragma once

#include "live/command_monitor.hpp"
#include "live/live_world.hpp"
#include "support/loopback_name.hpp"

#include <string>

#include "wire/key_names.hpp"

namespace redlock::test {

/// Returns the identity of the dataset, which precedes the numbers in the server's keys.
inline std::string data_of(const RedisServer& server) {
    return server.info("server", "run_id") + ":" + server.info("replication", "master_replid") + ":";
}

/// This key has the time since which the dataset is complete.
inline const std::string marker{detail::marker_key};
inline const std::string counter = detail::key_of(detail::KeyKind::counter, the_resource).text();

/// Makes the server behave as if its dataset had this age. A negative age is in the future.
inline void whole_since(const RedisServer& server, milliseconds age) {
    const auto set =
        "local t=redis.call('time') return redis.call('set',KEYS[1],"
        "ARGV[2]..string.format('%.0f',t[1]*1000000+t[2]-ARGV[1]*1000))";
    ASSERT_EQ(server.command({"EVAL", set, "1", marker, std::to_string(age.count()), data_of(server)}), "OK");
}

inline constexpr auto quarantine = 30s;

/// A world with a quarantine that is over on all servers.
class QuarantineWorld : public LiveWorld {
public:
    explicit QuarantineWorld(std::size_t size = 3, const RedisConfig& config = {},
                             Round round = Round::sequential)
        : LiveWorld(size, {.node_timeout = 2s, .round = round, .quarantine = quarantine}, config) {
        for (const auto& server : *this) whole_since(server, 1min);
    }

    /// Returns a lock with a single attempt and the longest permitted ttl.
    Lock claim() { return lock(no_retry(quarantine)); }
};

}  // namespace redlock::test
