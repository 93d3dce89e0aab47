// The world of fencing and quarantine: run ids of servers, and the keys that the library keeps on them.
#pragma once

#include "live/command_monitor.hpp"
#include "live/live_world.hpp"
#include "support/loopback_name.hpp"

#include <string>
#include <string_view>

namespace redlock::test {

/// Of this run of the server: another after each restart.
inline std::string run_id(const RedisServer& server) {
    const auto info = server.command({"INFO", "server"});
    const auto begin = info.find("run_id:") + 7;
    return info.substr(begin, info.find('\r', begin) - begin);
}

/// This key holds the time since which the data of this run are complete.
inline std::string marker_of(const RedisServer& server) {
    return "redlock:since:" + run_id(server);
}

inline std::string counter_on(const RedisServer& server, const std::string& resource = the_resource) {
    return "{" + resource + "}:fence:" + run_id(server);
}

/// As if the server had had its data for so long; in the future if negative.
inline void whole_since(const RedisServer& server, milliseconds age) {
    const auto set =
        "local t=redis.call('time') return redis.call('set',KEYS[1],"
        "string.format('%.0f',t[1]*1000000+t[2]-ARGV[1]*1000))";
    ASSERT_EQ(server.command({"EVAL", set, "1", marker_of(server), std::to_string(age.count())}), "OK");
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
