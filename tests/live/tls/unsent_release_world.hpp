// Locks whose connections are still being made when unlock() returns.
#pragma once

#include "tls_world.hpp"

#include <deque>

namespace redlock::test {

/// A slow handshake takes 4 s, which is more than an eighth of node_timeout. So unlock() does not wait for
/// its end.
struct UnsentRelease : TlsServersBehindLinks {
    RedisNodes make_nodes() const { return RedisNodes{link_endpoints, options}; }

    /// Returns two locks on different resources.
    static std::deque<Lock> acquire_two(RedisNodes& nodes) {
        std::deque<Lock> locks;
        for (const char* const resource : {"a", "b"}) {
            locks.emplace_back(nodes, resource, LockOptions{.ttl = 10min});
            EXPECT_THAT(locks.back().acquire(), Succeeds());
        }
        return locks;
    }
    /// Each release then needs a new connection.
    void slow_down() {
        for (auto& link : links) {
            link.reset();
            link.delay(2s);
        }
        slow_since = boot_clock().now();
    }
    void unlock_slowly(std::deque<Lock>& locks) {
        slow_down();
        for (auto& lock : locks) lock.unlock();
    }

    /// Expects that a lock that was unlocked after slow_down() leaves no key for longer than node_timeout.
    void expect_clean_in_time() {
        EXPECT_TRUE(wait_until([&] { return clean(); }));
        EXPECT_THAT(boot_clock().now() - slow_since, LastsAtMost(options.node_timeout));
    }

    const NodesOptions options{.node_timeout = 20s};
    Clock::time_point slow_since{};
};

}  // namespace redlock::test
