// redlock::asio::Lock with servers that speak TLS. Asio may report a descriptor once for several records, of
// which the library has to read all.
#include "tls_world.hpp"

#include <redlock/asio.hpp>

#if defined(REDLOCK_ASIO_BOOST)
#include <boost/asio.hpp>
#else
#include <asio.hpp>
#endif

#include <deque>
#include <string>

namespace redlock::test::asio_tls_live_test {
namespace {

struct TlsInAsio : TlsServers {
    RedisNodes nodes{endpoints(authority), patient()};
    asio::net::io_context context{};
};

TEST_F(TlsInAsio, ManyLocksAreAcquiredExtendedAndReleased) {
    constexpr std::size_t many = 300;
    std::deque<asio::Lock> locks;
    std::size_t released = 0;
    for (std::size_t i = 0; i < many; ++i) {
        auto& lock =
            locks.emplace_back(context, nodes, "many:" + std::to_string(i), LockOptions{.ttl = 1min});
        lock.async_try_acquire([&](const Result& acquired) {
            EXPECT_THAT(acquired, Succeeds());
            lock.async_extend([&](const Result& extended) {
                EXPECT_THAT(extended, Succeeds());
                lock.async_release([&](const Result& it) { released += it ? 1U : 0U; });
            });
        });
    }
    context.run();
    EXPECT_EQ(released, many);
    EXPECT_TRUE(clean());
}

}  // namespace
}  // namespace redlock::test::asio_tls_live_test
