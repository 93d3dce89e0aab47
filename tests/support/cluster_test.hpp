// A fixture with five servers and their nodes, for locks on one resource.
#pragma once

#include "cluster.hpp"
#include "wait_until.hpp"

#include <redlock/redlock.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>

namespace redlock::support {

class ClusterTest : public testing::Test {
protected:
    /// Returns how many servers have the key of the resource.
    std::size_t keys(const std::string& resource = "orders:42") {
        std::size_t count = 0;
        for (auto& server : cluster) count += server.command({"EXISTS", resource}) == "1" ? 1U : 0U;
        return count;
    }
    bool no_key_is_left(const std::string& resource = "orders:42") {
        return wait_until([&] { return keys(resource) == 0; });
    }

    Cluster cluster{5};
    RedisNodes nodes{cluster.uris(), {.node_timeout = std::chrono::seconds{1}}};  // also for a busy machine
};

/// A semaphore with the name "jobs" on these servers.
class SemaphoreTest : public ClusterTest {
protected:
    static constexpr std::size_t limit = 3;

    /// Returns how many keys of slots there are on all servers.
    std::size_t keys() {
        std::size_t count = 0;
        for (std::size_t slot = 0; slot < limit; ++slot)
            count += ClusterTest::keys("{jobs}:slot:" + std::to_string(slot));
        return count;
    }
};

}  // namespace redlock::support
