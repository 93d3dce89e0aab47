// N independent Redis masters, over sockets that a round waits for itself; hiredis parses the replies.
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

struct NodesOptions {
    /// The whole budget of one node in one round: connecting, authentication, command and reply (S13, rule
    /// A9). Small against the ttl, large against the round-trip time. From 1 ms to 1 h.
    std::chrono::milliseconds node_timeout{50};

    /// How acquiring goes round the nodes.
    Round round = Round::sequential;

    /// How many connections a node keeps between the rounds: as many threads find one ready. From 1 to 10000.
    std::size_t max_idle = 64;

    /// The longest ttl in use by anyone. A node that was restarted, or lost its data in another way, less
    /// than this ago has no vote (the page's delayed restart, S30), for it may have forgotten who holds what;
    /// it only takes releases. The node itself remembers since when its data is whole, in a key of its own:
    /// the first acquire ever on a fresh node starts the time. A replica has no vote then, and one that is
    /// promoted counts as restarted; what nodes with automatic failover need beside that says
    /// docs/guarantees.md. Nor has a node that turns out to be the same server as another a vote. Needs INFO.
    /// 0: off.
    std::chrono::milliseconds quarantine{0};

    /// Is told of every round and connection; none if null. Must outlive the nodes.
    Observer* observer = nullptr;
};

/// Connections are made when they are first needed and kept for the next round. A node that failed is left
/// alone for a while (10 ms at first, up to 1 s), so that it costs its budget once and not in every round;
/// it is asked earlier if there is no quorum without it. A late reply is read when the next round
/// begins and never taken for another command's.
///
/// All threads may share one RedisNodes: none waits for another's round trips. After fork() the child makes
/// connections of its own. A short-lived thread resolves names, and one sends releases whose connections were
/// not ready in time; the destructor does so for one node_timeout at most. After construction only
/// std::bad_alloc is thrown.
class REDLOCK_EXPORT RedisNodes final : public Nodes {
    /// Made of anything that is text, and of nothing else: {{"a", "b"}} are two nodes, and not the string
    /// that lies between two pointers.
    struct Uri {
        template <class Text>
        requires std::convertible_to<const Text&, std::string_view> Uri(const Text& text)
            : view(text) {}  // NOLINT(google-explicit-constructor)
        std::string_view view;
    };

public:
    /// No I/O: works with every node down (rule A4). Throws std::invalid_argument for an empty list, a
    /// malformed URI, a node that is listed twice (rule D8), an option out of its range, or
    /// `rediss://` in a build without TLS.
    RedisNodes(std::initializer_list<Uri> uris, NodesOptions options = {});
    explicit RedisNodes(const std::vector<std::string>& uris, NodesOptions options = {});
    explicit RedisNodes(std::vector<Endpoint> endpoints, NodesOptions options = {});
    ~RedisNodes() override;

    /// boot_clock().
    Clock* required_clock() const noexcept override;

    /// Several extensions are pipelined: to each node they go one behind the other, over one connection, in
    /// one budget. Other requests are asked one after the other, each with budgets of its own.
    void ask(std::span<const Request> requests, const RoundLimits& limits, std::span<Tally> tallies) override;
    using Nodes::ask;

    std::unique_ptr<Waiter> waiter() override;

private:
    class Impl;
    Impl& own();

    std::atomic<Impl*> impl_;  // owned; another one after fork()
};

}  // namespace redlock
