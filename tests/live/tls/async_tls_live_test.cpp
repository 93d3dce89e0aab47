// AsyncLock in a poll() loop whose servers speak TLS.
#include "live/loop/loop_client.hpp"
#include "live/scheduling_delay.hpp"
#include "tls_world.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <vector>

namespace redlock::test {
namespace {

/// Three servers that speak TLS only.
struct TlsInALoop : TlsWorld {
    static RedisConfig tls_only() { return RedisConfig{}.line("port 0"); }

    std::vector<Endpoint> endpoints(const Authority& trusted) const {
        std::vector<Endpoint> result;
        for (const auto& server : servers) result.push_back(server.endpoint(trusted));
        return result;
    }
    std::size_t keys_of(std::string_view owner) {
        return static_cast<std::size_t>(
            std::ranges::count_if(servers, [&](auto& server) { return holder(*server) == owner; }));
    }

    std::array<TlsServer, 3> servers{TlsServer{good, authority, Clients::are_anybody, tls_only()},
                                     TlsServer{good, authority, Clients::are_anybody, tls_only()},
                                     TlsServer{good, authority, Clients::are_anybody, tls_only()}};
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

TEST_F(TlsInALoop, ACertificateThatIsNotAcceptedIsReported) {
    const auto rejected_for = [&](std::vector<Endpoint> endpoints, const std::string& reason) {
        LoopClient client{std::move(endpoints), patient()};
        AsyncLock lock{client.of_loop, the_resource, {.retry = {.attempts = 5, .delay = 1ms}}};
        const auto result = client.acquire(lock);
        EXPECT_THAT(result, IsRejectedFor(reason));
        EXPECT_THAT(result, FailsWith(Errc::no_quorum));
        EXPECT_EQ(result.attempts(), 1) << "the certificate will be the same the next time";
    };
    rejected_for(endpoints(stranger), "certificate verify failed");
    auto of_other_name = endpoints(authority);
    for (auto& it : of_other_name) it.tls.server_name = "elsewhere.example";
    rejected_for(of_other_name, "mismatch");
    for (const auto* const version : {"TLSv1.2", "TLSv1.3"}) {
        const TlsServer server{good, authority, Clients::show_a_certificate,
                               tls_only().line(std::string{"tls-protocols "} + version)};
        rejected_for({server.endpoint(authority)}, "TLS: ");
    }
}

TEST_F(TlsInALoop, ACertificateThatIsNotAcceptedOnAMinorityDoesNotMatter) {
    auto of_loop = endpoints(authority);
    of_loop[0].tls.ca_file = stranger.certificate();
    LoopClient client{of_loop, patient()};
    AsyncLock lock{client.of_loop, the_resource, no_retry()};
    for (int i = 0; i < 3; ++i) {
        const auto result = client.try_acquire(lock);
        EXPECT_THAT(result, Succeeds());
        if (i == 0) {
            EXPECT_THAT(result, IsRejectedFor("certificate verify failed"));
        }
        EXPECT_THAT(client.extend(lock), Succeeds());
        EXPECT_THAT(client.release(lock), Succeeds());
    }
}

// The kernel of a frozen server accepts the connection, but the server does not answer the handshake.
TEST_F(TlsInALoop, AServerThatIsFrozenInTheHandshakeDelaysOperationsByOneNodeTimeoutTogether) {
    constexpr std::size_t many = 20;
    constexpr milliseconds node_timeout = 1s;
    LoopClient client{endpoints(authority), {.node_timeout = node_timeout, .round = Round::sequential}};
    LoopClient another{std::vector{servers[1].endpoint(authority), servers[2].endpoint(authority)},
                       patient()};
    AsyncLock other{another.of_loop, "other"};
    ASSERT_THAT(another.try_acquire(other), Succeeds());
    servers[0]->freeze();
    std::deque<AsyncLock> locks;
    std::size_t acquired = 0;
    int extensions = 0;
    bool extends = false;
    TurnTimer timer;
    const auto took = own_time([&] {
        for (std::size_t i = 0; i < many; ++i)
            locks.emplace_back(client.of_loop, "many:" + std::to_string(i), no_retry())
                .try_acquire([&](const Result& it) {
                    EXPECT_THAT(it, Succeeds());
                    EXPECT_THAT(it, Reports(0, Errc::timed_out));
                    ++acquired;
                });
        // One thread runs both loops.
        ASSERT_TRUE(client.run_until([&] {
            timer.turn();
            if (!std::exchange(extends, true))
                other.extend([&](const Result& it) {
                    EXPECT_THAT(it, Succeeds());
                    extends = false;
                    ++extensions;
                });
            (void)another.loop.run_once(std::chrono::steady_clock::now() + 1ms);
            return acquired == many;
        }));
    });
    EXPECT_THAT(took, LastsAtMost(2 * node_timeout - 100ms));
    EXPECT_THAT(timer.longest(), LastsAtMost(node_timeout / 2)) << "nothing blocks the thread";
    EXPECT_GT(extensions, 10) << "the other loop does not wait";
    AsyncLock lock{client.of_loop, the_resource, no_retry()};
    int costly = 0;
    for (int i = 0; i < 10; ++i)
        costly += own_time([&] {
                      EXPECT_THAT(client.try_acquire(lock), Succeeds());
                      EXPECT_THAT(client.extend(lock), Succeeds());
                      EXPECT_THAT(client.release(lock), Succeeds());
                  }) >= node_timeout;
    EXPECT_EQ(costly, 0);
    servers[0]->thaw();
    EXPECT_TRUE(wait_until([&] {
        (void)client.try_acquire(lock);
        return count(client.release(lock), Vote::granted) == 3;
    }));
}

}  // namespace
}  // namespace redlock::test
