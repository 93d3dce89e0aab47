// The world of the fault tests: real servers, and between each of them and the library a link that does what
// networks do. Built by words:
//
//     FaultWorld world{5};
//     world.link(2).black_hole();
//     auto lock = world.lock();
//     EXPECT_THAT(lock.acquire(), Succeeds());
//
// The servers themselves (world[2]) are asked past the links: what they hold is what has really happened.
#pragma once

#include "live_world.hpp"
#include "support/tcp_proxy.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::test {

using support::TcpProxy;

class FaultWorld : public Cluster {
public:
    explicit FaultWorld(std::size_t size = 3, NodesOptions options = {.node_timeout = 2s},
                        const RedisConfig& config = {})
        : Cluster(size, config), links_(linked()), nodes(names(), options) {}

    TcpProxy& link(std::size_t node) { return links_.at(node); }
    std::deque<TcpProxy>& links() noexcept { return links_; }

    /// "127.0.0.1:port" of each link.
    std::vector<std::string> names() const {
        std::vector<std::string> result;
        for (const auto& link : links_) result.push_back(link.name());
        return result;
    }

    Lock lock(LockOptions options = {}) { return Lock{nodes, the_resource, options}; }
    Lock lock(std::string resource, LockOptions options = {}) {
        return Lock{nodes, std::move(resource), options};
    }

    /// On how many servers the resource holds this owner.
    std::size_t keys_of(std::string_view owner) {
        return static_cast<std::size_t>(
            std::ranges::count_if(*this, [&](auto& server) { return holder(server) == owner; }));
    }

    /// No key at all on any server.
    bool clean() {
        return std::ranges::all_of(*this, [](auto& server) { return server.command({"DBSIZE"}) == "0"; });
    }

    /// Every node has granted and let go once: there is a connection to each, and it is idle.
    void warm_up() {
        const auto resource = "warm up " + std::to_string(++warm_ups_);
        ASSERT_TRUE(wait_until([&] { return votes(lock(resource)) == size(); }));
    }

private:
    static std::size_t votes(Lock lock) {
        const auto result = lock.acquire();
        return count(lock.release(), Vote::granted);
    }

    std::deque<TcpProxy> linked() {
        std::deque<TcpProxy> result;
        for (const auto& server : *this) result.emplace_back(server.port());
        return result;
    }

    std::deque<TcpProxy> links_;
    int warm_ups_ = 0;

public:
    RedisNodes nodes;
};

/// All that the link has read has been passed on.
inline bool quiet(const TcpProxy& link) {
    return link.traffic().waiting_bytes == 0;
}

/// The commands that begin with `word`, as the link has seen them.
inline std::vector<support::SeenCommand> commands(const TcpProxy& link, std::string_view word) {
    auto result = link.commands();
    std::erase_if(result, [&](const auto& command) { return command.words.at(0) != word; });
    return result;
}

/// A test that holds for both ways to go round the nodes.
class InEachRound : public testing::TestWithParam<Round> {};

inline std::string name_of_round(const testing::TestParamInfo<Round>& info) {
    return info.param == Round::sequential ? "InTurn" : "AtOnce";
}

}  // namespace redlock::test
