// The implementation of Nodes for real servers: N independent Redis masters, reached over TCP, TLS or unix
// sockets.
#pragma once

#include <redlock/endpoint.hpp>
#include <redlock/export.hpp>
#include <redlock/nodes.hpp>
#include <redlock/observer.hpp>

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock {

/// The options of RedisNodes.
struct NodesOptions {
    /// The time that one node may take in one round: for the connection, the authentication, the command and
    /// the reply. It should be small compared with the ttl, and large compared with the round-trip time. If
    /// an address of a host name is silent, the next address is tried within the same time. From 1 ms to 1 h.
    std::chrono::milliseconds node_timeout{50};

    /// The order in which the round of an acquisition asks the nodes.
    Round round = Round::sequential;

    /// How many unused connections to each node are kept between rounds, apart from those on which a reply is
    /// missing, and how many unused listening connections for LockOptions::fair. This many threads can start
    /// a round at the same time without connecting anew. From 1 to 10000.
    std::size_t max_idle = 64;

    /// If true, the rounds of all threads share one connection to each node when more rounds are under way
    /// than the machine has processors, and for some time after that. The commands of many threads then go
    /// out in one write. Otherwise, each round has connections for itself, except to follow a command of an
    /// earlier round on its connection.
    bool share_connections = true;

    /// After how much time without traffic the system checks whether a connection is alive (TCP keepalive). A
    /// firewall, NAT or load balancer forgets a connection that is unused for longer than its idle limit.
    /// This time should be below the limit, so that it forgets none. If three checks in a row, a third of
    /// this time apart, are not answered, the connection is replaced. In whole seconds, from 0 (off) to 2 h.
    std::chrono::seconds tcp_keepalive{30};

    /// How long a node has no vote after a restart or any other loss of its data. During this time, the keys
    /// that it has forgotten expire on the other nodes. Must be at least the longest ttl that any client
    /// uses, and the same for all clients. From 0 (off) to 100 years. Needs the permission to call INFO.
    ///
    /// - A new node has no vote either. The time begins with the first acquisition on this node.
    /// - A replica that is promoted counts as restarted. Nodes with automatic failover must meet further
    ///   conditions, see docs/guarantees.md.
    /// - If two nodes turn out to be the same server, only one of them has a vote.
    /// - It must be 0 if a node is a Redis Cluster.
    std::chrono::milliseconds quarantine{0};

    /// Is notified of every round and connection; null for none. Must outlive the nodes and all their locks.
    Observer* observer = nullptr;

    /// Returns the user name and the password for a new connection to the node with this name
    /// (Nodes::name()), in place of those in its address. Thus a password or token that expires can be
    /// replaced while the nodes are used. Connections that exist go on with theirs. If empty (the default),
    /// those in the address are used. The Sentinels of a node always get theirs from the address.
    ///
    /// - Any thread that connects calls the function, also a thread of the library, and several threads may
    ///   call it at the same time.
    /// - It must return at once, because the time counts towards node_timeout, and a thread that calls it may
    ///   keep other threads waiting. It must use neither these nodes nor their locks.
    /// - A child that is forked in the function must not return from it, because another thread of the parent
    ///   may have locked a mutex that the child would wait for.
    /// - If it throws std::bad_alloc, so does the function of the library that connects. After any other
    ///   exception the connection fails: the vote of the node is unknown, with the cause
    ///   Errc::connection_failed and the text of the exception.
    std::function<Credentials(std::string_view node)> credentials{};
};

/// A set of N Redis servers and the connections to them.
///
/// Connections are made when they are first needed, and are kept for later rounds. When a node fails, rounds
/// skip it for a while (at most 10 ms at first, and later 1 s), unless there is no quorum without it. A
/// frozen or killed node therefore delays only the first operations that ask it, each by one node_timeout.
///
/// Threads: all threads may share one RedisNodes. The library starts short-lived threads to resolve names, to
/// query Sentinels, and to send releases for which unlock() did not wait. After fork() the child makes its
/// own connections.
///
/// The destructor waits for at most one node_timeout until the servers have executed the releases that are
/// left to do. After construction the functions throw only std::bad_alloc.
class REDLOCK_EXPORT RedisNodes final : public Nodes {
    /// An address in a list, made of everything that converts to text. This type is not std::string, because
    /// then {{"a", "b"}} would mean one string, made of two pointers, and not two nodes.
    struct Uri {
        template <class Text>
        requires std::convertible_to<const Text&, std::string_view> Uri(const Text& text)
            : view(text) {}  // NOLINT(google-explicit-constructor)
        std::string_view view;
    };

public:
    /// Reads the addresses, but does no I/O: all nodes may be down. Throws std::invalid_argument if the list
    /// is empty, an address is malformed, a node is listed twice, or an option is out of range. Also throws
    /// it if an address requires TLS and the library was built without TLS.
    RedisNodes(std::initializer_list<Uri> uris, NodesOptions options = {});
    explicit RedisNodes(const std::vector<std::string>& uris, NodesOptions options = {});
    explicit RedisNodes(std::vector<Endpoint> endpoints, NodesOptions options = {});
    ~RedisNodes() override;

    bool has_cluster() const noexcept override { return has_cluster_; }

    /// Returns boot_clock().
    Clock* required_clock() const noexcept override;

    /// Makes a round. Several extensions are made in one round, which takes at most one node_timeout. Several
    /// other requests are made in rounds of their own, one after the other.
    void ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies) override;
    using Nodes::ask;

    /// Returns a waiter that listens over a connection of its own.
    std::unique_ptr<Waiter> waiter() override;

    /// Returns a set of connections for one event loop.
    std::shared_ptr<loop::Rounds> rounds_in(EventLoop& loop,
                                            const std::shared_ptr<loop::Scheduler>& scheduler) override;

private:
    struct Impl;
    Impl& own();

    const bool has_cluster_;
    std::atomic<Impl*> impl_;  // owned; a new one in a child of fork()
};

}  // namespace redlock
