// A release that a server refuses for now, on a connection that is in order. It is sent again later.
#include "live/live_world.hpp"

namespace redlock::test {
namespace {

/// A server that accepts writes only if it has a replica, which it has not.
void refuse_writes(const RedisServer& server) {
    ASSERT_EQ(server.command({"CONFIG", "SET", "min-replicas-to-write", "1"}), "OK");
}
void accept_writes(const RedisServer& server) {
    ASSERT_EQ(server.command({"CONFIG", "SET", "min-replicas-to-write", "0"}), "OK");
}

TEST(ARefusedRelease, IsSentAgainWhenTheServerAcceptsWrites) {
    LiveWorld world;
    auto lock = world.lock({.ttl = 10min});
    ASSERT_THAT(lock.acquire(), Succeeds());
    refuse_writes(world[1]);
    const auto released = lock.release();
    EXPECT_THAT(released, Succeeds());
    EXPECT_THAT(released, Reports(1, Errc::server_busy));
    ASSERT_NE(holder(world[1]), "(nil)");
    accept_writes(world[1]);
    auto another = world.lock("another");
    EXPECT_TRUE(wait_until([&] {
        (void)another.acquire();
        (void)another.release();
        return holder(world[1]) == "(nil)";
    }));
}

}  // namespace
}  // namespace redlock::test
