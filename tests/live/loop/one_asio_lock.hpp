// The implementation of OneAsio with the Asio that the including source file has selected.
#pragma once

#include "one_asio.hpp"

#include <redlock/asio.hpp>

#if defined(REDLOCK_ASIO_BOOST)
#include <boost/asio/io_context.hpp>
#else
#include <asio/io_context.hpp>
#endif

#include <optional>
#include <system_error>
#include <typeindex>
#include <typeinfo>
#include <utility>

namespace redlock::test {
namespace {

class OneAsioLock final : public OneAsio {
public:
    explicit OneAsioLock(RedisNodes& nodes) : lock_{context_, nodes, "orders:42"} {}

    Result try_acquire() override {
        return result_of([this](auto done) { lock_.async_try_acquire(std::move(done)); });
    }
    Result release() override {
        return result_of([this](auto done) { lock_.async_release(std::move(done)); });
    }
    std::type_index type() const noexcept override { return typeid(lock_); }

private:
    template <class Begin>
    Result result_of(Begin begin) {
        std::optional<Result> result;
        begin([&](Result it) { result = std::move(it); });
        context_.restart();
        context_.run();
        return std::move(result).value_or(Result{std::make_error_code(std::errc::timed_out)});
    }

    asio::net::io_context context_{};
    asio::Lock lock_;
};

}  // namespace
}  // namespace redlock::test
