// AsyncLock in a poll() loop whose servers speak TLS.
#include "live/loop/loop_client.hpp"
#include "tls_world.hpp"

#include <algorithm>

namespace redlock::test::async_tls_live_test {
namespace {

struct TlsInALoop : TlsServers {
    std::size_t keys_of(std::string_view owner) {
        return static_cast<std::size_t>(
            std::ranges::count_if(servers, [&](auto& server) { return holder(*server) == owner; }));
    }
};

TEST_F(TlsInALoop, ALockIsExtendedByTheWatchdogAndExcludesOthers) {
    LoopClient client{endpoints(authority), {.node_timeout = 1500ms}};
    LoopClient another{endpoints(authority), {.node_timeout = 1500ms}};
    AsyncLock lock{client.of_loop, the_resource, {.ttl = 5s, .watchdog = loop_watchdog()}};
    AsyncLock of_another{another.of_loop, the_resource};
    ASSERT_THAT(client.try_acquire(lock), Succeeds());
    EXPECT_EQ(keys_of(lock.owner()), 3U);
    const auto end = boot_clock().now() + lock.remaining();
    EXPECT_TRUE(client.run_until([&] { return boot_clock().now() + lock.remaining() > end + 1s; }));
    EXPECT_THAT(another.try_acquire(of_another), FailsWith(Errc::held_by_other));
    EXPECT_THAT(client.release(lock), Succeeds());
    EXPECT_EQ(keys_of("(nil)"), 3U);
    EXPECT_THAT(another.try_acquire(of_another), Succeeds());
}

// The shortest of five times counts, because a busy machine may delay a message.
TEST_F(TlsInALoop, AReleaseWakesAWaiter) {
    const LockOptions fair{.ttl = 1min, .retry = {.delay = 1min}, .fair = true};
    LoopClient client{endpoints(authority), patient()};
    LoopClient another{endpoints(authority), patient()};
    AsyncLock waiting{client.of_loop, the_resource, fair};
    AsyncLock held{another.of_loop, the_resource, fair};
    auto shortest = Clock::duration::max();
    for (int i = 0; i < 5 && shortest >= 125ms; ++i) {
        ASSERT_THAT(another.try_acquire(held), Succeeds());
        std::optional<Result> result;
        waiting.acquire_for(50s, [&](Result it) { result = std::move(it); });
        ASSERT_TRUE(client.run_until([&] {
            return servers[0]->command({"ZCARD", "{orders:42}:queue"}) == "1";
        }));
        const auto released = boot_clock().now();
        EXPECT_THAT(another.release(held), Succeeds());
        ASSERT_TRUE(client.run_until([&] { return result.has_value(); }));
        EXPECT_THAT(*result, Succeeds());
        shortest = std::min<Clock::duration>(shortest, boot_clock().now() - released);
        EXPECT_THAT(client.release(waiting), Succeeds());
    }
    EXPECT_THAT(shortest, LastsAtMost(125ms)) << "it asks every 250 ms if it is not woken";
    EXPECT_EQ(calls(*servers[0], "subscribe"), 1U);
}

// The release waits for a handshake that takes longer than its round, and than the loop waits for a reply.
TEST_F(TlsServersBehindLinks, ALoopSendsAReleaseHoweverLongTheHandshakeTakes) {
    LoopClient client{link_endpoints, {.node_timeout = 1s}};
    AsyncLock lock{client.of_loop, the_resource, {.ttl = 10min}};
    ASSERT_THAT(client.try_acquire(lock), Succeeds());
    ASSERT_EQ(holder(*servers[2]), lock.owner());
    links[2].reset();
    links[2].delay(1200ms);
    EXPECT_THAT(client.release(lock), Succeeds());
    EXPECT_FALSE(clean()) << "or this test shows nothing";
    EXPECT_TRUE(client.run_until([this] { return clean(); }));
}

}  // namespace
}  // namespace redlock::test::async_tls_live_test
