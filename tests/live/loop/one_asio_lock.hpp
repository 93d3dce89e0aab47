// The implementation of OneAsio with the Asio that the including source file has selected.
#pragma once

#include "one_asio.hpp"
#include "support/any_front.hpp"

#include <redlock/asio.hpp>
#include <redlock/lock.hpp>

#if defined(REDLOCK_ASIO_BOOST)
#include <boost/asio/io_context.hpp>
#else
#include <asio/io_context.hpp>
#endif

#include <typeindex>
#include <typeinfo>

namespace redlock::test {
namespace {

class OneAsioLock final : public OneAsio {
public:
    explicit OneAsioLock(RedisNodes& nodes)
        : lock_{asio::Lock{context_, nodes, "orders:42"}, {.one = [this] { return run(); }}} {}

    Result try_acquire() override { return lock_.try_acquire(); }
    Result release() override { return lock_.release(); }
    std::type_index type() const noexcept override { return typeid(asio::Lock); }

private:
    /// Runs all that is left to do.
    bool run() {
        context_.restart();
        return context_.run() > 0;
    }

    asio::net::io_context context_{};
    support::OfAnyFront<Lock, asio::Lock> lock_;
};

}  // namespace
}  // namespace redlock::test
