// The world of the fault tests: real servers, and a proxy between each of them and the library, into which a
// test injects faults.
//
//     FaultWorld world{5};
//     world.link(2).black_hole();
//     auto lock = world.lock();
//     EXPECT_THAT(lock.acquire(), Succeeds());
//
// A test queries the servers themselves (world[2]) directly, so it sees their real keys.
#pragma once

#include "live/live_world.hpp"

#include <deque>

namespace redlock::test {

/// A base class, because the proxies must be created before the world.
struct Links {
    std::deque<TcpProxy> links_{};
};

class FaultWorld : private Links, public LiveWorld {
public:
    explicit FaultWorld(std::size_t size = 3, NodesOptions options = {.node_timeout = 2s},
                        const RedisConfig& config = {})
        : LiveWorld(size, options, config, links_) {}

    TcpProxy& link(std::size_t node) { return links_.at(node); }
    std::deque<TcpProxy>& links() noexcept { return links_; }

    void warm_up() { ASSERT_TRUE(LiveWorld::warm_up()); }
};

}  // namespace redlock::test
