// What a server says of itself, by INFO.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

namespace redlock::tool {

struct Version {
    int major = 0;
    int minor = 0;
    int patch = 0;

    /// "7.0.15"; what is no number counts as 0.
    static Version parse(std::string_view text);

    friend bool operator<(const Version& a, const Version& b) {
        return std::tie(a.major, a.minor, a.patch) < std::tie(b.major, b.minor, b.patch);
    }
};

/// Empty, or no value: it does not say.
struct ServerInfo {
    std::string make{};           ///< "redis", "valkey", "keydb", "dragonfly"
    std::string version{};        ///< as that make counts
    std::string redis_version{};  ///< of the Redis that it is like
    std::string run_id{};
    std::string replication_id{};  ///< master_replid: another after each promotion
    std::string mode{};            ///< "standalone", "cluster", "sentinel"
    std::string role{};            ///< "master", "slave"
    std::optional<std::uint64_t> replicas{};
    std::optional<std::chrono::seconds> uptime{};
    std::optional<bool> appendonly{};
    std::optional<std::uint64_t> used_memory{};
    std::optional<std::uint64_t> max_memory{};  ///< 0: without a bound
    std::string eviction{};                     ///< its maxmemory-policy

    static ServerInfo parse(std::string_view info);
};

/// No time that a server names is longer, unless it lies: with a longer one the arithmetic would overflow.
inline constexpr std::chrono::seconds longest_time = std::chrono::hours{24} * 365 * 200;

/// How long a server has been up: "37 s", "90 min", "12 d".
std::string text_of_age(std::chrono::seconds age);

}  // namespace redlock::tool
