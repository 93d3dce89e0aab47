// LockOptions::fair over TLS, including the connection of a waiter that is subscribed.
#include "live/tls/tls_world.hpp"

#include <string>
#include <thread>

namespace redlock::test::fair_tls_live_test {
namespace {

struct FairTls : TlsServers {
    Lock lock() { return Lock{nodes, the_resource, {.ttl = 1min, .retry = {.delay = 1min}, .fair = true}}; }

    RedisNodes nodes{endpoints(authority), patient()};
};

TEST_F(FairTls, ReleaseWakesAWaiter) {
    auto holder = lock();
    auto waiting = lock();
    ASSERT_THAT(holder.acquire(), Succeeds());
    for (int i = 0; i < 2; ++i) {  // over a new connection, and over one that is kept
        std::jthread waiter{[&] { EXPECT_THAT(waiting.acquire_for(50s), Succeeds()); }};
        ASSERT_TRUE(wait_until([&] { return servers[0]->command({"ZCARD", "{orders:42}:queue"}) == "1"; }));
        EXPECT_THAT(servers[0]->command({"CLIENT", "LIST", "TYPE", "PUBSUB"}),
                    HasSubstr("laddr=127.0.0.1:" + std::to_string(servers[0].port())));
        const auto released = boot_clock().now();
        EXPECT_THAT(holder.release(), Succeeds());
        waiter.join();
        EXPECT_THAT(boot_clock().now() - released, LastsAtMost(8s));
        EXPECT_THAT(waiting.release(), Succeeds());
        EXPECT_THAT(holder.acquire_for(50s), Succeeds());
    }
    EXPECT_EQ(calls(*servers[0], "subscribe"), 1U);
    EXPECT_GE(calls(*servers[0], "publish"), 2U);
}

}  // namespace
}  // namespace redlock::test::fair_tls_live_test
