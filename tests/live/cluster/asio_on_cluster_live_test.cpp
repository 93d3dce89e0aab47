// A lock of Asio on a node that is a Redis Cluster.
#include "cluster_world.hpp"
#include "live/loop/asio_world.hpp"

#include <string>

namespace redlock::test {
namespace {

using testing::HasSubstr;

TEST_F(Asio, LocksOnAClusterWhoseSlotsAreMoved) {
    ClusterWorld world;
    run([&]() -> net::awaitable<void> {
        asio::Lock lock{context, world.nodes, "orders:42", {.ttl = 1min}};
        EXPECT_TRUE(co_await lock.async_acquire(net::use_awaitable));
        const auto slot = detail::slot_of("orders:42");
        auto& from = world.first_master_of(slot);
        auto& to = &from == &world[0] ? world[1] : world[0];
        RedisClusterServers::begin_move(slot, from, to);
        RedisClusterServers::move_key("orders:42", from, to);
        EXPECT_TRUE(co_await lock.async_extend(net::use_awaitable));
        RedisClusterServers::end_move(slot, from, to);
        EXPECT_TRUE(co_await lock.async_extend(net::use_awaitable));
        EXPECT_TRUE(co_await lock.async_release(net::use_awaitable));
    });
    EXPECT_TRUE(world.clean());
}

TEST_F(Asio, RefusesFairLocksOnACluster) {
    RedisNodes on_cluster{{"redis+cluster://127.0.0.1:1"}};
    EXPECT_THAT([&] { const asio::Lock lock(context, on_cluster, "a", LockOptions{.fair = true}); },
                testing::ThrowsMessage<std::invalid_argument>(HasSubstr("LockOptions::fair")));
}

}  // namespace
}  // namespace redlock::test
