// This library with Boost.Asio, or with standalone Asio if there is no Boost: one thread with many
// coroutines, each with its own resource.
#pragma once

#include "client.hpp"

#include <redlock/asio.hpp>
#include <redlock/redlock.hpp>

#if defined(REDLOCK_ASIO_BOOST)
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#else
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#endif

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace redlock::bench {

namespace net = asio::net;

class AsioClient final : public Client {
public:
    AsioClient(std::string name, const std::vector<std::string>& uris, std::size_t coroutines)
        : Client(std::move(name)), nodes_(uris, {.round = Round::all_at_once}) {
        for (std::size_t i = 0; i < coroutines; ++i) resources_.push_back("bench:asio-" + std::to_string(i));
    }

    /// Ends when all operations that began within the span have ended. The thread may be another one in each
    /// batch, because the context does nothing between two batches.
    Batch run(const Work& work) override {
        batch_ = {};
        left_ = work.ops;
        interval_ = work.interval;
        next_ = Steady::now() + work.first;
        end_ = next_ - work.first + work.span;
        for (const auto& resource : resources_) net::co_spawn(context_, client(resource), net::detached);
        context_.restart();
        context_.run();
        return std::exchange(batch_, {});
    }
    bool heeds_arrivals() const noexcept override { return true; }

private:
    using Steady = std::chrono::steady_clock;

    /// Makes one op after the other, as long as there are any. An op is what the handler of a request does.
    net::awaitable<void> client(const std::string& resource) {
        net::steady_timer arrival{context_};
        while (left_ > 0) {
            const auto start = interval_.count() > 0 ? next_ : Steady::now();
            if (start >= end_) co_return;
            --left_;
            next_ += interval_;
            if (start > Steady::now()) {
                arrival.expires_at(start);
                co_await arrival.async_wait(net::use_awaitable);
            }
            asio::Lock lock{context_, nodes_, resource};
            if (!co_await lock.async_acquire(net::use_awaitable)) {
                ++batch_.failed;
                continue;
            }
            (void)co_await lock.async_release(net::use_awaitable);
            const std::chrono::duration<double, std::micro> took = Steady::now() - start;
            batch_.microseconds.push_back(took.count());
        }
    }

    RedisNodes nodes_;
    net::io_context context_{1};
    Batch batch_{};
    std::size_t left_ = 0;
    Steady::time_point end_{};
    std::chrono::nanoseconds interval_{};
    Steady::time_point next_{};  // the next arrival
    std::vector<std::string> resources_{};
};

}  // namespace redlock::bench
