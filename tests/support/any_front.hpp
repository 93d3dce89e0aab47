// A lock of any front, with the interface of one that blocks. So one test can state a promise of all fronts.
#pragma once

#include <redlock/async_lock.hpp>
#include <redlock/result.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

namespace redlock::support {

/// How a test runs an event loop.
struct Turns {
    std::function<bool()> one{};  ///< makes a turn; returns false if the loop will never have anything to do
    std::function<bool()> due{};  ///< makes a turn if something is due now; may be empty
};

/// A Blocking, or an Async whose operations run its loop until they have ended. The functions of an Async are
/// called either acquire() and so on, or async_acquire() and so on.
template <class Blocking, class Async>
class OfAnyFront {
public:
    explicit OfAnyFront(Blocking it) : blocking_(std::move(it)) {}
    OfAnyFront(Async it, Turns turns) : async_(std::move(it)), turns_(std::move(turns)) {}
    ~OfAnyFront() {
        async_.reset();
        run_due();
    }
    OfAnyFront(OfAnyFront&& other) noexcept
        : blocking_(std::move(other.blocking_)), async_(std::move(other.async_)), turns_(other.turns_) {}
    OfAnyFront& operator=(OfAnyFront&& other) noexcept {
        blocking_ = std::move(other.blocking_);
        async_ = std::move(other.async_);
        run_due();
        return *this;
    }

    Result acquire(std::stop_token stop = {}) {
        return end_of([](auto& it, auto last) { return it.acquire(std::move(last)); },
                      [](auto& it, auto done) { it.async_acquire(std::move(done)); }, stop);
    }
    Result try_acquire() {
        return end_of([](auto& it, auto... done) { return it.try_acquire(std::move(done)...); },
                      [](auto& it, auto done) { it.async_try_acquire(std::move(done)); });
    }
    template <class Rep, class Period>
    Result acquire_for(std::chrono::duration<Rep, Period> span, std::stop_token stop = {}) {
        return end_of([span](auto& it, auto last) { return it.acquire_for(span, std::move(last)); },
                      [span](auto& it, auto done) { it.async_acquire_for(span, std::move(done)); }, stop);
    }
    Result extend() {
        return end_of([](auto& it, auto... done) { return it.extend(std::move(done)...); },
                      [](auto& it, auto done) { it.async_extend(std::move(done)); });
    }
    Result extend(std::chrono::milliseconds ttl) {
        return end_of([ttl](auto& it, auto... done) { return it.extend(ttl, std::move(done)...); },
                      [ttl](auto& it, auto done) { it.async_extend(ttl, std::move(done)); });
    }
    Result release() {
        return end_of([](auto& it, auto... done) { return it.release(std::move(done)...); },
                      [](auto& it, auto done) { it.async_release(std::move(done)); });
    }

    bool valid() const {
        return ask([](const auto& it) { return it.valid(); });
    }
    std::chrono::nanoseconds remaining() const {
        return ask([](const auto& it) { return it.remaining(); });
    }
    std::stop_token lost() const {
        return ask([](const auto& it) { return it.lost(); });
    }
    std::string owner() const {
        return ask([](const auto& it) { return std::string{it.owner()}; });
    }
    std::string resource() const {
        return ask([](const auto& it) { return std::string{it.resource()}; });
    }
    auto resources() const {
        return ask([](const auto& it) { return it.resources(); });
    }
    std::uint64_t fencing_token() const {
        return ask([](const auto& it) { return it.fencing_token(); });
    }
    std::size_t slot() const {
        return ask([](const auto& it) { return it.slot(); });
    }

    Blocking& blocking() { return blocking_.value(); }

private:
    template <class Query>
    auto ask(Query query) const {
        return blocking_ ? query(*blocking_) : query(*async_);
    }
    /// Calls the function of a Blocking. Of an Async, runs the loop until the operation has ended. A stop
    /// request cancels it. Without the memory to begin it, the result is that of a Blocking.
    template <class Begin, class AsyncBegin, class... Stop>
    Result end_of(Begin begin, AsyncBegin async_begin, Stop... stop) {
        if (blocking_) return begin(*blocking_, stop...);
        std::optional<Result> result;
        auto done = [&](Result it) { result = std::move(it); };
        try {
            if constexpr (requires { async_->async_acquire(done); })
                async_begin(*async_, done);
            else
                begin(*async_, done);
        } catch (const std::bad_alloc&) {
            return Result{std::make_error_code(std::errc::not_enough_memory)};
        }
        EXPECT_FALSE(result) << "inside the initiating call";
        const std::stop_callback cancel{std::stop_token{stop...}, [this] {
                                            if constexpr (requires { async_->cancel(); }) async_->cancel();
                                        }};
        while (!result && turns_.one()) {
        }
        return std::move(result).value_or(Result{std::make_error_code(std::errc::timed_out)});
    }
    void run_due() {
        while (turns_.due && turns_.due()) {
        }
    }

    std::optional<Blocking> blocking_{};
    std::optional<Async> async_{};
    Turns turns_{};
};

}  // namespace redlock::support
