// The facts that a server reports in its reply to INFO.
#pragma once

#include "wire/reply.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redlock::tool {

/// Major version, minor version and patch level.
using Version = std::array<int, 3>;

/// Parses a version such as "7.0.15". A part that is not a number counts as 0.
Version parse_version(std::string_view text);

/// A field is empty, or has no value, if the server does not report it.
struct ServerInfo {
    std::string make{};           ///< "redis", "valkey", "keydb", "dragonfly"
    std::string version{};        ///< the server's own version
    std::string redis_version{};  ///< the version of Redis with which it is compatible
    std::string run_id{};
    std::string replication_id{};  ///< master_replid, which changes with each promotion
    std::string mode{};            ///< "standalone", "cluster", "sentinel"
    std::string role{};            ///< "master", "replica"
    std::optional<std::uint64_t> replicas{};
    std::optional<std::chrono::seconds> uptime{};
    std::optional<bool> appendonly{};
    std::optional<std::uint64_t> used_memory{};
    std::optional<std::uint64_t> max_memory{};  ///< 0 if there is no limit
    std::string eviction{};                     ///< maxmemory-policy

    static ServerInfo parse(std::string_view info);
};

/// Returns how many Sentinels watch a master, as one of them says in its reply to INFO. Returns nothing if
/// the reply does not say it.
std::optional<std::uint64_t> sentinels_in(std::string_view info, const std::string& master);

/// Returns the duration that `text` gives as a number. Returns nothing if it is not a number, is negative or
/// exceeds 200 years. A longer time is certainly wrong, and the arithmetic would overflow.
template <class Duration>
std::optional<Duration> duration_of(std::string_view text) {
    constexpr Duration longest = std::chrono::hours{24} * 365 * 200;
    const auto number = detail::whole_number<std::uint64_t>(text);
    if (!number || *number > static_cast<std::uint64_t>(longest.count())) return std::nullopt;
    return Duration{*number};
}

/// Returns the time since a server was started as a text: "37 s", "90 min", "12 d".
std::string text_of_age(std::chrono::seconds age);

}  // namespace redlock::tool
