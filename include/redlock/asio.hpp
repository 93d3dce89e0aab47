// Locks for programs with Asio. No function blocks: a coroutine, a callback or any other completion token
// waits for the end of an operation.
//
//     boost::asio::awaitable<void> ship(redlock::RedisNodes& nodes, Order order) {
//         auto executor = co_await boost::asio::this_coro::executor;
//         redlock::asio::Lock lock{executor, nodes, "orders:42", {.ttl = 10s}};
//         if (auto result = co_await lock.async_acquire_for(2s, boost::asio::use_awaitable)) {
//             charge(order);
//             (void)co_await lock.async_release(boost::asio::use_awaitable);
//         } else {
//             log(result.message());
//         }
//     }
//
// lock.hpp documents what a lock promises, and async_lock.hpp documents what is different in an event loop.
// The class redlock::asio::Lock is at the end of this file.
//
// The header needs Boost.Asio of Boost 1.81 or later, or standalone Asio 1.22 or later. If both are
// installed, it takes Boost.Asio, unless REDLOCK_ASIO_STANDALONE is defined before the header is included.
// One program can have source files with both. The CMake target is redlock::asio; the program finds Asio
// itself.
#pragma once

#include <redlock/async_lock.hpp>
#include <redlock/detail/asio_library.hpp>
#include <redlock/detail/asio_operation.hpp>
#include <redlock/error.hpp>
#include <redlock/nodes.hpp>
#include <redlock/options.hpp>
#include <redlock/resources.hpp>
#include <redlock/result.hpp>

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace redlock::asio {
inline namespace REDLOCK_ASIO_NAMESPACE {
namespace detail {

/// The queries and operations that a Lock and a Semaphore have in common. The base class has the executor,
/// and the AsyncLock or AsyncSemaphore in `state_`, which is null after a move. Its function initiate()
/// begins an operation as an asynchronous operation of Asio.
template <class Async>
class Operations : public Handle<Async> {
public:
    using executor_type = net::any_io_executor;

    // ---- Queries, see redlock::Lock.

    bool valid() const noexcept { return this->state_ && this->state_->async->valid(); }
    std::chrono::nanoseconds remaining() const noexcept {
        return this->state_ ? this->state_->async->remaining() : std::chrono::nanoseconds::zero();
    }
    std::stop_token lost() const { return this->state_ ? this->state_->async->lost() : std::stop_token{}; }
    const std::string& resource() const noexcept {
        static const std::string none;
        return this->state_ ? this->state_->async->resource() : none;
    }
    std::string_view owner() const noexcept {
        return this->state_ ? this->state_->async->owner() : std::string_view{};
    }
    std::uint64_t fencing_token() const noexcept {
        return this->state_ ? this->state_->async->fencing_token() : 0;
    }

    // ---- Operations, see AsyncLock.

    /// Makes up to LockOptions::retry.attempts attempts, with pauses.
    template <class Token = net::default_completion_token_t<executor_type>>
    auto async_acquire(Token&& token = Token()) {
        return this->template initiate<Result>(
            std::forward<Token>(token), cannot_acquire(),
            [](Async& lock, Completion done) { lock.acquire(std::move(done)); });
    }

    /// Makes one attempt.
    template <class Token = net::default_completion_token_t<executor_type>>
    auto async_try_acquire(Token&& token = Token()) {
        return this->template initiate<Result>(
            std::forward<Token>(token), cannot_acquire(),
            [](Async& lock, Completion done) { lock.try_acquire(std::move(done)); });
    }

    /// Makes attempts until `span` is over.
    template <class Rep, class Period, class Token = net::default_completion_token_t<executor_type>>
    auto async_acquire_for(std::chrono::duration<Rep, Period> span, Token&& token = Token()) {
        return this->template initiate<Result>(
            std::forward<Token>(token), cannot_acquire(),
            [span](Async& lock, Completion done) { lock.acquire_for(span, std::move(done)); });
    }

    /// Extends the lock as redlock::Lock::extend() does.
    template <class Token = net::default_completion_token_t<executor_type>>
    requires(!std::is_convertible_v<Token, std::chrono::milliseconds>) auto async_extend(
        Token&& token = Token()) {
        return this->template initiate<Result>(
            std::forward<Token>(token), Errc::not_held,
            [](Async& lock, Completion done) { lock.extend(std::move(done)); });
    }

    /// Extends with another ttl. Throws std::invalid_argument for a ttl that cannot work.
    template <class Token = net::default_completion_token_t<executor_type>>
    auto async_extend(std::chrono::milliseconds ttl, Token&& token = Token()) {
        // The exception is thrown here, and not when Asio begins the operation, because a coroutine is
        // suspended then and cannot catch it. The check needs no mutex, because it reads constants.
        if (this->state_) this->state_->async->check_ttl(ttl);
        return this->template initiate<Result>(
            std::forward<Token>(token), Errc::not_held,
            [ttl](Async& lock, Completion done) { lock.extend(ttl, std::move(done)); });
    }

    /// Releases the lock. valid() is false once the operation has begun.
    template <class Token = net::default_completion_token_t<executor_type>>
    auto async_release(Token&& token = Token()) {
        return this->template initiate<Result>(
            std::forward<Token>(token), Errc::not_held,
            [](Async& lock, Completion done) { lock.release(std::move(done)); });
    }

protected:
    Operations(const executor_type& executor, Nodes& nodes, auto&&... arguments)
        : Handle<Async>(executor, nodes, std::forward<decltype(arguments)>(arguments)...) {}

private:
    static std::error_code cannot_acquire() noexcept {
        return std::make_error_code(std::errc::invalid_argument);
    }
};

}  // namespace detail

/// A lock whose operations are asynchronous operations of Asio. The *context* of a lock is the execution
/// context of its executor, such as an io_context.
///
/// Operations: the completion signature is `void(redlock::Result)`. With use_awaitable, co_await returns the
/// Result, and failures do not throw. The handler is called as if by post(): by its associated executor, or
/// by the executor of the lock if the handler has none. Only one operation of a lock can be under way; a
/// second one ends with std::errc::operation_in_progress.
///
/// A function that begins an operation may throw std::bad_alloc. Otherwise the handler is called once. If
/// there is no memory to post the handler, the library tries again while the context runs.
///
/// Cancellation, of any type, has the effect of AsyncLock::cancel().
///
/// Lifetime: destroy a lock before its nodes. With the executor of an io_context itself, a lock may outlive
/// the context. With a strand it must not, because the destructor of a strand uses the context. When the
/// context is destroyed, no handler is called any more. The Nodes object then sends the releases that are
/// left to do, and a stop is requested on lost() if the lock has a watchdog. After fork() the child may only
/// destroy the context and the locks.
///
/// Threads: one Lock belongs to one thread or strand at a time. Different locks may be used by different
/// threads, even if several threads run the context. The threads that run the context do the work of the
/// library, under a recursive mutex. A std::stop_callback on lost() is called while its thread holds this
/// mutex. The callback may make locks and call their functions, but it must not wait for another thread,
/// which may wait for the mutex.
class Lock : public detail::Operations<AsyncLock> {
public:
    /// Prepares a lock, see the constructor of redlock::Lock. Throws std::system_error if the process has no
    /// descriptor left for a timer.
    ///
    /// LockOptions::watchdog must be null or redlock::loop_watchdog(). LockOptions::on_lost is called as if
    /// by post(), by the executor. A call that has been posted is made even if the lock is released
    /// meanwhile.
    Lock(const executor_type& executor, Nodes& nodes, ResourceList resources, LockOptions options = {})
        : Operations(executor, nodes, std::move(resources),
                     detail::posting_on_lost(executor, nodes, std::move(options))) {}

    /// The same, with the executor of a context such as an io_context.
    template <class Context>
    requires std::is_convertible_v<Context&, net::execution_context&> Lock(Context& context, Nodes& nodes,
                                                                           ResourceList resources,
                                                                           LockOptions options = {})
        : Lock(executor_type{context.get_executor()}, nodes, std::move(resources), std::move(options)) {}

    Resources resources() const noexcept { return state_ ? state_->async->resources() : Resources{}; }
};

}  // namespace REDLOCK_ASIO_NAMESPACE
}  // namespace redlock::asio
