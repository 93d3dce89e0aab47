// The checkup of `redlock doctor`: tries what locks need on each node, and collects facts. Judges nothing.
#pragma once

#include "server_info.hpp"

#include <redlock/endpoint.hpp>
#include <redlock/options.hpp>
#include <redlock/redis_nodes.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace redlock::tool {

/// What a checkup has to try, and for which locks. A server that is fine for some locks may be unsafe for
/// others.
struct CheckupPlan {
    LockOptions lock{.ttl = std::chrono::seconds{30}};  ///< of the locks that the nodes are to serve
    NodesOptions nodes{};                               ///< of the clients that use these locks
    std::string resource{};                             ///< the resource of the probe, which nobody else uses
    bool mark = false;                                  ///< write the marker of the quarantine
};

// ---- The facts

/// Why a question was not answered.
struct NodeError {
    std::error_code cause{};  ///< none if it was answered
    std::string detail{};     ///< the text of the server or the system

    explicit operator bool() const noexcept { return static_cast<bool>(cause); }
};

/// Returns the error of an Answer or a NodeReport. A vote is no error, not even a refusal: it shows that the
/// command is permitted.
template <class T>
NodeError error_of(const T& it) {
    return {it.cause, it.detail};
}

/// Returns the error as a text for people.
inline std::string reason_of(const NodeError& error) {
    return error.cause.message() + (error.detail.empty() ? "" : ": " + error.detail);
}

/// One operation of a lock that was tried on a node.
struct PermissionCheck {
    std::string verb;         ///< "acquire", "extend", "release", "count the holders", ...
    std::string key;          ///< the key that it used
    std::string permissions;  ///< the permissions that it needs, besides the key
    NodeError error{};
    bool votes = true;  ///< the node cannot fully take part in locks without it
};

/// The marker of the quarantine.
struct MarkerFacts {
    bool placed = false;
    std::chrono::milliseconds left{0};              ///< the time until the node has a vote; 0 if it has one
    std::chrono::system_clock::time_point until{};  ///< the same instant by the clock of the server
};

/// The settings on which the safety of a failover depends. A field has no value if it is unknown.
struct FailoverFacts {
    std::optional<std::uint64_t> min_replicas{};
    std::optional<std::chrono::seconds> max_lag{};
    std::optional<std::chrono::seconds> backlog_ttl{};
    std::optional<std::uint64_t> sentinels{};  ///< how many watch the master, as one of them says
    std::uint64_t listed = 0;                  ///< how many the address lists
};

/// What is known about a node that is a Redis Cluster. All other facts are about one of its servers.
struct ClusterFacts {
    std::string asked{};                     ///< that server
    NodeError list_error{};                  ///< of CLUSTER NODES
    std::size_t unserved = 0;                ///< how many hash slots have no master
    std::vector<std::string> moving{};       ///< the masters that are moving hash slots
    std::vector<std::string> unreachable{};  ///< the masters that cannot be reached, with the reason
    std::string full_coverage{};             ///< cluster-require-full-coverage; empty if unknown
};

/// The facts about one node.
struct NodeFacts {
    std::string name{};
    std::string user = "default";
    NodeError unreachable{};
    std::optional<std::chrono::nanoseconds> round_trip{};  ///< the median of several

    ServerInfo info{};
    NodeError info_error{};
    std::string appendfsync{};  ///< empty if unknown
    NodeError config_error{};
    std::optional<FailoverFacts> failover{};  ///< none if no Sentinels name the server
    std::optional<ClusterFacts> cluster{};    ///< none if the node is no Redis Cluster

    /// The server's wall clock minus the local boot clock. Only the differences between nodes have a meaning.
    std::optional<std::chrono::nanoseconds> clock_offset{};
    NodeError clock_error{};

    std::vector<PermissionCheck> permission_checks{};
    bool probe_was_held = false;          ///< another client held it, so not everything could be tried
    std::optional<MarkerFacts> marker{};  ///< none if there is no quarantine, or it is unknown
};

/// Examines all nodes at the same time. Each command takes one node_timeout at most. The clocks of the nodes
/// are read one right after the other. Leaves nothing behind but the marker. If a node does not release the
/// probe, it expires after 20 s. Throws std::invalid_argument for endpoints that RedisNodes rejects.
std::vector<NodeFacts> check_up(const std::vector<Endpoint>& endpoints, const CheckupPlan& plan);

}  // namespace redlock::tool
