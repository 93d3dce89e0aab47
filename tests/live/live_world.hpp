// The world of the live tests: real servers, real sockets, real time.
//
//     LiveWorld world{5};
//     world[2].freeze();
//     auto lock = world.lock();
//     EXPECT_THAT(lock.acquire(), Succeeds());
//     EXPECT_EQ(world.keys_of(lock.owner()), 4U);
//
// The default node_timeout is long, so that no node is late on a busy machine. A test of a time limit sets
// its own.
#pragma once

#include "pure/result_matchers.hpp"
#include "support/cluster.hpp"
#include "support/in_threads.hpp"
#include "support/tcp_proxy.hpp"
#include "support/wait_until.hpp"

#include <redlock/redlock.hpp>

#include <algorithm>
#include <deque>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock {

inline void PrintTo(Round round, std::ostream* out) {
    *out << (round == Round::sequential ? "sequential" : "all at once");
}

}  // namespace redlock

namespace redlock::test {

using support::Cluster;
using support::in_threads;
using support::RedisConfig;
using support::RedisServer;
using support::TcpProxy;
using support::wait_until;

/// Matches a Result in which the vote of this node is unknown, with this cause.
MATCHER_P2(Reports, node, cause, std::error_code{cause}.message() + " at node " + std::to_string(node)) {
    const NodeReport& report = arg.nodes()[static_cast<std::size_t>(node)];
    *result_listener << "which reports " << report.cause.message() << " (" << report.detail << ")";
    return report.vote == Vote::unknown && report.cause == cause;
}

MATCHER_P(LastsAtLeast, span, "at least " + text(span)) {
    *result_listener << text(arg);
    return arg >= span;
}

MATCHER_P(LastsAtMost, span, "at most " + text(span)) {
    *result_listener << text(arg);
    return arg <= span;
}

inline std::size_t count(const Result& result, Vote vote) {
    return static_cast<std::size_t>(std::ranges::count(result.nodes(), vote, &NodeReport::vote));
}

template <class Action>
Clock::duration time_taken(Action action) {
    const auto start = boot_clock().now();
    action();
    return boot_clock().now() - start;
}

/// Returns the value of the resource's key, or "(nil)" if there is none.
inline std::string holder(const RedisServer& server, const std::string& resource = the_resource) {
    return server.command({"GET", resource});
}

/// Returns the time to live of the key, which is negative if there is none.
inline milliseconds expiry(const RedisServer& server, const std::string& resource = the_resource) {
    return milliseconds{std::stol(server.command({"PTTL", resource}))};
}

/// Returns how often the server has executed a command since its start, including calls by scripts.
inline std::size_t calls(const RedisServer& server, const std::string& command) {
    const auto stats = server.command({"INFO", "commandstats"});
    const auto words = "cmdstat_" + command + ":calls=";
    const auto at = stats.find(words);
    return at == std::string::npos ? 0 : std::stoul(stats.substr(at + words.size()));
}

/// Lets another client hold the resource.
inline std::string occupy(const RedisServer& server, milliseconds ttl = 1min) {
    return server.command({"SET", the_resource, "another", "NX", "PX", std::to_string(ttl.count())});
}

class LiveWorld : public Cluster {
public:
    explicit LiveWorld(std::size_t size = 3, NodesOptions options = {.node_timeout = 2s},
                       const RedisConfig& config = {})
        : Cluster(size, config), nodes(uris(), options) {}

    Lock lock(LockOptions options = {}) { return Lock{nodes, the_resource, options}; }
    Lock lock(std::string resource, LockOptions options = {}) {
        return Lock{nodes, std::move(resource), options};
    }

    /// Lets every node grant and release once, so that there is an idle connection to each.
    [[nodiscard]] bool warm_up() {
        const auto resource = "warm-up " + std::to_string(++warm_ups_);
        return wait_until([&] {
            auto warm = lock(resource);
            (void)warm.acquire();
            return count(warm.release(), Vote::granted) == size();
        });
    }

    /// Returns on how many of the running servers the resource has this owner.
    std::size_t keys_of(std::string_view owner) {
        return static_cast<std::size_t>(std::ranges::count_if(
            *this, [&](auto& server) { return server.running() && holder(server) == owner; }));
    }

    /// Returns true if no running server has any key.
    bool clean() {
        return std::ranges::all_of(
            *this, [](auto& server) { return !server.running() || server.command({"DBSIZE"}) == "0"; });
    }

protected:
    /// With a proxy between each server and the library.
    LiveWorld(std::size_t size, NodesOptions options, const RedisConfig& config, std::deque<TcpProxy>& links)
        : Cluster(size, config), nodes(names_of(links, *this), options) {}

private:
    int warm_ups_ = 0;

public:
    RedisNodes nodes;
};

/// A test with both orders of a round.
class InEachRound : public testing::TestWithParam<Round> {};

inline auto each_round() {
    return testing::Values(Round::sequential, Round::all_at_once);
}

/// Names of parametrised tests.
inline constexpr auto by_name = [](const auto& info) { return info.param.name; };
inline constexpr auto by_round = [](const auto& info) {
    return info.param == Round::sequential ? "InTurn" : "AtOnce";
};

}  // namespace redlock::test
