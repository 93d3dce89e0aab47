// The world of the live tests: real servers, real sockets, real time.
//
//     LiveWorld world{5};
//     world[2].freeze();
//     auto lock = world.lock();
//     EXPECT_THAT(lock.acquire(), Succeeds());
//     EXPECT_EQ(world.keys_of(lock.owner()), 4U);
//
// Budgets are long, so that a busy machine makes no node late; a test whose rule is the time sets its own.
#pragma once

#include "support/cluster.hpp"
#include "support/tcp_proxy.hpp"
#include "support/wait_until.hpp"

#include <redlock/redlock.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <ostream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace redlock {

/// What GoogleTest shows of a Result.
inline void PrintTo(const Result& result, std::ostream* out) {
    *out << '"' << result.message() << '"';
}

inline void PrintTo(Round round, std::ostream* out) {
    *out << (round == Round::sequential ? "sequential" : "all at once");
}

}  // namespace redlock

namespace redlock::test {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using support::Cluster;
using support::RedisConfig;
using support::RedisServer;
using support::TcpProxy;
using support::wait_until;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

inline constexpr auto* the_resource = "orders:42";

inline std::string text(Clock::duration span) {
    return std::to_string(span.count() / 1'000'000) + " ms";
}

MATCHER(Succeeds, "succeeds") {
    return static_cast<bool>(arg);
}

MATCHER_P(FailsWith, error, "fails with " + std::error_code{error}.message()) {
    return arg.error() == error;
}

/// A Result in which the vote of that node is unknown, for that cause.
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

/// One attempt only.
inline LockOptions no_retry(milliseconds ttl = 10s) {
    return {.ttl = ttl, .retry = {.attempts = 1}};
}

/// The value of the resource's key; "(nil)" if there is none.
inline std::string holder(const RedisServer& server, const std::string& resource = the_resource) {
    return server.command({"GET", resource});
}

/// The time to live of the key; negative if there is none.
inline milliseconds expiry(const RedisServer& server, const std::string& resource = the_resource) {
    return milliseconds{std::stol(server.command({"PTTL", resource}))};
}

/// How often the server has carried out a command since it started, also in scripts.
inline std::size_t calls(const RedisServer& server, const std::string& command) {
    const auto stats = server.command({"INFO", "commandstats"});
    const auto words = "cmdstat_" + command + ":calls=";
    const auto at = stats.find(words);
    return at == std::string::npos ? 0 : std::stoul(stats.substr(at + words.size()));
}

/// Another client takes the resource.
inline std::string occupy(const RedisServer& server, milliseconds ttl = 1min) {
    return server.command({"SET", the_resource, "another", "NX", "PX", std::to_string(ttl.count())});
}

/// SET and scripts wait from now on, all else is answered; at most that long, or until let_write().
inline void keep_from_writing(const RedisServer& server, milliseconds at_most = 1min) {
    ASSERT_EQ(server.command({"CLIENT", "PAUSE", std::to_string(at_most.count()), "WRITE"}), "OK");
}
inline void let_write(const RedisServer& server) {
    ASSERT_EQ(server.command({"CLIENT", "UNPAUSE"}), "OK");
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

    /// Every node has granted and released once: there is a connection to each, and it is idle.
    [[nodiscard]] bool warm_up() {
        const auto resource = "warm-up " + std::to_string(++warm_ups_);
        return wait_until([&] {
            auto warm = lock(resource);
            (void)warm.acquire();
            return count(warm.release(), Vote::granted) == size();
        });
    }

    /// On how many of the servers that can answer the resource holds this owner.
    std::size_t keys_of(std::string_view owner) {
        return static_cast<std::size_t>(std::ranges::count_if(
            *this, [&](auto& server) { return server.running() && holder(server) == owner; }));
    }

    /// No key at all on any server that runs.
    bool clean() {
        return std::ranges::all_of(
            *this, [](auto& server) { return !server.running() || server.command({"DBSIZE"}) == "0"; });
    }

protected:
    /// With a link between each server and the library.
    LiveWorld(std::size_t size, NodesOptions options, const RedisConfig& config, std::deque<TcpProxy>& links)
        : Cluster(size, config), nodes(names_of(links, *this), options) {}

private:
    static std::vector<std::string> names_of(std::deque<TcpProxy>& links, Cluster& servers) {
        std::vector<std::string> names;
        for (auto& server : servers) names.push_back(links.emplace_back(server.port()).name());
        return names;
    }

    int warm_ups_ = 0;

public:
    RedisNodes nodes;
};

/// How a server accepts commands and does not answer them, and how that ends.
struct Standstill {
    std::string name;
    void (*begin)(RedisServer&);
    void (*end)(RedisServer&);
};

inline void PrintTo(const Standstill& standstill, std::ostream* out) {
    *out << standstill.name;
}

inline std::vector<Standstill> standstills() {
    return {{"Frozen", [](RedisServer& server) { server.freeze(); },  // no command is answered
             [](RedisServer& server) { server.thaw(); }},
            {"Paused", [](RedisServer& server) { keep_from_writing(server); },  // all but SET and scripts is
             [](RedisServer& server) { let_write(server); }}};
}

/// A test for both kinds of round.
class InEachRound : public testing::TestWithParam<Round> {};

inline auto each_round() {
    return testing::Values(Round::sequential, Round::all_at_once);
}

/// 1, 3 and 5 nodes, or some of them, in both kinds of round.
struct Formation {
    std::size_t size;
    Round round;
};

inline void PrintTo(const Formation& formation, std::ostream* out) {
    *out << formation.size << (formation.round == Round::sequential ? " in turn" : " at once");
}

inline std::vector<Formation> formations(const std::vector<std::size_t>& sizes) {
    std::vector<Formation> result;
    for (const auto size : sizes)
        for (const auto round : {Round::sequential, Round::all_at_once}) result.push_back({size, round});
    return result;
}

inline std::string name_of(const Formation& formation) {
    return std::to_string(formation.size) + (formation.round == Round::sequential ? "InTurn" : "AtOnce");
}

/// Names of parametrised tests.
inline constexpr auto by_formation = [](const auto& info) { return name_of(info.param); };
inline constexpr auto by_formation_and_standstill = [](const auto& info) {
    return name_of(std::get<0>(info.param)) + std::get<1>(info.param).name;
};
inline constexpr auto by_name = [](const auto& info) { return info.param.name; };
inline constexpr auto by_round = [](const auto& info) {
    return info.param == Round::sequential ? "InTurn" : "AtOnce";
};

}  // namespace redlock::test
