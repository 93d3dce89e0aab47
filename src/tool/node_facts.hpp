// What a checkup has found out about one node, before anybody judges it.
#pragma once

#include "server_info.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace redlock::tool {

/// Why something was not answered.
struct NodeError {
    std::error_code cause{};  ///< none: it was answered
    std::string detail{};     ///< the server's or the system's own words

    explicit operator bool() const noexcept { return static_cast<bool>(cause); }
};

/// One thing a lock does on a node, as it was tried there.
struct PermissionCheck {
    std::string verb;         ///< "acquire", "extend", "release", "count the holders", ...
    std::string key;          ///< the key that it used
    std::string permissions;  ///< what an ACL has to allow for it, besides the key
    NodeError error{};
    bool votes = true;  ///< without it the node has no full part in locks
};

/// The marker of the quarantine.
struct MarkerFacts {
    bool placed = false;
    std::chrono::milliseconds left{0};              ///< until the node has a vote; 0: it has one
    std::chrono::system_clock::time_point until{};  ///< the same by the clock of the server
};

/// What makes a failover of the server safe, as it is configured; none: unknown.
struct FailoverFacts {
    std::optional<std::uint64_t> min_replicas{};
    std::optional<std::chrono::seconds> max_lag{};
    std::optional<std::chrono::seconds> backlog_ttl{};
};

struct NodeFacts {
    std::string name{};
    std::string user = "default";
    NodeError unreachable{};
    std::optional<std::chrono::nanoseconds> round_trip{};  ///< the median of a few

    ServerInfo info{};
    NodeError info_error{};
    std::string appendfsync{};  ///< empty: unknown
    NodeError config_error{};
    std::optional<FailoverFacts> failover{};  ///< none: no Sentinel names the server

    std::optional<std::chrono::nanoseconds> clock_offset{};  ///< its wall clock less ours; any common offset
    NodeError clock_error{};

    std::vector<PermissionCheck> permission_checks{};
    bool probe_was_held = false;          ///< by another: extending and releasing were tried in part
    std::optional<MarkerFacts> marker{};  ///< none: without a quarantine, or unknown
};

}  // namespace redlock::tool
