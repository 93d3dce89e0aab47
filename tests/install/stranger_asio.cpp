// A program with an event loop of Asio. It asks three nodes that do not exist, and must get the same error by
// a callback, by a future and in a coroutine. Not every compiler has coroutines with every Asio.
#include <redlock/asio.hpp>
#include <redlock/asio_leader.hpp>
#include <redlock/asio_semaphore.hpp>
#include <redlock/redlock.hpp>

#if defined(REDLOCK_ASIO_BOOST)
#include <boost/asio.hpp>
namespace net = boost::asio;
#else
#include <asio.hpp>
namespace net = asio;
#endif

#include <iostream>

namespace {

using namespace std::chrono_literals;

int refused = 0;

void count(const redlock::Result& result) {
    if (result.error() == redlock::Errc::no_quorum) ++refused;
}

#if defined(BOOST_ASIO_HAS_CO_AWAIT) || defined(ASIO_HAS_CO_AWAIT)
constexpr int expected = 3;

net::awaitable<void> acquire(redlock::RedisNodes& nodes) {
    auto executor = co_await net::this_coro::executor;
    redlock::asio::Lock lock{executor, nodes, "coroutine", {.ttl = 5s}};
    count(co_await lock.async_try_acquire(net::use_awaitable));
}

void acquire_in_a_coroutine(net::io_context& context, redlock::RedisNodes& nodes) {
    net::co_spawn(context, acquire(nodes), net::detached);
}
#else
constexpr int expected = 2;

void acquire_in_a_coroutine(net::io_context&, redlock::RedisNodes&) {}
#endif

}  // namespace

int main() {
    redlock::RedisNodes nodes{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"};  // no server listens there
    net::io_context context;
    redlock::asio::Lock lock{context, nodes, "callback", {.ttl = 5s}};
    redlock::asio::Semaphore slots{context, nodes, "future", 2, {.ttl = 5s}};
    lock.async_try_acquire(count);
    auto slot = slots.async_try_acquire(net::use_future);
    acquire_in_a_coroutine(context, nodes);
    context.run();
    count(slot.get());
    std::cout << refused << " of " << expected << " were refused\n";
    return refused == expected ? 0 : 1;
}
