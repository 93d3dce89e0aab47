// A fixture for tests of the classes for Asio. The files are compiled once with Boost.Asio and once with
// standalone Asio.
#pragma once

#include "support/cluster.hpp"
#include "support/wait_until.hpp"

#include <redlock/asio.hpp>
#include <redlock/redlock.hpp>

#if defined(REDLOCK_ASIO_BOOST)
#include <boost/asio.hpp>
#else
#include <asio.hpp>
#endif

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <utility>

namespace redlock::test {

namespace net = redlock::asio::net;
using namespace std::chrono_literals;
using support::Cluster;
using support::wait_until;

class Asio : public testing::Test {
protected:
    std::size_t keys(const std::string& resource = "orders:42") {
        std::size_t count = 0;
        for (auto& server : cluster) count += server.command({"EXISTS", resource}) == "1" ? 1U : 0U;
        return count;
    }
    bool no_key_is_left(const std::string& resource = "orders:42") {
        return wait_until([&] { return keys(resource) == 0; });
    }

    /// Runs the coroutine to its end, and rethrows its exception.
    template <class Coroutine>
    void run(Coroutine coroutine) {
        std::exception_ptr failure;
        net::co_spawn(context, std::move(coroutine), [&](std::exception_ptr it) { failure = it; });
        context.run();
        context.restart();
        if (failure) std::rethrow_exception(failure);
    }

    Cluster cluster{5};
    RedisNodes nodes{cluster.uris(), {.node_timeout = 1s}};  // also for a busy machine
    net::io_context context{};
};

}  // namespace redlock::test
