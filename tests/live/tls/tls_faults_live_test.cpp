// Section D of the rules over TLS: no fault of a network or a server takes longer, or has another outcome.
#include "tls_world.hpp"

#include "live/scheduling_delay.hpp"

#include <algorithm>
#include <thread>

namespace redlock::test::tls_faults_live_test {
namespace {

class TlsFaults : public TlsServersBehindLinks, public testing::WithParamInterface<Round> {
protected:
    RedisNodes nodes(milliseconds node_timeout = 5s) const {
        return RedisNodes{link_endpoints, {.node_timeout = node_timeout, .round = GetParam()}};
    }

    /// Returns when all three have granted and released.
    static void warm_up(RedisNodes& nodes) {
        int round = 0;
        ASSERT_TRUE(wait_until([&] {
            Lock lock{nodes, "warm up " + std::to_string(++round), no_retry()};
            (void)lock.acquire();
            return count(lock.release(), Vote::granted) == 3;
        }));
    }
};

INSTANTIATE_TEST_SUITE_P(EachRound, TlsFaults, each_round(), by_round);

/// Matches if no node has granted, and a majority is known to be broken.
MATCHER(IsBroken, "is broken") {
    const auto broken =
        std::ranges::count(arg.nodes(), std::error_code{Errc::connection_failed}, &NodeReport::cause);
    return arg.error() == Errc::no_quorum && count(arg, Vote::granted) == 0 && broken >= 2;
}

void use(RedisNodes& nodes, const std::string& resource = the_resource) {
    Lock lock{nodes, resource, no_retry(60s)};
    EXPECT_THAT(lock.acquire(), Succeeds());
    EXPECT_THAT(lock.extend(), Succeeds());
    EXPECT_THAT(lock.release(), Succeeds());
}

// D12. Nothing readable passes the proxy.
TEST_P(TlsFaults, TheTrafficIsNotReadable) {
    auto nodes = this->nodes();
    use(nodes);
    for (const auto& link : links) {
        EXPECT_EQ(link.traffic().commands, 0U);
        EXPECT_GT(link.traffic().request_bytes, 0U);
    }
}

// D2. Both handshakes and the replies arrive byte by byte.
TEST_P(TlsFaults, BytesThatArriveOneByOneAreParsed) {
    for (auto& link : links) link.trickle();
    auto nodes = this->nodes(20s);
    use(nodes);
    use(nodes);
}

TEST_P(TlsFaults, AResourceOfAMegabyteWorks) {
    auto nodes = this->nodes();
    use(nodes, std::string(1U << 20U, 'r'));
    for (auto& link : links) link.delay(2ms);
    use(nodes, std::string(1U << 20U, 's'));
}

// D4. Wherever the handshake is cut off, no vote is counted, and the next connection works.
TEST_P(TlsFaults, AnInterruptedHandshakeIsRepeated) {
    for (const std::size_t at : {0U, 1U, 5U, 6U, 100U, 127U, 500U, 800U, 1'000U, 1'200U}) {
        auto nodes = this->nodes();
        for (auto& link : links) link.cut_after(at);
        Lock lock{nodes, "cut at " + std::to_string(at), no_retry()};
        const auto result = lock.acquire();
        EXPECT_THAT(result, IsBroken()) << at;
        for (auto& link : links) link.heal();
        EXPECT_TRUE(wait_until([&] { return static_cast<bool>(lock.acquire()); })) << at;
    }
}

// D1. Bytes that are no TLS end the connection. This is no rejected certificate, so it is retried.
TEST_P(TlsFaults, BytesThatAreNotTlsEndTheConnection) {
    auto nodes = this->nodes();
    warm_up(nodes);
    for (auto& link : links) link.replace_replies("+OK\r\n");
    EXPECT_THAT((Lock{nodes, the_resource, no_retry()}.acquire()), IsBroken());
    for (auto& link : links) link.heal();
    Lock another{nodes, "another", no_retry()};  // the SET was executed, and may have left its key
    EXPECT_TRUE(wait_until([&] { return static_cast<bool>(another.acquire()); }));
}

// A3, D4. A node that freezes before or after the handshake costs one node_timeout once.
TEST_P(TlsFaults, AFrozenNodeDelaysOneRoundByOneNodeTimeout) {
    constexpr auto node_timeout = 2s;
    auto warm = this->nodes(node_timeout);
    warm_up(warm);
    auto cold = this->nodes(node_timeout);
    servers[0]->freeze();
    for (auto* const nodes : {&warm, &cold}) {
        EXPECT_THAT(time_taken([&] { use(*nodes); }), LastsAtMost(3 * node_timeout + 2s));
        int costly = 0;
        for (int i = 0; i < 10; ++i) costly += own_time([&] { use(*nodes); }) >= node_timeout ? 1 : 0;
        EXPECT_EQ(costly, 0);
    }
    servers[0]->thaw();
    for (auto* const nodes : {&warm, &cold}) warm_up(*nodes);
}

// D9. Each connection has its own session.
TEST_P(TlsFaults, ThreadsShareTheNodes) {
    auto nodes = this->nodes();
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i)
        threads.emplace_back([&, i] {
            for (int round = 0; round < 10; ++round) use(nodes, "orders:" + std::to_string(i));
        });
    for (int i = 0; i < 5; ++i) links[static_cast<std::size_t>(i) % 3].delay(2ms * i);
}

}  // namespace
}  // namespace redlock::test::tls_faults_live_test
