// A fixture for tests of the classes for Asio. The files are compiled once with Boost.Asio and once with
// standalone Asio.
#pragma once

#include "support/cluster_test.hpp"

#include <redlock/asio.hpp>

#if defined(REDLOCK_ASIO_BOOST)
#include <boost/asio.hpp>
#else
#include <asio.hpp>
#endif

#include <gmock/gmock.h>

#include <exception>
#include <utility>

namespace redlock::test {

namespace net = redlock::asio::net;
using namespace std::chrono_literals;
using support::wait_until;

class Asio : public support::ClusterTest {
protected:
    /// Runs the coroutine to its end, and rethrows its exception.
    template <class Coroutine>
    void run(Coroutine coroutine) {
        std::exception_ptr failure;
        net::co_spawn(context, std::move(coroutine), [&](std::exception_ptr it) { failure = it; });
        context.run();
        context.restart();
        if (failure) std::rethrow_exception(failure);
    }

    /// Runs the context until the lock is acquired, and nothing is left to do.
    void acquire(asio::Lock& lock) {
        lock.async_acquire([](const Result& it) { EXPECT_TRUE(it) << it.message(); });
        context.run();
        context.restart();
        EXPECT_TRUE(lock.valid());
    }

    net::io_context context{};
};

}  // namespace redlock::test
