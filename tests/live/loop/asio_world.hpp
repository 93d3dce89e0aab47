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
#include <stdexcept>
#include <utility>

namespace redlock::test {

namespace net = redlock::asio::net;
using namespace std::chrono_literals;
using support::wait_until;

/// An executor of one context that lets another one call the functions. Rejects them if there is no other
/// one.
struct Elsewhere {
    net::execution_context& query(net::execution::context_t) const noexcept { return *context; }
    static constexpr net::execution::blocking_t query(net::execution::blocking_t) noexcept {
        return net::execution::blocking.never;
    }
    template <class Function>
    void execute(Function&& function) const {
        ++*posted;
        if (!caller) throw std::runtime_error("rejected");
        net::post(*caller, std::forward<Function>(function));
    }
    bool operator==(const Elsewhere&) const noexcept = default;

    net::io_context* context;
    net::io_context* caller;
    int* posted;
};

class Asio : public support::ClusterTest {
protected:
    /// Runs the context until nothing is left to do.
    void run() {
        (void)context.run_for(2min);
        EXPECT_TRUE(context.stopped()) << "something is left to do";
        context.restart();
    }

    /// Runs the context until this is true. Returns false after two minutes.
    template <class Condition>
    bool run_until(Condition condition) {
        return wait_until([&] {
            (void)context.run_for(10ms);
            context.restart();
            return condition();
        });
    }

    /// Runs the coroutine to its end, and rethrows its exception.
    template <class Coroutine>
    void run(Coroutine coroutine) {
        std::exception_ptr failure;
        net::co_spawn(context, std::move(coroutine), [&](std::exception_ptr it) { failure = it; });
        run();
        if (failure) std::rethrow_exception(failure);
    }

    /// Runs the context until the lock is acquired, and nothing is left to do.
    void acquire(asio::Lock& lock) {
        lock.async_acquire([](const Result& it) { EXPECT_TRUE(it) << it.message(); });
        run();
        EXPECT_TRUE(lock.valid());
    }

    net::io_context context{};
};

}  // namespace redlock::test
