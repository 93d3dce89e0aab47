// What a process knows about one node that is a Redis Cluster: its servers, and which of them serves which
// hash slot. All groups share it.
//
// The servers name each other. A new connection asks for the list (CLUSTER NODES) until it is known. After
// that, the list is *outdated* if a server has failed or has named another one for a hash slot (MOVED). Then
// one connection asks again, once in a second at most.
#pragma once

#include <redlock/clock.hpp>
#include <redlock/detail/not_copied.hpp>
#include <redlock/nodes.hpp>

#include "../round/cluster_map.hpp"
#include "../round/pending_replies.hpp"
#include "node_config.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock {

/// The settings of one server of a Cluster. All Node objects of the server share its health and its releases.
using ClusterServer = std::shared_ptr<const NodeConfig>;

/// Any thread may call the functions.
class RedisCluster {
public:
    /// The largest number of servers. A hostile server could name others without an end.
    static constexpr std::size_t most_servers = 4096;

    /// `node` has the seeds. Does no I/O.
    explicit RedisCluster(const NodeConfig& node);

    /// Returns the server of a hash slot, or null if it is not known.
    ClusterServer server_of(std::uint16_t hash_slot) const;
    /// Returns all servers that are known, the seeds first.
    std::vector<ClusterServer> servers() const;
    /// Returns the servers that have to get a kept release.
    std::vector<ClusterServer> debtors() const;
    /// Returns the server at an address. `asked` is the host of the server that has named the address.
    /// Returns null if there are too many servers.
    ClusterServer server_at(const detail::ServerAddress& address, std::string_view asked);

    /// Records a MOVED or an ASK.
    void redirected(const detail::Redirection& to, std::string_view asked);
    /// Records the reply to CLUSTER NODES.
    void learn(std::string_view nodes, std::string_view asked);
    /// Records that the Redis user may not ask for the list, or that the server has none.
    void cannot_learn() noexcept {
        outdated_ = false;
        was_answered_ = true;
    }
    /// Records that the list may be out of date.
    void outdated() noexcept { outdated_ = true; }
    /// Returns true if a connection should ask for the list. Then no other should for a second, once the list
    /// is known.
    bool begin_refresh(Clock::time_point now);
    /// Returns true if begin_refresh() would.
    bool refresh_is_due(Clock::time_point now) const;
    /// Returns true if a server has answered ASK for this hash slot, and none has answered MOVED since.
    bool is_moving(std::uint16_t hash_slot) const;

    /// Lets the server at `to` get this release. If the redirection is an ASK, the release is sent behind
    /// ASKING.
    void keep(const detail::PendingReply& release, const detail::Redirection& to, std::string_view asked);
    /// Returns true if other servers serve the hash slots that this one has had. Then gives its releases to
    /// them.
    bool has_replaced(const NodeConfig& server);

private:
    /// Whether a server serves hash slots by the last list, has served some by an earlier one only, or
    /// neither.
    enum class HashSlots : std::uint8_t { never, served, serves };

    struct Known {
        ClusterServer server;
        std::string other_name{};  // the other name that the server announces: its host name or its address
        bool is_seed = false;
        HashSlots hash_slots = HashSlots::never;
    };

    Known* find_locked(const detail::ServerAddress& address, std::string_view asked);
    void move_releases_locked(const NodeConfig& former);

    const NodeConfig node_;
    mutable std::mutex mutex_{};
    // Guarded by mutex_.
    std::list<Known> servers_{};
    // Which server has each hash slot; null if it is not known.
    std::vector<const Known*> hash_slots_ = std::vector<const Known*>(detail::hash_slot_count);
    std::vector<bool> moving_ = std::vector<bool>(detail::hash_slot_count);
    Clock::time_point next_refresh_{};
    bool hosts_are_unknown_ = false;  // the servers name no hosts, so that of the asked one is used

    std::atomic<bool> was_answered_{false};  // the servers have named one another, or have refused to
    std::atomic<bool> outdated_{true};
};

using RedisClusters = std::vector<std::shared_ptr<RedisCluster>>;

/// The requests of a batch, in parts that can each be one round:
///
/// - Only extensions share a part. The requests of one round share one connection to each node, but a release
///   must follow its own SET (pending_replies.hpp), and also goes to nodes in back-off.
/// - If a node is a Redis Cluster, all requests of a part have the same servers. A request whose hash slot is
///   being moved is a part of its own, because only a round with one request follows redirections.
///
///     for (RequestsByServer parts{clusters, requests, tallies}; parts.next();)
///         make_round(parts.requests(), parts.tallies());
class RequestsByServer : detail::NotCopied {
public:
    /// The arguments must outlive the object.
    RequestsByServer(const RedisClusters& clusters, std::span<const Request> requests,
                     std::span<Tally> tallies);
    /// Stores the tallies of the present part.
    ~RequestsByServer() { store(); }

    /// Goes on to the next part. Returns false if there is none.
    bool next();
    std::span<const Request> requests() const noexcept { return numbers_.empty() ? all_ : part_; }
    std::span<Tally> tallies() noexcept { return numbers_.empty() ? all_tallies_ : part_tallies_; }

private:
    void store() noexcept;

    const std::span<const Request> all_;
    const std::span<Tally> all_tallies_;
    std::vector<std::size_t> numbers_{};  // of the part, for each request; empty if there is one part
    std::size_t parts_ = 0;
    std::size_t present_ = 0;  // the number of the present part + 1
    std::vector<Request> part_{};
    std::vector<Tally> part_tallies_{};
};

}  // namespace redlock
