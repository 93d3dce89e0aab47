// The world of fencing and quarantine: whose data servers have, and what the library keeps there.
#pragma once

#include "live/command_monitor.hpp"
#include "live/live_world.hpp"
#include "support/loopback_name.hpp"

#include <redlock/detail/command_encoding.hpp>

#include <string>
#include <string_view>

namespace redlock::test {

/// Whose data the server has: what stands in front of the numbers that it remembers.
inline std::string data_of(const RedisServer& server) {
    return server.info("server", "run_id") + ":" + server.info("replication", "master_replid") + ":";
}

/// This key holds the time since which the data are whole.
inline const std::string marker{detail::marker};
inline const std::string counter = detail::counter_of(the_resource).text();

/// As if the server had had its data for so long; in the future if negative.
inline void whole_since(const RedisServer& server, milliseconds age) {
    const auto set =
        "local t=redis.call('time') return redis.call('set',KEYS[1],"
        "ARGV[2]..string.format('%.0f',t[1]*1000000+t[2]-ARGV[1]*1000))";
    ASSERT_EQ(server.command({"EVAL", set, "1", marker, std::to_string(age.count()), data_of(server)}), "OK");
}

inline constexpr auto quarantine = 30s;

/// A world with a quarantine that all its servers have behind them.
class QuarantineWorld : public LiveWorld {
public:
    explicit QuarantineWorld(std::size_t size = 3, const RedisConfig& config = {},
                             Round round = Round::sequential)
        : LiveWorld(size, {.node_timeout = 1s, .round = round, .quarantine = quarantine}, config) {
        for (const auto& server : *this) whole_since(server, 1min);
    }

    /// One attempt with the longest ttl there may be.
    Lock claim() { return lock(no_retry(quarantine)); }
};

}  // namespace redlock::test
