// N independent Redis masters, reached over TCP, TLS or unix sockets. This is the implementation of Nodes for
// real servers. It decides which server a node is, but not whether a lock is held.
#pragma once

#include <redlock/endpoint.hpp>
#include <redlock/export.hpp>
#include <redlock/nodes.hpp>
#include <redlock/observer.hpp>

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock {

/// The options of RedisNodes. Each field states its meaning, unit and limits.
struct NodesOptions {
    /// The time that one node may take in one round: for the connection, the authentication, the command and
    /// the reply. It should be small compared with the ttl, and large compared with the round-trip time. From
    /// 1 ms to 1 h.
    std::chrono::milliseconds node_timeout{50};

    /// The order in which the round of an acquisition asks the nodes.
    Round round = Round::sequential;

    /// How many unused connections each node keeps between rounds. This many threads can start a round at the
    /// same time without connecting anew. From 1 to 10000.
    std::size_t max_idle = 64;

    /// Whether threads share one connection to each node while more of them ask at the same time than there
    /// are processors. One of the threads then sends the commands of all of them in common writes, so a lock
    /// costs less the more threads there are. Otherwise each round has connections of its own.
    bool share_connections = true;

    /// How long a node has no vote after a restart or any other loss of its data, because it may have
    /// forgotten who holds what. It only takes releases during this time. Must be at least the longest ttl
    /// that any client uses, and the same for all clients. From 0 (off) to 100 years. Needs the permission to
    /// call INFO.
    ///
    /// - The node itself stores since when its data are complete, in a key of its own. The first acquisition
    ///   ever on a fresh node starts the time.
    /// - A replica has no vote, and a replica that is promoted counts as restarted. Nodes with automatic
    ///   failover must meet further conditions, see docs/guarantees.md.
    /// - If two nodes turn out to be the same server, only one of them has a vote.
    std::chrono::milliseconds quarantine{0};

    /// The observer that is notified of every round and connection; null for none. Must outlive the nodes.
    Observer* observer = nullptr;
};

/// A set of N Redis servers and the connections to them.
///
/// Connections are made when they are first needed, and are kept for later rounds. When a node fails, rounds
/// skip it for a while (10 ms at first, up to 1 s), unless there is no quorum without it. A frozen or killed
/// node therefore delays one operation by node_timeout, and not every operation. A late reply is read when
/// the next round begins, and is never taken for the reply to another command.
///
/// Threads: all threads may share one RedisNodes, and none waits for the round trips of another. If many of
/// them ask at the same time, their commands share connections (NodesOptions::share_connections). After
/// fork() the child makes its own connections. There are two kinds of short-lived threads. The first kind
/// resolves names and asks Sentinels. The second kind sends releases whose connections were not ready in
/// time. The destructor sends such releases, and waits until the servers have executed all releases, for at
/// most one node_timeout.
///
/// After construction the functions throw only std::bad_alloc.
class REDLOCK_EXPORT RedisNodes final : public Nodes {
    /// Accepts everything that converts to text, and nothing else. Thus {{"a", "b"}} means two nodes, and not
    /// one string between two pointers.
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

    /// Returns boot_clock().
    Clock* required_clock() const noexcept override;

    /// Makes a round. Several extensions are pipelined: each node gets them one behind the other on one
    /// connection, within one node_timeout. Other requests are made one after the other, each with its own
    /// node_timeout.
    void ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies) override;
    using Nodes::ask;

    /// Returns a waiter that listens over a connection of its own.
    std::unique_ptr<Waiter> waiter() override;

    /// Returns a set of connections for one event loop.
    std::shared_ptr<loop::Rounds> rounds_in(EventLoop& loop,
                                            const std::shared_ptr<loop::Scheduler>& scheduler) override;

private:
    class Impl;
    Impl& own();

    std::atomic<Impl*> impl_;  // owned; a new one in a child of fork()
};

}  // namespace redlock
