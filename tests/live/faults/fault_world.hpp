// The world of the fault tests: real servers, and between each of them and the library a link on which a test
// injects faults.
//
//     FaultWorld world{5};
//     world.link(2).black_hole();
//     auto lock = world.lock();
//     EXPECT_THAT(lock.acquire(), Succeeds());
//
// The servers themselves (world[2]) are asked past the links: what they hold is what has really happened.
#pragma once

#include "live/live_world.hpp"

#include <deque>

namespace redlock::test {

/// The links exist before the world does, and are made with it.
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
