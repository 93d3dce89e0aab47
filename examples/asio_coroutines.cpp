// My server has one thread, an io_context and coroutines. How does a request wait for a lock without blocking
// the others?
//
// redlock::asio::Lock has asynchronous operations, with which a coroutine can co_await. This server receives
// the name of an account in each request, locks the account for the work, and answers. The program is its own
// client: it sends a few requests at the same time, and ends when they are answered.
#include "node_list.hpp"

#include <redlock/asio.hpp>
#include <redlock/redlock.hpp>

#if defined(REDLOCK_ASIO_BOOST)
#include <boost/asio.hpp>
namespace net = boost::asio;
#else
#include <asio.hpp>
namespace net = asio;
#endif

#include <chrono>
#include <exception>
#include <iostream>
#include <string>
#include <utility>

using namespace std::chrono_literals;
using net::use_awaitable;
using net::ip::tcp;

/// Does the work of one request while it holds the lock of the account, and returns the answer.
net::awaitable<std::string> book(redlock::RedisNodes& nodes, std::string account) {
    auto executor = co_await net::this_coro::executor;
    redlock::asio::Lock lock{executor, nodes, "account:" + account, {.ttl = 10s}};
    const auto acquired = co_await lock.async_acquire_for(5s, use_awaitable);
    if (!acquired) co_return "error: " + acquired.message() + "\n";
    net::steady_timer work{executor, 20ms};
    co_await work.async_wait(use_awaitable);
    const auto released = co_await lock.async_release(use_awaitable);
    // The booking is done. If the lock was lost before, another request may have worked at the same time. Any
    // other failure of the release only delays the next request.
    if (released.error() == redlock::Errc::lost) co_return "error: " + released.message() + "\n";
    co_return "booked " + account + "\n";
}

net::awaitable<void> serve(tcp::socket socket, redlock::RedisNodes& nodes) {
    std::string line;
    const auto size = co_await net::async_read_until(socket, net::dynamic_buffer(line), '\n', use_awaitable);
    const auto answer = co_await book(nodes, line.substr(0, size - 1));
    co_await net::async_write(socket, net::buffer(answer), use_awaitable);
}

net::awaitable<void> accept(tcp::acceptor& acceptor, redlock::RedisNodes& nodes, int requests) {
    for (int i = 0; i < requests; ++i) {
        auto socket = co_await acceptor.async_accept(use_awaitable);
        net::co_spawn(acceptor.get_executor(), serve(std::move(socket), nodes), net::detached);
    }
}

/// Counts the request in `failed` if the answer is an error.
net::awaitable<void> request(tcp::endpoint server, std::string account, int& failed) {
    tcp::socket socket{co_await net::this_coro::executor};
    co_await socket.async_connect(server, use_awaitable);
    const auto line = account + "\n";
    co_await net::async_write(socket, net::buffer(line), use_awaitable);
    std::string answer;
    co_await net::async_read_until(socket, net::dynamic_buffer(answer), '\n', use_awaitable);
    std::cout << answer;
    failed += answer.starts_with("error") ? 1 : 0;
}

int main(int argc, char** argv) try {
    redlock::RedisNodes nodes{node_list(argc, argv)};
    net::io_context context{1};
    tcp::acceptor acceptor{context, {net::ip::address_v4::loopback(), 0}};
    int failed = 0;
    net::co_spawn(context, accept(acceptor, nodes, 9), net::detached);
    for (int i = 0; i < 9; ++i)
        net::co_spawn(context, request(acceptor.local_endpoint(), std::to_string(i % 3), failed),
                      net::detached);
    context.run();
    return failed == 0 ? 0 : 1;
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
}
